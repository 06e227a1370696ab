#include "cli/bench/serving_workloads.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/bench/packed_workload.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/machine.hpp"

namespace tilewright::cli {
namespace {

using verify::PackedLengths;

constexpr double kEqualToDense = 0.97;

// Sequences of equal lengths.
struct Group {
  std::int64_t count, length;
};

class ServingRows {
 public:
  explicit ServingRows(const BenchArguments& arguments)
      : arguments_(arguments), rows_(rows_in_all(arguments)) {}

  // Three batches of as many rows each: one sequence, a skewed batch, many short sequences.
  void add_batches(const Spec& spec) {
    for (const std::vector<Group>& groups : std::vector<std::vector<Group>>{
             {{1, 16384}}, {{1, 8192}, {1, 4096}, {1, 2048}, {1, 1024}, {8, 128}}, {{64, 256}}}) {
      add(spec, groups, {32, 8});
    }
  }

  // Batches whose k and v stay in shared memory, against calls that promise batch-invariant bits,
  // for which they do not.
  void add_short_sequences(const Spec& spec) {
    if (!on_gpu(arguments_)) return;
    for (const std::vector<Group>& groups : std::vector<std::vector<Group>>{
             {{64, 256}}, {{128, 128}}, {{32, 256}, {32, 160}, {32, 96}}, {{256, 64}}}) {
      PackedRow& row = add(spec, groups, {32, 8});
      row.reference = {
          .name = "batch-invariant", .workload = row.workload, .batch_invariant = true};
    }
  }

  // Against our own dense call of the same work.
  void add_equal_lengths(DType dtype, std::int64_t head_dim) {
    const Spec spec = causal_variant(dtype, head_dim);
    for (const Spec& tiled : with_fastest_block(as_packed(spec), 4096)) {
      PackedRow& row = add(tiled, {{4, 4096}}, {16, 16});
      row.reference = {.name = "dense", .workload = dense_of(spec, row.workload)};
      row.least_ratio = kEqualToDense;
    }
  }

  // A variant's cost: against plain causal attention, and against the variant's dense call.
  void add_variant(const std::string& name) {
    const DType dtype = dtype_of(arguments_);
    const Spec spec = long_variant(name, dtype, head_dim_of(arguments_));
    const Spec plain = causal_variant(dtype, head_dim_of(arguments_));
    PackedRow& row = add(as_packed(spec), {{4, 4096}}, {16, 16});
    row.reference = {.name = "packed causal",
                     .workload = packed_workload(as_packed(plain), *row.workload.lengths)};
    PackedRow& again = add(as_packed(spec), {{4, 4096}}, {16, 16});
    again.reference = {.name = "dense", .workload = dense_of(spec, again.workload)};
    again.least_ratio = kEqualToDense;
  }

  void add_block_sparse(std::int64_t head_dim) {
    const DType dtype = dtype_of(arguments_);
    PackedRow& row = add(as_packed(block_sparse_variant(dtype, head_dim)), {{1, 16384}}, {40, 40});
    row.reference = {.name = "dense, all tiles",
                     .workload = dense_of(dense_variant(dtype, head_dim), row.workload),
                     .of_tiles = true};
    if (on_gpu(arguments_)) row.least_ratio = 0.9;
  }

  // One head, since the heads share the tiles of a mask that does not name them.
  void add_plans() {
    const Spec causal = as_packed(causal_variant(dtype_of(arguments_), head_dim_of(arguments_)));
    PackedRow& many = add(causal, {{64, 4096}}, {1, 1});
    if (on_gpu(arguments_)) many.most_plan_ms = 0.005;
    PackedRow& one = add(causal, {{1, 8192}}, {32, 8});
    if (on_gpu(arguments_)) one.most_plan_share = 0.02;
  }

  PackedRow& add(const Spec& spec, const std::vector<Group>& groups, PackedHeads heads) {
    PackedLengths lengths = lengths_of_heads(arguments_, heads);
    std::string name;
    for (const Group& group : groups) {
      const std::int64_t length = std::max<std::int64_t>(1, group.length * rows_ / kRowsInAll);
      lengths.sequences.insert(lengths.sequences.end(), static_cast<std::size_t>(group.count),
                               {length, length});
      name += name.empty() ? "" : "+";
      name += groups.size() > 1 && group.count == 1 ? fmt::format("{}", length)
                                                    : fmt::format("{}x{}", group.count, length);
    }
    all_.push_back({.name = name, .workload = packed_workload(spec, lengths)});
    return all_.back();
  }

  std::vector<PackedRow> take() { return std::move(all_); }

 private:
  // In its own tiles, and where other ones suit dense calls of the length also in those.
  std::vector<Spec> with_fastest_block(const Spec& spec, std::int64_t length) const {
    if (!on_gpu(arguments_)) return {spec};
    Spec other = spec;
    other.block =
        fastest_block(spec, gpu_facts(arguments_.device).target, length * rows_ / kRowsInAll);
    if (other.block == spec.block) return {spec};
    other.name += fmt::format("_{}x{}", other.block[0], other.block[1]);
    return {spec, other};
  }

  // As many sequences of equal lengths, with the tiles that suit dense calls.
  Workload dense_of(Spec spec, const Workload& packed) const {
    const PackedLengths::Sequence& one = packed.lengths->sequences.front();
    if (on_gpu(arguments_)) {
      spec.block = fastest_block(spec, gpu_facts(arguments_.device).target, one.q_len);
    }
    return {spec,
            {.batch = packed.shape.batch,
             .num_q_heads = packed.shape.num_q_heads,
             .num_kv_heads = packed.shape.num_kv_heads,
             .q_len = one.q_len,
             .kv_len = one.kv_len}};
  }

  const BenchArguments& arguments_;
  std::int64_t rows_;
  std::vector<PackedRow> all_;
};

std::vector<std::int64_t> widths_or(const BenchArguments& arguments,
                                    std::vector<std::int64_t> otherwise) {
  if (arguments.head_dim != 0) return {arguments.head_dim};
  return otherwise;
}

}  // namespace

std::vector<PackedRow> serving_rows(const BenchArguments& arguments) {
  ServingRows rows(arguments);
  if (arguments.spec) {
    rows.add_batches(*arguments.spec);
    return rows.take();
  }
  const DType dtype = dtype_of(arguments);
  const std::int64_t head_dim = head_dim_of(arguments);
  rows.add_batches(as_packed(causal_variant(dtype, head_dim)));
  rows.add_short_sequences(as_packed(causal_variant(dtype, head_dim)));
  for (const std::int64_t width : widths_or(arguments, {64, 128, 256})) {
    rows.add_equal_lengths(dtype, width);
  }
  rows.add_equal_lengths(DType::f16, head_dim);
  for (const char* const name : {"alibi_causal", "softcap_causal", "window_1024"}) {
    rows.add_variant(name);
  }
  for (const std::int64_t width : widths_or(arguments, {64, 112})) rows.add_block_sparse(width);
  rows.add(packed_documents_variant(dtype, head_dim), {{1, 16384}}, {32, 8});
  rows.add_plans();
  return rows.take();
}

}  // namespace tilewright::cli
