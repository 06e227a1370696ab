#pragma once

#include <optional>
#include <string>

#include "../attention_values.hpp"
#include "../guarded_tensor.hpp"
#include "case.hpp"

namespace tilewright::verify::fuzz {

/// The memory that one forward of a case writes to, with red zones.
struct Written {
  explicit Written(const FuzzCase& fuzz_case);

  AttentionValues values() const;

  /// "out was written to: 3 elements behind its end ..."; empty where nothing around out and lse
  /// was.
  std::string damage() const;

  GuardedTensor out;
  std::optional<GuardedTensor> lse;
  Layout layout;
};

/// Whether each number has the bits of the other's, its zeros their signs. Any NaN is as good as
/// another: its payload is not promised.
bool same_bits(const Values& a, const Values& b);

}  // namespace tilewright::verify::fuzz
