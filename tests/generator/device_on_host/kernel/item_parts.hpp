#pragma once

// In place of templates/kernel/item_parts.hpp.jinja: whole q tiles, or parts where a test defines
// SPLIT_ITEMS.
#ifdef SPLIT_ITEMS
#include "cuda/hopper/split_items.hpp"
#else
#include "cuda/hopper/whole_items.hpp"
#endif
