#pragma once

// In place of templates/kernel/undecided.hpp: a test gives what it holds.
