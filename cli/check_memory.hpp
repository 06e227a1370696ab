#pragma once

namespace tilewright::cli {

/// The sizes of a call that `check` looks at, in elements.
struct CheckSizes {
  double q = 0, k = 0, v = 0, out = 0, weights = 0;
  double rows = 0;     ///< of scores
  double results = 1;  ///< judged results: the kernel's, --beside's, --expect's
  bool has_gradients = false;
  bool has_16_bits = false;   ///< 16-bit dtype: the naive gradients are computed four times
  double named = 0;           ///< elements of all gradients of buffers and scalars
  double greatest_named = 0;  ///< elements of the largest of them
  double kv_heads = 1;
};

/// The bytes that `check` takes in addition to the call's tensors.
double bytes_of_check(const CheckSizes& sizes);

}  // namespace tilewright::cli
