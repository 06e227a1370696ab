#include "runtime/cpu/gradient_sums.hpp"

#include <algorithm>
#include <cstddef>

#include "runtime/cpu/thread_memory.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::cpu {
namespace {

// Parts of a call whose gradients of buffers are summed apart and then in order: as many as their
// sums have room for, whatever the number of threads.
constexpr std::int64_t kMostSums = 32;
constexpr std::int64_t kMostBytesOfParts = std::int64_t{64} << 20;

// The cell of a dense array as an element of a tensor of the same extents.
std::int64_t element_of(const TensorView& view, std::int64_t cell) {
  std::int64_t element = 0;
  for (std::size_t d = static_cast<std::size_t>(view.rank); d-- > 0;) {
    element += cell % view.shape[d] * view.strides[d];
    cell /= view.shape[d];
  }
  return element;
}

}  // namespace

abi::GradientArgument dense_cells(const TensorView& gradient, std::int64_t first) {
  abi::GradientArgument argument{.first = first, .size = {1, 1, 1, 1, 1}, .stride = {}};
  std::int64_t stride = 1;
  for (std::size_t d = static_cast<std::size_t>(gradient.rank); d-- > 0;) {
    argument.size[d] = gradient.shape[d];
    argument.stride[d] = gradient.shape[d] == 1 ? 0 : stride;
    stride *= gradient.shape[d];
  }
  return argument;
}

GradientSums::GradientSums(const std::vector<TensorView>& views) : views_(views) {
  for (const TensorView& view : views) {
    arguments_.push_back(dense_cells(view, cells_));
    cells_ += view.numel();
  }
}

void GradientSums::collect(std::int64_t items, Executor& threads,
                           const std::function<void(std::int64_t item, double* sums)>& run) const {
  if (cells_ == 0) {
    return threads.parallel_for(items, [&](std::int64_t item, int) { run(item, nullptr); });
  }
  const std::int64_t bytes = cells_ * static_cast<std::int64_t>(sizeof(double));
  const std::int64_t most = std::max<std::int64_t>(1, std::min(items, kMostSums));
  const std::int64_t parts = std::clamp<std::int64_t>(kMostBytesOfParts / bytes, 1, most);
  auto* const sums =
      static_cast<double*>(thread_memory(ThreadMemory::gradient_sums, parts * bytes));
  threads.parallel_for(parts, [&](std::int64_t part, int) {
    double* const own = sums + part * cells_;
    std::fill_n(own, cells_, 0.0);
    const std::int64_t end = items * (part + 1) / parts;
    for (std::int64_t item = items * part / parts; item < end; ++item) run(item, own);
  });
  std::int64_t first = 0;
  for (const TensorView& view : views_) {
    for (std::int64_t cell = 0; cell < view.numel(); ++cell) {
      double sum = 0;
      for (std::int64_t part = 0; part < parts; ++part) sum += sums[part * cells_ + first + cell];
      write_element(view.data, view.dtype, element_of(view, cell), sum);
    }
    first += view.numel();
  }
}

}  // namespace tilewright::cpu
