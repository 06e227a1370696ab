#include "verify/guarded_tensor.hpp"

#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace tilewright::verify {
namespace {

std::int64_t guard_elements(DType dtype) {
  return GuardedTensor::kGuardBytes / static_cast<std::int64_t>(size_of(dtype));
}

// The bytes of one guard element: a quiet NaN, with its own payload where there is room.
std::uint64_t guard_pattern(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x7ff8dead5a5a5a5a;
    case DType::f32:
      return 0x7fcdead5;
    case DType::f16:
      return 0x7ead;
    case DType::bf16:
      return 0x7fed;
    case DType::f8e4m3:
      return 0xff;
    case DType::f8e5m2:
      return 0xfe;
    default:
      return 0x5a5a5a5a5a5a5a5a;
  }
}

bool is_guard(const char* element, DType dtype) {
  const std::uint64_t pattern = guard_pattern(dtype);  // little endian, as all targets are
  return std::memcmp(element, &pattern, size_of(dtype)) == 0;
}

// Strides with padding after each row.
TensorView padded_view(void* data, DType dtype, std::span<const std::int64_t> shape,
                       std::int64_t row_padding) {
  TensorView view{.data = data,
                  .dtype = dtype,
                  .rank = static_cast<int>(shape.size()),
                  .shape = {},
                  .strides = {}};
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    view.shape[i] = shape[i];
    view.strides[i] = stride;
    stride *= shape[i];
    if (i + 1 == shape.size()) stride += row_padding;
  }
  return view;
}

std::int64_t elements_spanned(const TensorView& view) {
  if (view.numel() == 0) return 0;
  std::int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) {
    last +=
        (view.shape[static_cast<std::size_t>(i)] - 1) * view.strides[static_cast<std::size_t>(i)];
  }
  return last + 1;
}

// Calls visit(offset in elements) for every element, in row-major order.
template <typename Visit>
void for_each_offset(const TensorView& view, const Visit& visit, int dim = 0,
                     std::int64_t offset = 0) {
  if (dim == view.rank) return visit(offset);
  const auto d = static_cast<std::size_t>(dim);
  for (std::int64_t i = 0; i < view.shape[d]; ++i) {
    for_each_offset(view, visit, dim + 1, offset + i * view.strides[d]);
  }
}

}  // namespace

GuardedTensor::GuardedTensor(DType dtype, std::span<const std::int64_t> shape,
                             const Placement& placement)
    : view_(padded_view(nullptr, dtype, shape, placement.row_padding)) {
  const std::int64_t guard = guard_elements(dtype);
  const std::int64_t count = guard + placement.offset + elements_spanned(view_) + guard;
  memory_ = Tensor::zeros(dtype, {count});
  const std::uint64_t pattern = guard_pattern(dtype);
  auto* bytes = static_cast<char*>(memory_.data());
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(bytes + i * static_cast<std::int64_t>(size_of(dtype)), &pattern, size_of(dtype));
  }
  view_.data = bytes + (guard + placement.offset) * static_cast<std::int64_t>(size_of(dtype));
}

GuardedTensor GuardedTensor::copy_of(const TensorView& source, const Placement& placement) {
  GuardedTensor copy(source.dtype, source.extents(), placement);
  const auto bytes = static_cast<std::int64_t>(size_of(source.dtype));
  std::vector<std::int64_t> targets;
  for_each_offset(copy.view_, [&](std::int64_t offset) { targets.push_back(offset); });
  std::size_t next = 0;
  for_each_offset(source, [&](std::int64_t offset) {
    std::memcpy(static_cast<char*>(copy.view_.data) + targets[next++] * bytes,
                static_cast<const char*>(source.data) + offset * bytes,
                static_cast<std::size_t>(bytes));
  });
  return copy;
}

bool GuardedTensor::is_untouched(int dim, std::int64_t index) const {
  const auto d = static_cast<std::size_t>(dim);
  const auto bytes = static_cast<std::int64_t>(size_of(view_.dtype));
  TensorView slice = view_;
  slice.data = static_cast<char*>(view_.data) + index * view_.strides[d] * bytes;
  slice.shape[d] = 1;
  bool untouched = true;
  for_each_offset(slice, [&](std::int64_t offset) {
    const char* const element = static_cast<const char*>(slice.data) + offset * bytes;
    untouched = untouched && is_guard(element, view_.dtype);
  });
  return untouched;
}

std::optional<std::string> GuardedTensor::damage() const {
  const auto bytes = static_cast<std::int64_t>(size_of(view_.dtype));
  const auto* memory = static_cast<const char*>(memory_.data());
  const std::int64_t start = (static_cast<const char*>(view_.data) - memory) / bytes;
  const std::int64_t end = start + elements_spanned(view_);
  std::vector<bool> inside(static_cast<std::size_t>(memory_.numel()));
  for_each_offset(
      view_, [&](std::int64_t offset) { inside[static_cast<std::size_t>(start + offset)] = true; });
  std::int64_t before = 0, between = 0, after = 0;
  for (std::int64_t i = 0; i < memory_.numel(); ++i) {
    if (inside[static_cast<std::size_t>(i)] || is_guard(memory + i * bytes, view_.dtype)) continue;
    ++(i < start ? before : i < end ? between : after);
  }
  if (before + between + after == 0) return std::nullopt;
  return fmt::format(
      "{} elements before its start, {} between its rows and {} after its end were overwritten",
      before, between, after);
}

}  // namespace tilewright::verify
