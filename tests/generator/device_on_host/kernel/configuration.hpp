#pragma once

// In place of templates/kernel/configuration.hpp: a test gives what it holds.
