#include "runtime/call/promised_order.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright {
namespace {

std::int64_t extent_of(const TensorView& tensor, int dim) {
  const auto i = static_cast<std::size_t>(dim);
  return tensor.strides[i] == 0 ? 1 : tensor.shape[i];
}

// Its indices, and its offset in the tensor.
struct PlacedElement {
  std::array<std::int64_t, kMaxRank> index = {};
  std::int64_t offset = 0;
};

PlacedElement element_at(const TensorView& tensor, std::int64_t place) {
  PlacedElement element;
  for (int dim = tensor.rank - 1; dim >= 0; --dim) {
    const auto i = static_cast<std::size_t>(dim);
    element.index[i] = place % extent_of(tensor, dim);
    element.offset += element.index[i] * tensor.strides[i];
    place /= extent_of(tensor, dim);
  }
  return element;
}

std::string name_of_element(const std::string& name, const TensorView& tensor, std::int64_t place) {
  const PlacedElement element = element_at(tensor, place);
  const auto rank = static_cast<std::size_t>(tensor.rank);
  return rank == 1
             ? fmt::format("{}[{}]", name, element.index[0])
             : fmt::format("{}({})", name,
                           fmt::join(element.index.begin(), element.index.begin() + rank, ", "));
}

// Number: one that orders as the elements do.
template <typename Number, typename At>
abi::UnsortedElements scan_rows(const TensorView& tensor, std::size_t buffer, const At& at) {
  abi::UnsortedElements found = {};
  std::int64_t rows = 1;
  for (int dim = 0; dim + 1 < tensor.rank; ++dim) rows *= extent_of(tensor, dim);
  const std::int64_t width = extent_of(tensor, tensor.rank - 1);
  const std::int64_t stride = tensor.strides[static_cast<std::size_t>(tensor.rank - 1)];
  for (std::int64_t row = 0; row < rows && width > 0; ++row) {
    const std::int64_t begin = element_at(tensor, row * width).offset;
    Number before = at(begin);
    for (std::int64_t i = 1; i < width; ++i) {
      const Number value = at(begin + i * stride);
      if (!(before <= value) && found.count++ == 0) {
        found.first = abi::unsorted_element(static_cast<int>(buffer), row * width + i);
        if constexpr (std::is_integral_v<Number>) {
          found.value = value;
          found.before = before;
        }
      }
      before = value;
    }
  }
  return found;
}

template <typename Stored>
auto reader_of(const TensorView& tensor) {
  return [data = static_cast<const Stored*>(tensor.data)](std::int64_t i) { return data[i]; };
}

}  // namespace

abi::UnsortedElements find_unsorted(const TensorView& tensor, std::size_t buffer) {
  if (tensor.rank == 0) return {};
  switch (tensor.dtype) {
    case DType::i32:
      return scan_rows<std::int32_t>(tensor, buffer, reader_of<std::int32_t>(tensor));
    case DType::i64:
      return scan_rows<std::int64_t>(tensor, buffer, reader_of<std::int64_t>(tensor));
    case DType::u8:
      return scan_rows<int>(tensor, buffer, reader_of<std::uint8_t>(tensor));
    case DType::boolean:
      return scan_rows<int>(tensor, buffer,
                            [data = static_cast<const std::uint8_t*>(tensor.data)](std::int64_t i) {
                              return data[i] != 0 ? 1 : 0;
                            });
    case DType::i8:
      return scan_rows<int>(tensor, buffer,
                            [data = static_cast<const std::int8_t*>(tensor.data)](std::int64_t i) {
                              return static_cast<int>(data[i]);
                            });
    case DType::i16:
      return scan_rows<int>(tensor, buffer, reader_of<std::int16_t>(tensor));
    case DType::u16:
      return scan_rows<int>(tensor, buffer, reader_of<std::uint16_t>(tensor));
    case DType::u32:
      return scan_rows<std::int64_t>(tensor, buffer, reader_of<std::uint32_t>(tensor));
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      break;
  }
  return scan_rows<double>(
      tensor, buffer, [&](std::int64_t i) { return read_element(tensor.data, tensor.dtype, i); });
}

std::optional<std::string> describe_unsorted(const std::string& name, const TensorView& tensor) {
  const abi::UnsortedElements found = find_unsorted(tensor);
  if (found.count == 0) return std::nullopt;
  const std::int64_t place = abi::place_of_unsorted(found.first);
  const std::string element = name_of_element(name, tensor, place);
  if (!is_floating(tensor.dtype)) {
    return fmt::format("{} is {} after {}", element, found.value, found.before);
  }
  const auto value = [&](std::int64_t at) {
    return read_element(tensor.data, tensor.dtype, element_at(tensor, at).offset);
  };
  return fmt::format("{} is {} after {}", element, value(place), value(place - 1));
}

void PromisedOrder::bind(const Bindings& bindings) {
  tensors_.clear();
  for (const PromisedBuffer& promised : buffers_) {
    tensors_.push_back(bindings.buffers()[promised.buffer]);
  }
}

abi::UnsortedElements PromisedOrder::find() const {
  abi::UnsortedElements all = {};
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const abi::UnsortedElements found = find_unsorted(tensors_[i], buffers_[i].buffer);
    if (found.count == 0) continue;
    const unsigned long long before = all.count;
    if (before == 0) all = found;
    all.count = before + found.count;
  }
  return all;
}

PlanReport::Value PromisedOrder::value_of(const abi::UnsortedElements& unsorted) const {
  const auto buffer = static_cast<std::size_t>(abi::buffer_of_unsorted(unsorted.first));
  const auto promised = std::find_if(buffers_.begin(), buffers_.end(),
                                     [&](const PromisedBuffer& p) { return p.buffer == buffer; });
  const std::int64_t place = abi::place_of_unsorted(unsorted.first);
  if (promised == buffers_.end()) {
    throw Error(ErrorCode::usage, "the plan's workspace holds no plan any more",
                "it is the plan's memory until the last call that uses it is done");
  }
  const auto& tensor = tensors_[static_cast<std::size_t>(promised - buffers_.begin())];
  return {.kind = PlanReport::Kind::unsorted,
          .sequence = -1,
          .place = place,
          .value = unsorted.value,
          .limit = unsorted.before,
          .element = name_of_element(promised->name, tensor, place)};
}

}  // namespace tilewright
