#pragma once

// In place of templates/cuda/builtins.hpp: gcc has its own.
