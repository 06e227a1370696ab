#pragma once

// In place of templates/cuda/language.hpp: a test gives what it holds.
