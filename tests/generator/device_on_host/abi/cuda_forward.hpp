#pragma once

// In place of templates/abi/cuda_forward.hpp: a test gives what it holds.
