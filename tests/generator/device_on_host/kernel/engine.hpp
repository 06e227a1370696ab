#pragma once

// In place of templates/kernel/engine.hpp: a test gives what it holds.
