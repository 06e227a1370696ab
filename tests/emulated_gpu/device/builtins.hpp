#pragma once

// In place of templates/cuda/device/builtins.hpp: gcc has its own.
