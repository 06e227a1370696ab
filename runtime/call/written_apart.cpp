#include "runtime/call/written_apart.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/call/overlap.hpp"

namespace tilewright {
namespace {

constexpr std::string_view kWorkspace = "the plan's workspace";

[[noreturn]] void refuse_overlap(std::string_view output, const TensorView& written,
                                 std::string_view other, const TensorView& given) {
  const ByteRange to = byte_range(written), of = byte_range(given);
  throw Error(
      ErrorCode::tensor,
      fmt::format("{} overlaps {} in memory: {} takes {} bytes, and {} {} bytes, {} bytes {}",
                  output, other, output, to.end - to.begin, other, of.end - of.begin,
                  of.begin >= to.begin ? of.begin - to.begin : to.begin - of.begin,
                  of.begin >= to.begin ? "after it begins" : "before it begins"),
      fmt::format(
          "give {} memory of its own{}", output,
          output == "out" ? "; only q may be out too, with the same shape and strides" : ""));
}

void require_apart(std::string_view output, const TensorView& written, std::string_view other,
                   const TensorView& given) {
  if (overlap(written, given)) refuse_overlap(output, written, other, given);
}

struct NamedRows {
  std::string_view name;
  const std::optional<TensorView>* rows;
};

// What is written in addition to out: a number for each row, or for each row and column.
std::array<NamedRows, 3> outputs_of_rows(const ForwardTensors& tensors) {
  return {
      {{"lse", &tensors.lse}, {"max_scores", &tensors.max_scores}, {"weights", &tensors.weights}}};
}

// Of a contiguous tensor.
ByteRange range_of_rows(const std::optional<TensorView>& rows) {
  if (!rows) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(rows->data);
  return {begin, begin + static_cast<std::uintptr_t>(rows->numel()) * size_of(rows->dtype)};
}

// As byte_range(), for a tensor of a call: of rank 4, or 3 where it is packed, with a contiguous
// last dimension.
ByteRange range_of(const TensorView& view) {
  const auto last = static_cast<std::size_t>(view.rank) - 1;
  std::int64_t before = 0, after = view.shape[last];
  for (std::size_t d = 0; d < last; ++d) {
    if (view.shape[d] == 0) return {};
    const std::int64_t reach = view.strides[d] * (view.shape[d] - 1);
    before += std::min<std::int64_t>(reach, 0);
    after += std::max<std::int64_t>(reach, 0);
  }
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  const auto data = reinterpret_cast<std::uintptr_t>(view.data);
  return {data + static_cast<std::uintptr_t>(before * element),
          data + static_cast<std::uintptr_t>(after * element)};
}

// Each kernel reads a row of q only while it computes the same row of out, and before it writes it,
// so out may be q itself, unless the weights' kernel reads q afterwards. Any other row may be read
// later, or by another thread.
void require_apart_from_inputs(const ForwardTensors& tensors) {
  if (tensors.weights || !is_same_memory(tensors.out, tensors.q)) {
    require_apart("out", tensors.out, "q", tensors.q);
  }
  require_apart("out", tensors.out, "k", tensors.k);
  require_apart("out", tensors.out, "v", tensors.v);
  if (tensors.k_new) require_apart("out", tensors.out, "k_new", *tensors.k_new);
  if (tensors.v_new) require_apart("out", tensors.out, "v_new", *tensors.v_new);
  for (const auto& [name, rows] : outputs_of_rows(tensors)) {
    if (!*rows) continue;
    require_apart(name, **rows, "q", tensors.q);
    require_apart(name, **rows, "k", tensors.k);
    require_apart(name, **rows, "v", tensors.v);
    if (tensors.k_new) require_apart(name, **rows, "k_new", *tensors.k_new);
    if (tensors.v_new) require_apart(name, **rows, "v_new", *tensors.v_new);
    require_apart(name, **rows, "out", tensors.out);
  }
  const auto require = [](std::string_view name, const std::optional<TensorView>& tensor,
                          std::string_view other_name, const std::optional<TensorView>& other) {
    if (tensor && other) require_apart(name, *tensor, other_name, *other);
  };
  require("max_scores", tensors.max_scores, "lse", tensors.lse);
  require("weights", tensors.weights, "lse", tensors.lse);
  require("weights", tensors.weights, "max_scores", tensors.max_scores);
}

void require_apart_from_buffers(const Spec& spec, const ForwardTensors& tensors,
                                const Bindings& bindings) {
  std::size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    const TensorView& view = bindings.buffers()[index++];
    const auto require = [&, &buffer_name = name](std::string_view output,
                                                  const TensorView& written) {
      if (!overlap(written, view)) return;
      refuse_overlap(output, written, fmt::format("buffer \"{}\"", buffer_name), view);
    };
    require("out", tensors.out);
    for (const auto& [output, rows] : outputs_of_rows(tensors)) {
      if (*rows) require(output, **rows);
    }
  }
}

}  // namespace

// Ranges of bytes first, which are apart in most calls: some ten nanoseconds.
void require_written_apart(const Spec& spec, const ForwardTensors& tensors,
                           const Bindings& bindings) {
  const ByteRange out = range_of(tensors.out), q = range_of(tensors.q);
  const ByteRange k = range_of(tensors.k), v = range_of(tensors.v);
  const ByteRange lse = range_of_rows(tensors.lse), max = range_of_rows(tensors.max_scores);
  const ByteRange weights = range_of_rows(tensors.weights);
  // Sums of comparisons: `||` would branch after each.
  const int shared = out.meets(q) + out.meets(k) + out.meets(v) + lse.meets(q) + lse.meets(k) +
                     lse.meets(v) + lse.meets(out) + max.meets(q) + max.meets(k) + max.meets(v) +
                     max.meets(out) + max.meets(lse) + weights.meets(q) + weights.meets(k) +
                     weights.meets(v) + weights.meets(out) + weights.meets(lse) +
                     weights.meets(max);
  int shared_with_new = 0;
  for (const std::optional<TensorView>* fresh : {&tensors.k_new, &tensors.v_new}) {
    if (!*fresh) continue;
    const ByteRange range = range_of(**fresh);
    shared_with_new += range.meets(out) + range.meets(lse) + range.meets(max);
  }
  if (shared + shared_with_new != 0) require_apart_from_inputs(tensors);
  int shared_with_buffers = 0;
  for (const TensorView& buffer : bindings.buffers()) {
    const ByteRange range = byte_range(buffer);
    shared_with_buffers +=
        range.meets(out) + range.meets(lse) + range.meets(max) + range.meets(weights);
  }
  if (shared_with_buffers != 0) require_apart_from_buffers(spec, tensors, bindings);
}

void require_workspace_apart(const Spec& spec, const ForwardTensors& tensors,
                             const Bindings& bindings, const TensorView& workspace) {
  const ByteRange range = byte_range(workspace);
  const auto require = [&](std::string_view name, const TensorView& tensor) {
    if (range.meets(byte_range(tensor))) require_apart("the workspace", workspace, name, tensor);
  };
  require("q", tensors.q);
  require("k", tensors.k);
  require("v", tensors.v);
  require("out", tensors.out);
  for (const auto& [name, rows] : outputs_of_rows(tensors)) {
    if (*rows) require(name, **rows);
  }
  std::size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) require(name, bindings.buffers()[index++]);
}

void require_apart_from_plan(const ForwardTensors& tensors, const TensorView& workspace,
                             const std::optional<TensorView>& page_table) {
  const ByteRange out = range_of(tensors.out);
  const ByteRange lse = range_of_rows(tensors.lse), max = range_of_rows(tensors.max_scores);
  const auto require = [&](std::string_view name, const TensorView& read) {
    const ByteRange range = byte_range(read);
    if (!range.meets(out) && !range.meets(lse) && !range.meets(max)) return;
    require_apart("out", tensors.out, name, read);
    for (const auto& [output, rows] : outputs_of_rows(tensors)) {
      if (*rows) require_apart(output, **rows, name, read);
    }
  };
  require(kWorkspace, workspace);
  if (page_table) require("page_table", *page_table);
}

void require_plan_apart(const Spec& spec, const TensorView& workspace, const Sequences& sequences,
                        const Bindings& bindings) {
  const ByteRange plan = byte_range(workspace);
  const auto require = [&](std::string_view name, const std::optional<TensorView>& tensor) {
    if (!tensor || !plan.meets(byte_range(*tensor))) return;
    require_apart(kWorkspace, workspace, name, *tensor);
  };
  require("q_begin", sequences.q_begin);
  require("kv_begin", sequences.kv_begin);
  require("kv_len", sequences.kv_len);
  require("page_table", sequences.page_table);
  require("page_begin", sequences.page_begin);
  require("q_offset", sequences.q_offset);
  require("kv_offset", sequences.kv_offset);
  std::size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) require(name, bindings.buffers()[index++]);
}

}  // namespace tilewright
