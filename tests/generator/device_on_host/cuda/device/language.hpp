#pragma once

// In place of templates/cuda/device/language.hpp: a test gives what it holds.
