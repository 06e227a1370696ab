#include "runtime/api/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kDataAlignment = 64;
constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

std::string describe_shape(DType dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{} [{}]", to_string(dtype), fmt::join(shape, ", "));
}

// The product of the extents, checked so that every later offset fits 64 bits: an empty tensor may
// not have huge other extents either.
std::int64_t checked_bytes(DType dtype, std::span<const std::int64_t> shape) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  if (bytes == 0) {
    throw Error(ErrorCode::tensor,
                fmt::format("a tensor has dtype {}, which is none", static_cast<int>(dtype)),
                "tilewright::kAllDTypes lists the dtypes");
  }
  bool empty = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw Error(ErrorCode::tensor, fmt::format("a tensor cannot have a negative extent: {}",
                                                 describe_shape(dtype, shape)));
    }
    empty = empty || extent == 0;
    if (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      throw Error(ErrorCode::tensor, fmt::format("{} has more bytes than 64 bits can count",
                                                 describe_shape(dtype, shape)));
    }
  }
  return empty ? 0 : bytes;
}

std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMaxBytes : product;
}

void copy_elements(const TensorView& from, int dimension, const char* source, char*& target) {
  const std::size_t element = size_of(from.dtype);
  if (dimension == from.rank) {
    std::memcpy(target, source, element);
    target += element;
    return;
  }
  const auto d = static_cast<std::size_t>(dimension);
  if (dimension + 1 == from.rank && from.strides[d] == 1) {
    const std::size_t bytes = static_cast<std::size_t>(from.shape[d]) * element;
    if (bytes > 0) std::memcpy(target, source, bytes);
    target += bytes;
    return;
  }
  const std::int64_t step = from.strides[d] * static_cast<std::int64_t>(element);
  for (std::int64_t i = 0; i < from.shape[d]; ++i) {
    copy_elements(from, dimension + 1, source + i * step, target);
  }
}

}  // namespace

TensorView TensorView::contiguous(void* data, DType dtype, std::span<const std::int64_t> shape) {
  if (shape.size() > kMaxRank) {
    throw Error(ErrorCode::tensor,
                fmt::format("{} has rank {}; at most {} is supported", describe_shape(dtype, shape),
                            shape.size(), kMaxRank));
  }
  checked_bytes(dtype, shape);
  TensorView view{.data = data, .dtype = dtype, .rank = static_cast<int>(shape.size())};
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    view.shape[d] = shape[d];
    view.strides[d] = stride;
    stride *= shape[d] > 0 ? shape[d] : 1;
  }
  return view;
}

TensorView TensorView::contiguous(void* data, DType dtype,
                                  std::initializer_list<std::int64_t> shape) {
  return contiguous(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size()));
}

TensorView TensorView::contiguous(const void* data, DType dtype,
                                  std::span<const std::int64_t> shape) {
  return contiguous(const_cast<void*>(data), dtype, shape);
}

TensorView TensorView::contiguous(const void* data, DType dtype,
                                  std::initializer_list<std::int64_t> shape) {
  return contiguous(const_cast<void*>(data), dtype, shape);
}

std::int64_t TensorView::numel() const {
  std::int64_t count = 1;
  for (std::int64_t extent : extents()) count = saturated_product(count, extent);
  return count;
}

std::int64_t TensorView::bytes() const {
  return saturated_product(numel(), static_cast<std::int64_t>(size_of(dtype)));
}

bool TensorView::is_contiguous() const {
  if (numel() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t d = extents().size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected = saturated_product(expected, shape[d]);
  }
  return true;
}

bool TensorView::has_shape_of(const TensorView& other) const {
  const auto a = extents(), b = other.extents();
  return rank == other.rank && std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string TensorView::describe() const {
  return describe_shape(dtype, extents());
}

std::string TensorView::fault() const {
  if (rank < 0 || rank > kMaxRank) {
    return fmt::format("has rank {}; a tensor has 0 to {} dimensions", rank, kMaxRank);
  }
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  if (element == 0) return fmt::format("has dtype {}, which is none", static_cast<int>(dtype));
  // One pass, as each call asks each of its tensors.
  std::int64_t byte_count = element, least = 0, greatest = 0;
  bool is_empty = false, is_countable = true;
  int too_far = -1;
  for (int d = 0; d < rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (shape[at] < 0) return fmt::format("has extent {} in dimension {}", shape[at], d);
    is_empty = is_empty || shape[at] == 0;
    if (__builtin_mul_overflow(byte_count, shape[at], &byte_count)) is_countable = false;
    std::int64_t reach = 0;
    std::int64_t& end = strides[at] < 0 ? least : greatest;
    if ((__builtin_mul_overflow(strides[at], element, &reach) ||
         __builtin_mul_overflow(reach, shape[at] - 1, &reach) ||
         __builtin_add_overflow(end, reach, &end)) &&
        too_far < 0) {
      too_far = d;
    }
  }
  if (is_empty) return {};
  if (data == nullptr) return "has no data";
  if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(element) != 0) {
    return "does not start at a multiple of its element's size";
  }
  if (!is_countable || byte_count == kMaxBytes) return "has more bytes than 64 bits can count";
  if (too_far >= 0) {
    return fmt::format("has stride {} in dimension {}, further than 64 bits can count",
                       strides[static_cast<std::size_t>(too_far)], too_far);
  }
  return {};
}

Tensor::Tensor(Tensor&& other) noexcept
    : memory_(std::move(other.memory_)), view_(std::exchange(other.view_, {.rank = 1})) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  memory_ = std::move(other.memory_);
  view_ = std::exchange(other.view_, {.rank = 1});
  return *this;
}

Tensor Tensor::zeros(DType dtype, std::span<const std::int64_t> shape) {
  Tensor tensor;
  tensor.view_ = TensorView::contiguous(static_cast<void*>(nullptr), dtype, shape);
  // calloc, not aligned_alloc: untouched pages cost neither time nor memory.
  std::size_t room = static_cast<std::size_t>(tensor.bytes()) + kDataAlignment;
  tensor.memory_.reset(std::calloc(1, room));
  if (!tensor.memory_) {
    throw Error(ErrorCode::memory,
                fmt::format("no memory for {} ({} bytes)", tensor.describe(), tensor.bytes()),
                "use a smaller shape, or raise the memory limit of this process");
  }
  void* start = tensor.memory_.get();
  tensor.view_.data = std::align(kDataAlignment, room - kDataAlignment, start, room);
  return tensor;
}

Tensor Tensor::zeros(DType dtype, std::initializer_list<std::int64_t> shape) {
  return zeros(dtype, std::span<const std::int64_t>(shape.begin(), shape.size()));
}

Tensor Tensor::copy_of(const TensorView& view) {
  if (const std::string fault = view.fault(); !fault.empty()) {
    throw Error(ErrorCode::tensor, "a tensor to copy " + fault);
  }
  Tensor tensor = zeros(view.dtype, view.extents());
  char* target = static_cast<char*>(tensor.data());
  if (tensor.bytes() > 0) copy_elements(view, 0, static_cast<const char*>(view.data), target);
  return tensor;
}

}  // namespace tilewright
