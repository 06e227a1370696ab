#include "fuzz/snippet_declarations.hpp"

#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tilewright::verify::fuzz {
namespace {

double greatest_finite(DType floating) {
  if (floating == DType::f16) return 65504;
  if (floating == DType::bf16) return 0x1.fep127;
  return std::numeric_limits<float>::max();
}

}  // namespace

// What the wish asks for, as far as neither snippet has declared it yet.
void SnippetDeclarations::declare_wanted() {
  if (bits(wish_.features, Factor::buffer) > 1 && spec_.buffers.empty()) {
    declare_buffer(wanted_buffer_dtype(), wanted_rank());
  }
  if (is_wanted(wish_, Factor::scalar, 1)) declare_scalar(DType::f32);
  if (is_wanted(wish_, Factor::scalar, 2)) declare_scalar(DType::i32);
}

std::string SnippetDeclarations::declare_buffer(DType dtype, std::size_t rank) {
  const std::string name = new_name(is_floating(dtype) ? "bias" : "table");
  BufferSpec buffer{.dtype = dtype, .shape = random_dims(rank), .range = range_of(dtype)};
  const bool may_trust = is_wanted(wish_, Factor::bounds, 2);
  if (may_trust) buffer.bounds = Bounds::trusted;
  buffer.sorted = one_in(3);
  if (buffer.sorted && rank > 0 && one_in(2)) buffer.sorted = Sorted::promised;
  spec_.buffers.emplace(name, std::move(buffer));
  return name;
}

std::string SnippetDeclarations::declare_padding() {
  const DType dtype = one_of({DType::f32, DType::f16, DType::bf16});
  const double limit = greatest_finite(one_of({dtype, DType::f16}));
  BufferSpec buffer{.dtype = dtype,
                    .shape = {wish_.is_packed ? NamedDim::total_kv : NamedDim::kv_len}};
  if (!is_wanted(wish_, Factor::mask_scope, 1) && one_in(2)) {
    buffer.shape.insert(buffer.shape.begin(), NamedDim::batch);
  }
  const double least = one_in(4) ? 0.0 : -limit;
  buffer.range = {least, least == 0 || one_in(4) ? limit : one_of({0.0, 0.0, least})};
  std::string name = new_name("padding");
  spec_.buffers.emplace(name, std::move(buffer));
  return name;
}

DType SnippetDeclarations::wanted_buffer_dtype() {
  std::vector<DType> dtypes;
  if (is_wanted(wish_, Factor::buffer, 1)) dtypes.push_back(DType::f32);
  if (is_wanted(wish_, Factor::buffer, 2)) dtypes.push_back(one_of({DType::f16, DType::bf16}));
  if (is_wanted(wish_, Factor::buffer, 3)) dtypes.push_back(DType::i32);
  if (is_wanted(wish_, Factor::buffer, 4)) dtypes.push_back(one_of({DType::i64, DType::u32}));
  if (is_wanted(wish_, Factor::buffer, 5)) {
    dtypes.push_back(one_of({DType::u8, DType::i8, DType::boolean}));
  }
  if (is_wanted(wish_, Factor::buffer, 6)) dtypes.push_back(one_of({DType::i16, DType::u16}));
  if (is_wanted(wish_, Factor::buffer, 7)) dtypes.push_back(DType::f64);
  return dtypes.empty() ? one_of({DType::f32, DType::i32}) : one_of(dtypes);
}

std::size_t SnippetDeclarations::wanted_rank() {
  constexpr std::array<std::size_t, 7> kRanks = {1, 1, 2, 3, 4, 0, 5};  // of the factor's values
  for (int value = 1; value < static_cast<int>(kRanks.size()); ++value) {
    if (is_wanted(wish_, Factor::rank, value)) return kRanks[static_cast<std::size_t>(value)];
  }
  return one_of<std::size_t>({0, 1, 1, 1, 2, 2, 2, 5});
}

// Few of a buffer's dimensions are lengths, or it would fill the memory; nor are they batches of
// packed calls, which have up to 40 sequences.
std::vector<BufferDim> SnippetDeclarations::random_dims(std::size_t rank) {
  std::vector<BufferDim> dims;
  std::size_t lengths_left = rank <= 2 ? 2 : 1;
  for (std::size_t d = 0; d < rank; ++d) {
    if (d == 0 && is_wanted(wish_, Factor::buffer_sharing, 1)) {
      dims.emplace_back(one_of({NamedDim::batch, NamedDim::num_q_heads}));
      if (is_long(dims.back())) --lengths_left;
    } else if (lengths_left > 0 && below(10) < 6) {
      --lengths_left;
      dims.push_back(random_length());
    } else {
      dims.push_back(random_short_dim());
      if (!is_long(dims.back())) continue;
      if (lengths_left > 0) {
        --lengths_left;
      } else {
        dims.back() = std::int64_t{2};
      }
    }
  }
  return dims;
}

bool SnippetDeclarations::is_long(const BufferDim& dim) const {
  const auto* const named = std::get_if<NamedDim>(&dim);
  return wish_.is_packed && named != nullptr && *named == NamedDim::batch;
}

BufferDim SnippetDeclarations::random_length() {
  switch (below(6)) {
    case 0:
    case 1:
      return wish_.is_packed ? NamedDim::total_q : NamedDim::q_len;
    case 2:
      return FreeDim{};
    default:
      return wish_.is_packed ? NamedDim::total_kv : NamedDim::kv_len;
  }
}

// A mask that heads and batches share reads nothing of theirs.
BufferDim SnippetDeclarations::random_short_dim() {
  switch (is_wanted(wish_, Factor::mask_scope, 1) ? 3 : below(4)) {
    case 0:
      return NamedDim::batch;
    case 1:
      return NamedDim::num_q_heads;
    case 2:
      return NamedDim::num_kv_heads;
    default:
      return std::int64_t{1} << below(5);
  }
}

std::array<double, 2> SnippetDeclarations::range_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f64:
      return {-1.5, 1.5};
    case DType::i32:
      return below(2) == 0 ? std::array<double, 2>{0, 7} : std::array<double, 2>{-100, 100};
    case DType::i16:
      return {-100, 100};
    case DType::u16:
      return {0, 100};
    case DType::i64:
      return {-1000, 1000};
    case DType::u32:
      return {0, 1000};
    case DType::u8:
      return {0, 9};
    case DType::i8:
      return {-9, 9};
    case DType::boolean:
      return {0, 1};
  }
  return {0, 1};
}

std::string SnippetDeclarations::declare_scalar(DType dtype) {
  for (const auto& [name, scalar] : spec_.scalars) {
    if (scalar.dtype == dtype) return name;
  }
  const std::string name = new_name(dtype == DType::f32 ? "gain" : "width");
  ScalarSpec scalar{.dtype = dtype};
  if (one_in(2)) scalar.default_value = dtype == DType::f32 ? 1.25 : 7;
  spec_.scalars.emplace(name, scalar);
  return name;
}

std::string SnippetDeclarations::new_name(const char* stem) {
  for (int i = 0;; ++i) {
    std::string name = fmt::format("{}{}", stem, i);
    if (!spec_.buffers.contains(name) && !spec_.scalars.contains(name)) return name;
  }
}

std::vector<std::string> SnippetDeclarations::buffers(bool floating) const {
  std::vector<std::string> names;
  for (const auto& [name, buffer] : spec_.buffers) {
    if (is_floating(buffer.dtype) == floating && !name.starts_with("padding")) {
      names.push_back(name);
    }
  }
  return names;
}

std::optional<std::string> SnippetDeclarations::scalar(DType dtype) const {
  for (const auto& [name, scalar] : spec_.scalars) {
    if (scalar.dtype == dtype) return name;
  }
  return std::nullopt;
}

}  // namespace tilewright::verify::fuzz
