#pragma once

#include "abi/append.hpp"
#include "attention/stored_number.hpp"
#include "kernel/language.hpp"

// New rows of a spec without scales are stored as they are, but for their type.

namespace tw_kernel {

class RowScales {
 public:
  TW_MEMBER NoScale of_k(const tilewright::abi::AppendPlace&, const tilewright::abi::AppendedRow&,
                         int) const {
    return {};
  }
  TW_MEMBER NoScale of_v(const tilewright::abi::AppendPlace&, const tilewright::abi::AppendedRow&,
                         int) const {
    return {};
  }
};

}  // namespace tw_kernel
