#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "../../generator/spec/spec.hpp"
#include "../api/tensor.hpp"
#include "forward_call.hpp"

namespace tilewright {

/// Sizes of a tensor of a call, whatever its layout. Of a pool batch counts pages, rows those of a
/// page; a packed tensor has batch 1.
struct TensorSizes {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t width;
};

/// What is known of one tensor before a call: for its checks and their messages.
struct TensorRole {
  std::string_view name;
  DType dtype;
  Layout layout;
  std::string_view heads;  ///< "num_q_heads"
  std::string_view rows;
  std::string_view width;
  /// Of paged_x alone: elements of a row that lie together, x of k and 1 of v.
  std::int64_t x = 0;

  /// @param why the end of a sentence: "has rank 4"
  [[noreturn]] void refuse(const TensorView& view, const std::string& why) const;
};

/// Whether a tensor has elements and no memory. One without elements may be null, as the data of an
/// empty std::vector is.
bool lacks_data(const TensorView& view);

/// Checks a tensor against its role and reads its sizes off it.
/// @throws Error with code tensor
TensorSizes sizes_of(const TensorRole& role, const TensorView& view);

/// @param because what has the wanted size: "the spec's head_dim"
/// @throws Error with code tensor
void require_size(const TensorRole& role, const TensorView& view, std::string_view what,
                  std::int64_t given, std::int64_t wanted, std::string_view because);

/// @throws Error with code tensor where two elements share bytes
void require_own_elements(const TensorRole& role, const TensorView& view);

/// Rows of all pages of a pool.
/// @throws Error with code tensor where they have more than 31 bits
std::int64_t rows_of_pool(const TensorView& k, const TensorSizes& sizes);

/// @param view that sizes_of took. The stride of rows in paged_x is the role's x
ResolvedTensor resolved(const TensorView& view, Layout layout);

/// Whether every row begins at a multiple of the 16 bytes that a GPU copies at once.
bool is_aligned(const ResolvedTensor& tensor, DType dtype);

}  // namespace tilewright
