#pragma once

// In place of templates/cuda/attention/q_tile.hpp: a test gives what it holds.
