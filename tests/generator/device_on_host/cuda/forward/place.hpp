#pragma once

// In place of templates/cuda/forward/place.hpp: a test gives what it holds.
