#pragma once

// In place of templates/kernel/language.hpp: a test gives what it holds.
