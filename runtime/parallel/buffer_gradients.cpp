#include "runtime/parallel/buffer_gradients.hpp"

#include <algorithm>
#include <iterator>

#include "base/ceil_div.hpp"
#include "generator/spec/gradients.hpp"

namespace tilewright::parallel {
namespace {

// None for a scalar, which has one element.
std::vector<std::int64_t> extents_of(const Spec& spec, const Bindings& bindings,
                                     const std::string& name) {
  const auto buffer = spec.buffers.find(name);
  if (buffer == spec.buffers.end()) return {};
  const auto index = std::distance(spec.buffers.begin(), buffer);
  const auto extents = bindings.buffers()[static_cast<std::size_t>(index)].extents();
  return {extents.begin(), extents.end()};
}

}  // namespace

Slice BufferGradients::slice_of(int rank) const {
  const std::int64_t first = std::min(rank * longest_slice, elements);
  return {first, std::min(longest_slice, elements - first)};
}

std::int64_t BufferGradients::share_bytes() const {
  return elements * kShareElement;
}

std::int64_t BufferGradients::received_bytes(int ranks) const {
  return ranks * longest_slice * kShareElement;
}

std::int64_t BufferGradients::bytes_sent(int rank, int ranks) const {
  const std::int64_t own = slice_of(rank).count;
  return (elements - own + (ranks - 1) * own) * kShareElement;
}

std::int64_t BufferGradients::bytes_received(int rank, int ranks) const {
  return bytes_sent(rank, ranks);  // slices of all others come back for those that went
}

BufferGradients buffer_gradients(const Spec& spec, const Bindings& bindings, int ranks) {
  BufferGradients gradients;
  for (const std::string& name : gradient_names(spec)) {
    NamedGradient& made = gradients.named.emplace_back();
    made.name = name;
    made.extents = extents_of(spec, bindings, name);
    made.first = gradients.elements;
    std::int64_t count = 1;
    for (const std::int64_t extent : made.extents) count *= extent;
    gradients.elements += round_up(count, kSummedWidth);
  }
  gradients.longest_slice =
      round_up(ceil_div(gradients.elements, std::int64_t{ranks}), kSummedWidth);
  return gradients;
}

}  // namespace tilewright::parallel
