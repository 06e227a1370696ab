#include "runtime/call/merge_call.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "runtime/call/overlap.hpp"
#include "runtime/call/tensor_role.hpp"

namespace tilewright {
namespace {

// A tensor of the call and its name.
struct MergedTensor {
  std::string name;
  TensorView view;
};

TensorRole merged_role(const Spec& spec, std::string_view name) {
  return {name,
          spec.output_dtype(),
          spec.layout,
          "num_q_heads",
          spec.is_packed() ? "total_q" : "q_len",
          "v_head_dim"};
}

TensorSizes checked_sizes(const Spec& spec, const MergedTensor& out) {
  const TensorRole role = merged_role(spec, out.name);
  const TensorSizes sizes = sizes_of(role, out.view);
  require_size(role, out.view, "v_head_dim", sizes.width, spec.value_head_dim(),
               "the spec's v_head_dim");
  return sizes;
}

void require_sizes_of_out(const Spec& spec, const MergedTensor& part, const TensorSizes& out) {
  const TensorRole role = merged_role(spec, part.name);
  const TensorSizes sizes = checked_sizes(spec, part);
  require_size(role, part.view, "batch", sizes.batch, out.batch, "the batch of out");
  require_size(role, part.view, role.heads, sizes.heads, out.heads, "that of out");
  require_size(role, part.view, role.rows, sizes.rows, out.rows, "that of out");
}

void require_merged_lse(const Spec& spec, const MergedTensor& lse, const TensorSizes& out) {
  const std::array<std::int64_t, 3> dense = {out.batch, out.heads, out.rows};
  const std::span<const std::int64_t> wanted = std::span(dense).subspan(spec.is_packed() ? 1 : 0);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::tensor, fmt::format("{} {}", lse.name, why),
                fmt::format("wanted: f32 [{}], contiguous", fmt::join(wanted, ", ")));
  };
  const TensorView& view = lse.view;
  if (view.data == nullptr) refuse("is missing: a part counts by its lse");
  const std::span<const std::int64_t> given = view.extents();
  if (view.dtype != DType::f32 ||
      !std::equal(given.begin(), given.end(), wanted.begin(), wanted.end()) ||
      !view.is_contiguous()) {
    refuse("does not fit: given " + view.describe());
  }
  if (const std::string fault = view.fault(); !fault.empty()) refuse(fault);
}

void require_merged_apart(const MergedTensor& written, const MergedTensor& other, bool may_be_it) {
  if (may_be_it && is_same_memory(written.view, other.view)) return;
  if (!overlap(written.view, other.view)) return;
  throw Error(ErrorCode::tensor, fmt::format("{} overlaps {} in memory", written.name, other.name),
              may_be_it
                  ? fmt::format("give {0} memory of its own, or {1} itself with the same shape "
                                "and strides",
                                written.name, other.name)
                  : fmt::format("give {} memory of its own", written.name));
}

abi::MergeTensor merge_argument(const ResolvedTensor& tensor) {
  return {tensor.data, tensor.batch_stride, tensor.head_stride, tensor.row_stride};
}

void require_part_count(std::size_t count) {
  if (count >= abi::kFewestMergedParts && count <= abi::kMostMergedParts) return;
  throw Error(ErrorCode::usage,
              fmt::format("merge was given {}; it takes {} to {}", counted(count, "part"),
                          abi::kFewestMergedParts, abi::kMostMergedParts),
              count > abi::kMostMergedParts ? "merge some of them first: a result is a part again"
                                            : "give the out and lse of each call");
}

std::int64_t count_merged_rows(const TensorSizes& sizes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (sizes.rows == 0) return 0;
  if (sizes.batch <= kMost / sizes.heads && sizes.batch * sizes.heads <= kMost / sizes.rows) {
    return sizes.batch * sizes.heads * sizes.rows;
  }
  throw Error(ErrorCode::tensor,
              fmt::format("out has {} batches of {} heads of {} rows, and one merge takes {} rows",
                          sizes.batch, sizes.heads, sizes.rows, kMost),
              "split the batch or the rows");
}

}  // namespace

abi::MergeArguments resolve_merge(const Spec& spec, std::span<const Part> parts,
                                  const TensorView& out_view,
                                  const std::optional<TensorView>& lse_view) {
  require_part_count(parts.size());
  const MergedTensor out = {"out", out_view};
  const TensorSizes sizes = checked_sizes(spec, out);
  require_own_elements(merged_role(spec, out.name), out.view);
  std::optional<MergedTensor> lse;
  if (lse_view) {
    lse = {"lse", *lse_view};
    require_merged_lse(spec, *lse, sizes);
    require_merged_apart(*lse, out, false);
  }
  abi::MergeArguments call = {};
  const ResolvedTensor to = resolved(out.view, spec.layout);
  call.out = merge_argument(to);
  bool aligned = is_aligned(to, spec.output_dtype());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MergedTensor part = {fmt::format("parts[{}].out", i), parts[i].out};
    const MergedTensor part_lse = {fmt::format("parts[{}].lse", i), parts[i].lse};
    require_sizes_of_out(spec, part, sizes);
    require_merged_lse(spec, part_lse, sizes);
    require_merged_apart(out, part, true);
    require_merged_apart(out, part_lse, false);
    if (lse) {
      require_merged_apart(*lse, part_lse, true);
      require_merged_apart(*lse, part, false);
    }
    const ResolvedTensor from = resolved(part.view, spec.layout);
    call.parts[i] = {merge_argument(from), static_cast<const float*>(part_lse.view.data)};
    aligned = aligned && is_aligned(from, spec.output_dtype());
  }
  call.lse = lse ? static_cast<float*>(lse->view.data) : nullptr;
  call.count = static_cast<int>(parts.size());
  call.heads = static_cast<int>(sizes.heads);
  call.rows = static_cast<int>(sizes.rows);
  call.width = static_cast<int>(sizes.width);
  call.all_rows = count_merged_rows(sizes);
  call.is_aligned = aligned ? 1 : 0;
  return call;
}

}  // namespace tilewright
