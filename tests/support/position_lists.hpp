#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../runtime/api/attention.hpp"
#include "../../runtime/api/mask_lists.hpp"
#include "../../runtime/call/plan_map.hpp"
#include "catch.hpp"
#include "packed_batch.hpp"

// Packed calls whose tiles lists over positions decide, on any device whose memory is the host's.

namespace tilewright::packed_calls {

// vLLM's block-sparse pattern: local blocks and vertical ones, which slide from head to head.
struct SparsePattern {
  int block, local, vertical, step;

  bool keeps_block(int h, int q_block, int kv_block) const {
    return q_block >= kv_block &&
           (q_block - kv_block < local || (kv_block + h * step + 1) % vertical == 0);
  }
  bool keeps(int h, int q_idx, int kv_idx) const {
    return q_idx >= kv_idx && keeps_block(h, q_idx / block, kv_idx / block);
  }
};

// crow [heads, blocks + 1] and col [heads, n], each list padded with -1, as vLLM makes them.
struct SparseLists {
  Tensor crow, col;

  SparseLists(const SparsePattern& pattern, int heads, int blocks) {
    std::vector<std::vector<int>> cols(static_cast<std::size_t>(heads));
    std::vector<int> crows;
    std::size_t longest = 0;
    for (int h = 0; h < heads; ++h) {
      std::vector<int>& list = cols[static_cast<std::size_t>(h)];
      crows.push_back(0);
      for (int q_block = 0; q_block < blocks; ++q_block) {
        for (int kv_block = 0; kv_block < blocks; ++kv_block) {
          if (pattern.keeps_block(h, q_block, kv_block)) list.push_back(kv_block);
        }
        crows.push_back(static_cast<int>(list.size()));
      }
      longest = std::max(longest, list.size());
    }
    std::vector<int> padded;
    for (std::vector<int>& list : cols) {
      list.resize(longest, -1);
      padded.insert(padded.end(), list.begin(), list.end());
    }
    crow = Tensor::zeros(i32, {heads, blocks + 1});
    col = Tensor::zeros(i32, {heads, static_cast<std::int64_t>(longest)});
    std::copy(crows.begin(), crows.end(), static_cast<int*>(crow.data()));
    std::copy(padded.begin(), padded.end(), static_cast<int*>(col.data()));
  }

  TileCsr view() const { return {.crow = crow.view(), .col = col.view()}; }
};

// Attention of one row of one head in double, over the columns that keep(kv_idx) keeps.
struct RowOfAttention {
  std::vector<double> out;
  double lse;

  RowOfAttention(const Batch& batch, std::size_t b, int h, int row, const auto& keep) {
    const int dim = batch.dim, h_kv = h / (batch.heads / batch.kv_heads);
    const auto at = [&](const Tensor& tensor, std::int64_t r, std::int64_t heads, int head) {
      return static_cast<const float*>(tensor.data()) + (r * heads + head) * dim;
    };
    const float* const q = at(batch.q, batch.q_begins[b] + row, batch.heads, h);
    out.assign(static_cast<std::size_t>(dim), 0.0);
    double sum = 0;
    for (int j = 0; j < batch.lengths[b].kv; ++j) {
      if (!keep(j)) continue;
      const float* const k = at(batch.k, batch.kv_begins[b] + j, batch.kv_heads, h_kv);
      const float* const v = at(batch.v, batch.kv_begins[b] + j, batch.kv_heads, h_kv);
      double score = 0;
      for (int d = 0; d < dim; ++d) score += static_cast<double>(q[d]) * k[d];
      const double weight = std::exp(score / std::sqrt(static_cast<double>(dim)));
      sum += weight;
      for (int d = 0; d < dim; ++d) out[static_cast<std::size_t>(d)] += weight * v[d];
    }
    for (double& x : out) x = sum == 0 ? 0 : x / sum;
    lse = std::log(sum);
  }
};

// Compares with attention over keep(h, q_idx, kv_idx). Rows of no sequence must keep what they
// held.
// @param check_map is given the plan's map
inline void check_with_positions(const Spec& spec, Batch& batch, const BlockMask& positions,
                                 const auto& keep, double tolerance, const Device& device,
                                 const auto& check_map) {
  const Attention attention(spec, {.device = device, .positions = true});
  Workspace workspace(attention.workspace_size(batch.shape()));
  const BatchTensors tensors(batch, spec.dtype);
  const Plan plan = attention.plan(batch.shape(), tensors.sequences(), {},
                                   {.workspace = workspace.view(), .positions = &positions});
  CHECK(plan.report().text().empty());
  check_map(PlanMap(plan, spec.block));
  fill(batch.out, -7.0f);
  fill(batch.lse, -9.0f);
  Tensor out = in_dtype(batch.out, spec.dtype);
  attention.forward(
      {.q = tensors.q, .k = tensors.k, .v = tensors.v, .out = out, .lse = batch.lse.view()}, plan);
  read_back(out, batch.out);

  const std::int64_t total = batch.q.shape()[0];
  std::vector<bool> written(static_cast<std::size_t>(total), false);
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const int q_offset = batch.lengths[b].kv - batch.lengths[b].q;
    double greatest = 0, greatest_of_lse = 0;
    for (int item = 0; item < batch.lengths[b].q * batch.heads; ++item) {
      const int i = item / batch.heads, h = item % batch.heads;
      const RowOfAttention wanted(batch, b, h, i, [&](int j) { return keep(h, i + q_offset, j); });
      const std::int64_t row = batch.q_begins[b] + i;
      written[static_cast<std::size_t>(row)] = true;
      for (int d = 0; d < batch.dim; ++d) {
        const double got = floats(batch.out)[(row * batch.heads + h) * batch.dim + d];
        greatest = std::fmax(
            greatest,
            std::isnan(got) ? INFINITY : std::fabs(got - wanted.out[static_cast<std::size_t>(d)]));
      }
      const double lse = floats(batch.lse)[h * total + row];
      if (lse != wanted.lse) {
        greatest_of_lse = std::fmax(greatest_of_lse, std::fabs(lse - wanted.lse));
      }
    }
    INFO("sequence " << b);
    CHECK(greatest <= tolerance);
    CHECK(greatest_of_lse <= (spec.dtype == f16 ? 2e-3 : 4e-5));
  }
  for (std::int64_t row = 0; row < total; ++row) {
    if (written[static_cast<std::size_t>(row)]) continue;
    const std::int64_t width = std::int64_t{batch.heads} * batch.dim;
    for (std::int64_t i = 0; i < width; ++i) REQUIRE(floats(batch.out)[row * width + i] == -7.0f);
    for (int h = 0; h < batch.heads; ++h) REQUIRE(floats(batch.lse)[h * total + row] == -9.0f);
  }
}

// The kept tiles of a map are those of the lists, as far as the sequence has such tiles; with
// `states` partial and full ones too.
inline void require_listed(const PlanMap& map, const BlockMask& lists, bool states) {
  REQUIRE(map.heads() == lists.heads());
  std::int64_t kept = 0;
  for (std::size_t b = 0; b < map.sequences().size(); ++b) {
    const abi::PlannedSequence& sequence = map.sequences()[b];
    const auto number = static_cast<std::int64_t>(b);
    for (std::int64_t item = 0; item < map.heads() * map.q_blocks(number); ++item) {
      const std::int64_t h = item / map.q_blocks(number), q_block = item % map.q_blocks(number);
      const abi::RowsOfTiles rows = map.rows_of(number, q_block);
      const int first = sequence.q_offset + rows.begin, last = sequence.q_offset + rows.end - 1;
      const auto side = static_cast<int>(lists.block()[0]);
      REQUIRE(rows.begin < rows.end);
      REQUIRE((first < 0) == (last < 0));
      if (first >= 0) REQUIRE(first / side == last / side);
      const std::vector<PlanMap::Tile> given = map.row(number, h, q_block);
      CHECK(!map.marks_more(number, h, q_block));
      const std::vector<PlanMap::Tile> wanted =
          first < 0 ? std::vector<PlanMap::Tile>(given.size(), PlanMap::Tile::empty)
                    : lists.row(0, h, first / side);
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (states) REQUIRE(given[i] == wanted[i]);
        REQUIRE((given[i] == PlanMap::Tile::empty) == (wanted[i] == PlanMap::Tile::empty));
        kept += given[i] != PlanMap::Tile::empty ? 1 : 0;
      }
    }
  }
  CHECK(kept > 0);
}

// Sequences that begin and end inside of tiles, a decode step, one with more rows than columns, and
// ones without rows or columns.
inline Batch batch_of_positions(int heads, int dim) {
  Batch batch{.lengths = {{444, 444}, {130, 500}, {1, 333}, {83, 83}, {0, 9}, {200, 70}, {5, 0}},
              .heads = heads,
              .kv_heads = heads / 2,
              .dim = dim};
  batch.make();
  return batch;
}

inline Spec causal_spec(int dim, std::array<std::int64_t, 2> block) {
  Spec spec = packed_spec(dim, "q_idx >= kv_idx", true);
  spec.block = block;
  return spec;
}

// Case 001-3 of the block-sparse system: its lists with a causal mask_mod.
inline void check_sparse_lists(Spec spec, double tolerance, const Device& device) {
  const SparsePattern pattern{.block = 64, .local = 2, .vertical = 3, .step = 1};
  constexpr int kHeads = 4, kBlocks = 9;
  spec.block = {64, 64};
  Spec on_cpu = spec;
  on_cpu.tactic.reset();
  const Attention packed(on_cpu, {.device = Device::cpu()});
  const BlockMask positions = block_mask_from_csr(packed.position_fingerprint(kBlocks * 64, kHeads),
                                                  SparseLists(pattern, kHeads, kBlocks).view());
  Batch batch = batch_of_positions(kHeads, static_cast<int>(spec.head_dim));
  check_with_positions(
      spec, batch, positions,
      [&](int h, int q_idx, int kv_idx) { return q_idx >= 0 && pattern.keeps(h, q_idx, kv_idx); },
      tolerance, device, [&](const PlanMap& map) { require_listed(map, positions, true); });
}

// The lists of a dense Attention, whose full tiles mask_mod is not asked about.
inline void check_dense_lists(Spec spec, double tolerance, const Device& device) {
  spec.mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 150 + 40 * h";
  Spec dense = spec;
  dense.layout = Layout::bshd;
  const Attention masks(dense, {.device = Device::cpu(), .masks_only = true});
  const BlockMask positions =
      masks.block_mask({.num_q_heads = 4, .num_kv_heads = 2, .q_len = 600, .kv_len = 555});
  REQUIRE(positions.full_tiles() > 0);
  Batch batch = batch_of_positions(4, static_cast<int>(spec.head_dim));
  check_with_positions(
      spec, batch, positions,
      [&](int h, int q_idx, int kv_idx) {
        return q_idx >= kv_idx && q_idx - kv_idx < 150 + 40 * h;
      },
      tolerance, device, [&](const PlanMap& map) { require_listed(map, positions, true); });
}

}  // namespace tilewright::packed_calls
