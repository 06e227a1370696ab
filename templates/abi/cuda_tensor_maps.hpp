#pragma once

// What kernels read that bring tensors with the copy engine.

namespace tilewright::abi::cuda {

/// A CUtensorMap of cuda.h: where the copy engine finds a tensor, and what boxes it brings of it.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

/// Dimensions, fastest first: columns, rows, heads, batch; a dimension of stride 0 has extent 1.
/// Boxes are 64 columns wide, and 64 rows high for q, a kv tile for k and v, 16 rows for out.
///
/// In packed calls: columns, kRaggedRows rows, heads, rows again, and turns of kRaggedTurn bytes less
/// a row. Row r of a sequence that has `len` rows from `begin` on is at (kRaggedRows - len + r, h,
/// begin + len, kRaggedRows). The turns add up to 2^64 bytes, so addresses wrap, and take back the
/// kRaggedRows rows too many. Rows after the sequence's end are outside of the second dimension: the
/// copy engine reads 0 there and writes nothing.
///   void tilewright_forward(ForwardArguments, TensorMaps, SnippetArguments<buffers, scalars>)
struct TensorMaps {
  TensorMap q, k, v;
  TensorMap out;  // not read where out is float32
};

/// The same where k and v are in pages. Their dimensions: columns of a panel of 64, 8 rows, panels, heads, and
/// groups of 8 rows, counted over the pool in steps of a row of one head; boxes are 64 columns wide and have
/// all panels. Where a head's columns are no whole panels: columns, 8 rows, heads, groups.
///   void tilewright_forward(ForwardArguments, PagedTensorMaps, SnippetArguments<buffers, scalars>)
struct PagedTensorMaps : TensorMaps {
  TensorMap v_end;  // as in packed calls, in boxes of 8 rows: of the rows before a sequence's last
};

/// How new rows of K, or of V, come beside those in pages.
struct NewRowsMaps {
  /// As in packed calls: boxes of 8 rows of the pool, of 1 row of it; of 8 of the new rows, of 1.
  TensorMap pieces[4];
  /// A tile of new rows that all belong to one sequence: as for pages, but that 8 rows may begin at any of 8. The
  /// second dimension has 15 rows for that, and the last group reaches past the tensor: boxes must not.
  TensorMap tile;
};

/// The same where each sequence's last rows are new ones beside pages.
///   void tilewright_forward(NewRowsForwardArguments, NewRowsTensorMaps, SnippetArguments<buffers, scalars>)
struct NewRowsTensorMaps : TensorMaps {
  NewRowsMaps more_of_k, more_of_v;
};

constexpr int kRaggedRows = 1 << 30;  // as many as a packed tensor may have
constexpr long long kRaggedTurn = 1LL << 34;
constexpr int kRaggedExtent = 0x7fff0000;  // of the last two dimensions: more than any index there

}  // namespace tilewright::abi::cuda
