#pragma once

// In place of templates/abi/cuda.hpp: a test gives what it holds.
