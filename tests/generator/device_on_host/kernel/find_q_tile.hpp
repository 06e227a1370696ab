#pragma once

// In place of templates/kernel/find_q_tile.hpp.jinja: a test gives what it holds.
