#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/device.hpp"

namespace tilewright::mutants {

/// A call that shows what no comparison with the reference shows.
struct SpecialCall {
  Spec spec;
  int launches = 1;
  /// What is wrong, as a sentence; empty where nothing is. A crash is an answer too.
  std::string (*run)(const Attention& attention, const Toolchain& kernels);
  bool takes_block_mask = false;  ///< AttentionOptions'
  bool serves_caches = false;  ///< the attention has the kernels of append, merge and quantise too
};

/// All of them for a device:
///   one key      out is that key's v, rounded: an exact test of conversions (one_key.hpp)
///   full tiles   mask_mod is not asked where a user's lists say that a tile is full
///   empty rows   without a mask_mod, rows of a user's lists with no tile give 0
///   slow         copies and warps that are late change nothing (slow_hardware.hpp)
///   functions    a CPU's elementary functions are as exact as docs/math.md says (functions.hpp)
///   caches       append, merge and quantise by their definitions (cache_calls.hpp)
///   packed       sequences of all kinds, on a CPU of one spec (packed_calls.hpp)
///   paged        the same over pages, one of them freed (paged_calls.hpp)
///   decode       few rows of q, on a GPU (decode_calls.hpp)
///   training     gradients, dropout and weights against the reference (training_calls.hpp)
///   fences       a CPU kernel's tensors, buffers and scratch memory end where memory ends
std::vector<SpecialCall> special_calls(Device::Kind device);

}  // namespace tilewright::mutants
