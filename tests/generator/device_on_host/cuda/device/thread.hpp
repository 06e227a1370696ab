#pragma once

// In place of templates/cuda/device/thread.hpp: a test gives what it holds.
