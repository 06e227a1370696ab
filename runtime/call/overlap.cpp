#include "runtime/call/overlap.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tilewright {
namespace {

__extension__ typedef __int128 Wide;  // sums of distances that fit 64 bits each

constexpr int kMostSteps = 1 << 16;  // of a search: below a millisecond

// A dimension that counts: more than one element, and a positive stride in bytes.
struct Dimension {
  std::int64_t stride = 0;
  std::int64_t extent = 0;
  std::size_t index = 0;  // of the view
};

// Where a tensor's elements lie: runs of `width` bytes, one at each sum of multiples of strides.
// Dimensions that follow one another without a gap are joined into the width.
struct Runs {
  std::uintptr_t begin = 0;
  std::int64_t width = 0;
  std::array<Dimension, kMaxRank> dimensions = {};  // rising strides
  std::size_t count = 0;
  bool has_broadcast = false;  // stride 0 in a dimension with more than one element
  std::size_t broadcast = 0;
};

Runs runs_of(const TensorView& view) {
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  Runs runs{.begin = reinterpret_cast<std::uintptr_t>(view.data), .width = element};
  for (std::size_t d = 0; d < static_cast<std::size_t>(view.rank); ++d) {
    if (view.shape[d] == 1) continue;
    std::int64_t stride = view.strides[d] * element;
    if (stride == 0) {
      runs.has_broadcast = true;
      runs.broadcast = d;
      continue;
    }
    if (stride < 0) {
      runs.begin -=
          static_cast<std::uintptr_t>(-stride) * static_cast<std::uintptr_t>(view.shape[d] - 1);
      stride = -stride;
    }
    std::size_t at = runs.count++;
    for (; at > 0 && runs.dimensions[at - 1].stride > stride; --at) {
      runs.dimensions[at] = runs.dimensions[at - 1];
    }
    runs.dimensions[at] = {stride, view.shape[d], d};
  }
  return runs;
}

Runs joined(Runs runs) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < runs.count; ++i) {
    const Dimension& dimension = runs.dimensions[i];
    if (kept == 0 && dimension.stride == runs.width) {
      runs.width *= dimension.extent;
    } else {
      runs.dimensions[kept++] = dimension;
    }
  }
  runs.count = kept;
  return runs;
}

// lo <= factor <= hi
struct Term {
  std::int64_t stride = 0;
  Wide lo = 0;
  Wide hi = 0;
};

Wide floor_div(Wide a, std::int64_t b) {
  const Wide quotient = a / b;
  return quotient * b > a ? quotient - 1 : quotient;
}

// Looks for factors with low < start + sum of factor * stride < high. Terms come with falling
// strides, so that what the later ones can reach leaves few factors of the first.
class Search {
 public:
  Search(Wide low, Wide high) : low_(low), high_(high) {}

  void add(const Term& term) { terms_[count_++] = term; }

  bool finds(Wide start) {
    least_[count_] = greatest_[count_] = 0;
    for (std::size_t i = count_; i-- > 0;) {
      least_[i] = least_[i + 1] + terms_[i].lo * terms_[i].stride;
      greatest_[i] = greatest_[i + 1] + terms_[i].hi * terms_[i].stride;
    }
    return finds_from(0, start);
  }

  std::int64_t factor(std::size_t term) const { return static_cast<std::int64_t>(factors_[term]); }

 private:
  bool finds_from(std::size_t i, Wide sum) {
    if (sum + greatest_[i] <= low_ || sum + least_[i] >= high_) return false;
    if (i == count_) return true;
    const Term& term = terms_[i];
    const Wide from = std::max(term.lo, floor_div(low_ - greatest_[i + 1] - sum, term.stride) + 1);
    const Wide to = std::min(term.hi, floor_div(high_ - least_[i + 1] - sum - 1, term.stride));
    for (Wide factor = from; factor <= to; ++factor) {
      factors_[i] = factor;
      if (++steps_ > kMostSteps) return true;  // undecided
      if (finds_from(i + 1, sum + factor * term.stride)) return true;
    }
    factors_[i] = 0;
    return false;
  }

  Wide low_, high_;
  std::size_t count_ = 0;
  int steps_ = 0;
  std::array<Term, 2 * kMaxRank> terms_ = {};
  std::array<Wide, 2 *kMaxRank + 1> least_ = {}, greatest_ = {};
  std::array<Wide, 2 * kMaxRank> factors_ = {};
};

// Each stride is at least as long as what lies inside it.
bool nest(const Runs& runs) {
  std::int64_t inside = runs.width;
  for (std::size_t i = 0; i < runs.count; ++i) {
    const Dimension& dimension = runs.dimensions[i];
    if (dimension.stride < inside) return false;
    inside += dimension.stride * (dimension.extent - 1);
  }
  return true;
}

}  // namespace

ByteRange byte_range(const TensorView& view) {
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  std::int64_t before = 0, after = element;
  for (int d = 0; d < view.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (view.shape[i] == 0) return {};
    const std::int64_t reach = view.strides[i] * (view.shape[i] - 1) * element;
    (reach < 0 ? before : after) += reach;
  }
  const auto data = reinterpret_cast<std::uintptr_t>(view.data);
  return {data + static_cast<std::uintptr_t>(before), data + static_cast<std::uintptr_t>(after)};
}

std::optional<SharedElements> find_shared_elements(const TensorView& view) {
  if (view.numel() < 2) return std::nullopt;
  const Runs runs = runs_of(view);
  SharedElements shared;
  if (runs.has_broadcast) {
    shared.second[runs.broadcast] = 1;
    return shared;
  }
  if (nest(runs)) return std::nullopt;
  // Of two elements that share bytes one comes first in the dimension of the greatest stride in
  // which they differ.
  for (std::size_t first = runs.count; first-- > 0;) {
    Search search(-runs.width, runs.width);
    for (std::size_t i = first + 1; i-- > 0;) {
      const Dimension& dimension = runs.dimensions[i];
      const Wide most = dimension.extent - 1;
      search.add({dimension.stride, i == first ? Wide{1} : -most, most});
    }
    if (!search.finds(0)) continue;
    for (std::size_t i = 0; i <= first; ++i) {
      const bool is_negative =
          (runs.dimensions[i].stride > 0) != (view.strides[runs.dimensions[i].index] > 0);
      const std::int64_t factor = search.factor(first - i) * (is_negative ? -1 : 1);
      (factor > 0 ? shared.first : shared.second)[runs.dimensions[i].index] =
          factor > 0 ? factor : -factor;
    }
    return shared;
  }
  return std::nullopt;
}

bool overlap(const TensorView& a, const TensorView& b) {
  const ByteRange range_a = byte_range(a), range_b = byte_range(b);
  if (!range_a.meets(range_b)) return false;
  const Runs of_a = joined(runs_of(a)), of_b = joined(runs_of(b));
  // The difference of two runs' starts. Equal strides of both make one term.
  Search search(-of_a.width, of_b.width);
  std::size_t i = of_a.count, j = of_b.count;
  while (i > 0 || j > 0) {
    const std::int64_t stride_a = i > 0 ? of_a.dimensions[i - 1].stride : 0;
    const std::int64_t stride_b = j > 0 ? of_b.dimensions[j - 1].stride : 0;
    Term term{.stride = std::max(stride_a, stride_b)};
    if (stride_a == term.stride) term.hi = of_a.dimensions[--i].extent - 1;
    if (stride_b == term.stride) term.lo = 1 - of_b.dimensions[--j].extent;
    search.add(term);
  }
  return search.finds(static_cast<Wide>(of_a.begin) - static_cast<Wide>(of_b.begin));
}

bool is_same_memory(const TensorView& a, const TensorView& b) {
  if (a.data != b.data || a.rank != b.rank || size_of(a.dtype) != size_of(b.dtype)) return false;
  for (int d = 0; d < a.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (a.shape[i] != b.shape[i]) return false;
    if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

}  // namespace tilewright
