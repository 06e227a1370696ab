#pragma once

#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// What a tile that passes by a block's own rows says of its elements.

namespace tw_kernel {

// Of a tile: whether it has own row i of the thread, and mask_mod decides over its elements; whether some
// of its elements may be dropped; where passing rows end.
TW_INLINE bool has_own_row(const KvTile&, int) { return true; }
TW_INLINE bool is_partial(const KvTile& tile, int) { return tile.partial(); }
TW_INLINE bool drops_elements(const KvTile& tile) { return kHasMaskMod && tile.partial(); }
TW_INLINE int end_of_rows(const KvTile&, int count) { return count; }

}  // namespace tw_kernel
