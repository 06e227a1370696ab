#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "../verify/random.hpp"

namespace tilewright::verify::fuzz {

/// Random choices, as the makers of snippets write them down.
class SnippetDice {
 public:
  explicit SnippetDice(Random& random) : random_(random) {}

  /// 0 to count - 1.
  std::int64_t below(std::int64_t count) { return random_.integer(0, count - 1); }
  /// Least to greatest, both included.
  std::int64_t between(std::int64_t least, std::int64_t greatest) {
    return random_.integer(least, greatest);
  }
  bool one_in(std::int64_t count) { return below(count) == 0; }

  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }
  template <typename T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
  }

 private:
  Random& random_;
};

}  // namespace tilewright::verify::fuzz
