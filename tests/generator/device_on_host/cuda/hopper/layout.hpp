#pragma once

// In place of templates/cuda/hopper/layout.hpp: a test gives what it holds.
