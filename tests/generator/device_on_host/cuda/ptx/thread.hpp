#pragma once

// In place of templates/cuda/ptx/thread.hpp: a test gives what it holds.
