#pragma once

// In place of templates/kernel/find_place.hpp.jinja: a test gives what it holds.
