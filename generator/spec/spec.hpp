#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dtype.hpp"

namespace tilewright {

/// Order of a tensor's dimensions: bhsd is [batch, heads, sequence, head_dim], bshd is [batch,
/// sequence, heads, head_dim], packed is [rows of all sequences one after another, heads,
/// head_dim], and paged, of k and v alone, is [pages, page_size, heads, head_dim]. Strides are free
/// in all of them. paged_x, likewise, has k [pages, heads, head_dim / x, page_size, x], where x
/// elements are 16 bytes, and v [pages, heads, v_head_dim, page_size]; what a page has of a head is
/// contiguous, and the strides of pages and heads are free.
enum class Layout : std::uint8_t { bhsd, bshd, packed, paged, paged_x };

/// A run-time size that a buffer's dimension may be declared as.
/// q_len and kv_len exist in dense layouts, total_q and total_kv (rows of q, and of k and v, of all
/// sequences; of pools pages * page_size) in packed ones.
enum class NamedDim : std::uint8_t {
  batch,
  num_q_heads,
  num_kv_heads,
  q_len,
  kv_len,
  total_q,
  total_kv
};

/// A free dimension (`null` in JSON): any size, which the snippet reads as `x.size(i)`.
struct FreeDim {
  friend bool operator==(FreeDim, FreeDim) { return true; }
};

/// One dimension of a buffer: a fixed size, a named one, or a free one.
using BufferDim = std::variant<std::int64_t, NamedDim, FreeDim>;

/// What an index outside a buffer's extent does.
enum class Bounds : std::uint8_t {
  clamped,  ///< it is clamped to the extent, so no snippet can read foreign memory
  trusted,  ///< the author promises that there is none; nothing is checked
};

/// How products of f32 are computed on a GPU.
enum class F32Products : std::uint8_t {
  ieee,  ///< in float32
  tf32,  ///< on tensor cores: q, k, v and the weights are rounded to 11 significant bits
};

/// "ieee", "tf32".
std::string_view to_string(F32Products products);

/// Whether a buffer's values rise along its last dimension. `true` is Sorted::random.
class Sorted {
 public:
  enum Extent : std::uint8_t {
    no,
    random,    ///< random contents do; calls may give others
    promised,  ///< the contents of every call do, in each row: proofs of masks rely on it
  };

  constexpr Sorted() = default;
  constexpr Sorted(Extent extent) : extent_(extent) {}
  constexpr Sorted(bool rises) : extent_(rises ? random : no) {}

  explicit constexpr operator bool() const { return extent_ != no; }
  constexpr bool is_promised() const { return extent_ == promised; }

  friend bool operator==(Sorted, Sorted) = default;

 private:
  Extent extent_ = no;
};

/// A named tensor that a snippet reads: `slopes[h]`, `bias(h, q_idx, kv_idx)`.
struct BufferSpec {
  DType dtype = DType::f32;
  std::vector<BufferDim> shape = {};
  Bounds bounds = Bounds::clamped;
  std::optional<std::array<double, 2>> range = {};  ///< least and greatest value of random contents
  Sorted sorted = {};

  friend bool operator==(const BufferSpec&, const BufferSpec&) = default;
};

/// A named run-time number that a snippet reads. A new value never recompiles.
struct ScalarSpec {
  DType dtype = DType::f32;                  ///< f32 or i32; i64 of dropout's seed alone
  std::optional<double> default_value = {};  ///< without one every call must give the value

  friend bool operator==(const ScalarSpec&, const ScalarSpec&) = default;
};

/// Which tensors forward writes.
struct Outputs {
  bool out = true;   ///< always written
  bool lse = false;  ///< natural logarithm of the softmax's denominator, f32
  /// Greatest kept score of each row, after score_mod, f32 in lse's shape; -inf where nothing is
  /// kept. A sink is no score.
  bool max_scores = false;
  /// The softmax's weights exp(score - lse), [batch, num_q_heads, q_len, kv_len] in out's dtype: 0
  /// where an element is dropped. Of dense layouts, and only with lse.
  bool weights = false;

  friend bool operator==(const Outputs&, const Outputs&) = default;
};

/// ["out", "lse"]: what is written, in the order of the fields.
std::vector<std::string> output_names(const Outputs& outputs);

/// A forced tactic: the template's name and its parameters, as `tilewright bench` prints them.
struct TacticSpec {
  std::string name = {};  ///< "cpu", "portable" or "hopper"
  /// "q_tile", "kv_tile", ...; those that are absent are chosen.
  std::map<std::string, std::int64_t> parameters = {};

  friend bool operator==(const TacticSpec&, const TacticSpec&) = default;
};

/// What the user wants. The same fields as the JSON spec (docs/spec.md); a default here is the
/// default there. Nothing in it depends on a shape: batch, heads, lengths, strides, scale, scalar
/// values and buffer contents are given to each call and never recompile.
struct Spec {
  std::string name = {};  ///< for messages and pictures only; not part of any cache key
  DType dtype = DType::bf16;
  std::int64_t head_dim = 0;    ///< of q and k: 8 to 256
  std::int64_t v_head_dim = 0;  ///< of v and out, likewise; 0: head_dim
  Layout layout = Layout::bhsd;
  std::optional<Layout> kv_layout = {};  ///< of k and v; none: layout. paged goes with packed q
  /// paged k and v alone: each sequence's last q_len columns come from k_new and v_new of the call,
  /// [total_q, num_kv_heads, head_dim; v_head_dim in v_new] in dtype, and pages hold those before.
  bool kv_new = false;
  std::optional<DType> kv_dtype = {};   ///< of k and v; none: dtype
  std::optional<DType> out_dtype = {};  ///< none: dtype
  std::optional<double> scale = {};     ///< none: 1/sqrt(head_dim). A run-time value.
  std::string score_mod = {};           ///< C++; empty: none
  std::string mask_mod = {};            ///< C++; empty: none
  /// C++, or empty for 1: what stored values of q, k and v are to be multiplied by, and out's are
  /// divided by before they are stored. A scale is of what its text names: a head (b, h, h_kv), a
  /// row of q (q_idx, q_token; q_scale alone), or a row of k or v (kv_idx, kv_token; k_scale and
  /// v_scale alone). q_scale and k_scale multiply the score before score_mod sees it. k_new and
  /// v_new have no scales.
  std::string q_scale = {};
  std::string k_scale = {};
  std::string v_scale = {};
  std::string out_scale = {};  ///< goes with an f8 out_dtype
  /// C++, or empty for none: one more logit of each row, which has no value. It counts in lse. No
  /// scale multiplies it, and score_mod does not see it.
  std::string sink = {};
  /// C++, or empty for none: the probability with which a weight is dropped after the softmax;
  /// those that are kept are divided by what is left of 1. It sees h, and buffers and scalars. The
  /// spec has an i64 scalar, or an i64 buffer without dimensions, of the name "seed".
  std::string dropout = {};
  std::map<std::string, BufferSpec> buffers = {};
  std::map<std::string, ScalarSpec> scalars = {};
  std::array<std::int64_t, 2> block = {128, 128};  ///< sides of a tile of the block mask: q, kv
  Outputs outputs = {};
  /// What backward computes gradients of: "q", "k", "v", floating buffers and f32 scalars that
  /// score_mod reads. Not empty: outputs name lse, and the layout is dense.
  std::vector<std::string> gradients = {};
  /// true: snippets call the C library's or CUDA's functions, and score_mod is computed as written.
  /// false: they call faster functions in every dtype. None: see has_precise_functions.
  std::optional<bool> precise_math = {};
  F32Products f32_products = F32Products::ieee;  ///< of dtype f32; a CPU takes ieee
  std::optional<TacticSpec> tactic = {};

  /// The fields with their defaults resolved.
  std::int64_t value_head_dim() const { return v_head_dim == 0 ? head_dim : v_head_dim; }
  /// Columns of a row of q and k, and of v and out, in the tiles of a kernel: the head dim, padded
  /// with zeros to a multiple of 8 from 16 on.
  std::int64_t tile_head_dim() const;
  std::int64_t tile_value_dim() const;
  /// Whether a tile's rows have more columns than a tensor's. Such specs have no kernels of one
  /// byte, of decoding, of paged_x and of the Hopper template
  /// (docs/decisions/0069-head-dims-by-padding.md).
  bool pads_rows() const {
    return tile_head_dim() != head_dim || tile_value_dim() != value_head_dim();
  }
  /// Whether q_scale, k_scale, v_scale, out_scale or sink is there.
  bool has_scales_or_sink() const {
    return !q_scale.empty() || !k_scale.empty() || !v_scale.empty() || !out_scale.empty() ||
           !sink.empty();
  }
  /// Whether there is a snippet other than score_mod and mask_mod.
  bool has_other_snippets() const { return has_scales_or_sink() || has_dropout(); }
  bool has_dropout() const { return !dropout.empty(); }
  /// Whether dropout's seed is a buffer, which the device reads. Else it is a scalar.
  bool has_seed_buffer() const { return has_dropout() && buffers.contains("seed"); }
  /// Entries that scalars take in the arguments of a kernel. An i64 has its high word after all
  /// others.
  std::size_t scalar_entries() const;
  bool is_packed() const { return layout == Layout::packed; }
  /// k and v are pools of pages.
  bool is_paged() const { return key_value_layout() == Layout::paged || is_paged_x(); }
  bool is_paged_x() const { return key_value_layout() == Layout::paged_x; }
  Layout key_value_layout() const { return kv_layout.value_or(layout); }
  DType key_value_dtype() const { return kv_dtype.value_or(dtype); }
  DType output_dtype() const { return out_dtype.value_or(dtype); }
  double softmax_scale() const;
  /// Whether snippets call CUDA's own functions on a GPU, and divide and take roots exactly.
  bool has_precise_functions() const { return precise_math.value_or(dtype == DType::f32); }
  /// Whether a kernel may compute score_mod in another form than its text: numbers folded into the
  /// scale, a slope taken out, differences of indices taken apart.
  bool may_reshape_score_mod() const { return !precise_math.value_or(false); }

  friend bool operator==(const Spec&, const Spec&) = default;
};

/// Checks everything that can be checked without a compiler: ranges, names, snippets (snippet.hpp).
/// @throws Error with code spec or snippet for the first thing that is wrong.
void validate(const Spec& spec);

/// Elements of 16 bytes: x of paged_x.
std::int64_t x_of(DType kv_dtype);

/// "bhsd", "bshd", "packed", "paged", "paged_x".
std::string_view to_string(Layout layout);
/// "batch", "num_q_heads", "num_kv_heads", "q_len", "kv_len", "total_q", "total_kv".
std::string_view to_string(NamedDim dim);

}  // namespace tilewright
