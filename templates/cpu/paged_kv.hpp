#pragma once

#include "abi/cpu.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/paged_rows.hpp"

// Where rows of K and V lie: in pages of a pool.

namespace tw_kernel {

using KvRows = PagedRows;

TW_INLINE KvRows k_rows(const ForwardArguments& call, int b, int h_kv) {
  return {call.k, call.snippet, b, h_kv};
}
TW_INLINE KvRows v_rows(const ForwardArguments& call, int b, int h_kv) {
  return {call.v, call.snippet, b, h_kv};
}

}  // namespace tw_kernel
