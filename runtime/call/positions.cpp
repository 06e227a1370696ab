#include "runtime/call/positions.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright {
namespace {

constexpr const char* kMakeThem =
    "make them by the block_mask of a dense Attention with the same mask_mod and block, or from "
    "lists with attention.position_fingerprint(length, heads, bindings)";

template <typename OfLists, typename OfCall>
void require_equal(std::string_view what, const OfLists& of_lists, const OfCall& of_call) {
  if (of_lists == of_call) return;
  throw Error(ErrorCode::block_mask,
              fmt::format("the positions were built for {} {}, but the plan has {}", what, of_lists,
                          of_call),
              kMakeThem);
}

void require_one_sequence(const BlockMask& positions) {
  const Shape& shape = positions.fingerprint().shape;
  if (shape.batch != 1) {
    throw Error(ErrorCode::block_mask,
                fmt::format("the positions have lists for batch {}; they must be one sequence's",
                            shape.batch),
                kMakeThem);
  }
  if (shape.q_offset == 0 && shape.kv_offset == 0) return;
  throw Error(ErrorCode::block_mask,
              fmt::format("the positions were built with q_offset {} and kv_offset {}; both must "
                          "be 0",
                          shape.q_offset, shape.kv_offset),
              "build them for all positions from 0 on; the plan takes each sequence's offset");
}

void require_heads(const BlockMask& positions, const PackedShape& shape) {
  const std::int64_t heads = positions.heads();
  if (heads != 1) require_equal("num_q_heads", heads, shape.num_q_heads);
  const MaskFingerprint::Counts& counts = positions.fingerprint().counts;
  if (counts.num_q_heads != 0) require_equal("num_q_heads", counts.num_q_heads, shape.num_q_heads);
  if (counts.num_kv_heads != 0) {
    require_equal("num_kv_heads", counts.num_kv_heads, shape.num_kv_heads);
  }
}

// A dense spec may have more scalars than the packed one.
void require_scalars(const MaskFingerprint& built, const MaskSource& source,
                     const Bindings& bindings) {
  require_equal("this many scalars:", built.scalars.size(), source.scalars.size());
  for (std::size_t i = 0; i < source.scalars.size(); ++i) {
    const MaskSource::Scalar& scalar = source.scalars[i];
    require_equal("the scalar", built.source.scalars[i].name, scalar.name);
    const double value = bindings.scalars()[scalar.index];
    const bool same_bits =
        std::bit_cast<std::uint64_t>(built.scalars[i]) == std::bit_cast<std::uint64_t>(value);
    if (!same_bits) require_equal(scalar.name + " =", built.scalars[i], value);
  }
}

}  // namespace

void require_takes_positions(const Spec& spec) {
  if (!spec.is_packed()) {
    throw Error(ErrorCode::usage,
                fmt::format("layout is \"{}\", and positions are for plans of packed calls",
                            to_string(spec.layout)),
                "pass a block mask of the call's shape to forward");
  }
  if (spec.mask_mod.empty()) {
    throw Error(ErrorCode::usage,
                "the spec has no mask_mod, so its calls visit every tile and take no positions",
                R"(write "mask_mod": "true" in the spec, so that the lists alone decide)");
  }
  const Snippet snippet = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  for (const std::string_view name : {"b", "q_len", "kv_len", "q_token", "kv_token"}) {
    if (!snippet.mentions(name)) continue;
    throw Error(ErrorCode::usage,
                fmt::format("mask_mod reads {}, which differs between sequences, and positions are "
                            "the same lists for all of them",
                            name),
                "leave positions out: the plan decides the tiles by mask_mod");
  }
}

void require_positions_fit(const BlockMask& positions, const MaskSource& source,
                           const PackedShape& shape, const Bindings& bindings) {
  static_cast<void>(positions.path());  // was it moved from?
  const MaskFingerprint& built = positions.fingerprint();
  require_equal("the mask_mod", built.source.mask_mod, source.mask_mod);
  require_equal("a q block of", built.source.block[0], source.block[0]);
  require_equal("a kv block of", built.source.block[1], source.block[1]);
  require_one_sequence(positions);
  require_heads(positions, shape);
  require_scalars(built, source, bindings);
}

}  // namespace tilewright
