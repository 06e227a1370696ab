#pragma once

// In place of templates/cuda/attention/place.hpp: a test gives what it holds.
