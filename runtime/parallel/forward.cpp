#include "runtime/parallel/forward.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>

#include "runtime/parallel/columns.hpp"
#include "runtime/parallel/views.hpp"

namespace tilewright::parallel {
namespace {

constexpr std::size_t kMostMerged = 16;  // that Attention::merge takes

// One call of one rank.
class ForwardRun {
 public:
  ForwardRun(const Attention& attention, Communicator& communicator, const ForwardTensors& tensors,
             ContextPlanState& plan, const Bindings& bindings, const ContextCallOptions& options)
      : attention_(attention),
        spec_(attention.spec()),
        communicator_(communicator),
        tensors_(tensors),
        plan_(plan),
        bindings_(bindings),
        options_(options),
        columns_(spec_, plan, tensors.k, tensors.v, options.workspace),
        workspace_(static_cast<std::byte*>(options.workspace.data)) {}

  // An exchange begins before the kernels that it runs in parallel with, and waits for those that
  // read the memory it writes to: of the step before the last.
  void run() {
    const std::size_t count = plan_.schedule.steps.size();
    if (count > 1) {
      plan_.lane->follow(options_.stream);
      exchange(1);
    }
    compute(0);
    for (std::size_t i = 1; i < count; ++i) {
      if (i + 1 < count) {
        plan_.lane->follow(options_.stream);
        exchange(i + 1);
      }
      plan_.lane->join(options_.stream, static_cast<int>(i % 2));
      compute(i);
    }
    for (const MergedRows& merged : plan_.schedule.merges) merge(merged);
    if (tensors_.lse && !writes_lse_itself()) copy_lse();
  }

 private:
  const Step& step(std::size_t i) const { return plan_.schedule.steps[i]; }
  std::int64_t batch() const { return plan_.whole.batch; }
  std::int64_t heads() const { return plan_.whole.num_q_heads; }
  // A part's lse is contiguous; of two shards the caller's interleave.
  bool writes_lse_itself() const {
    return tensors_.lse && plan_.list.sharding == Sharding::contiguous;
  }

  void exchange(std::size_t i) {
    plan_.sends.clear();
    plan_.receives.clear();
    columns_.append_sends(step(i), plan_.sends);
    columns_.append_receives(step(i), plan_.receives);
    communicator_.exchange(plan_.sends, plan_.receives, plan_.lane->stream());
    plan_.lane->mark(static_cast<int>(i % 2));
  }

  void compute(std::size_t i) {
    if (plan_.packed) return compute_packed(i);
    const std::vector<std::optional<BlockMask>>& masks = plan_.masks[i];
    for (std::size_t c = 0; c < step(i).calls.size(); ++c) {
      const PairCall& call = step(i).calls[c];
      const ForwardTensors tensors = tensors_of(step(i), call);
      const ForwardOptions options = {
          .q_offset = plan_.whole.q_offset + plan_.shard(call.q_shard).q_begin + call.first_row,
          .kv_offset =
              plan_.whole.kv_offset + plan_.shard(call.kv_shard).kv_begin + call.first_column,
          .scale = options_.scale,
          .stream = options_.stream};
      if (masks[c]) {
        attention_.forward(tensors, *masks[c], bindings_, options);
      } else {
        attention_.forward(tensors, bindings_, options);
      }
    }
  }

  void compute_packed(std::size_t i) {
    for (std::size_t c = 0; c < step(i).calls.size(); ++c) {
      ForwardTensors tensors = tensors_of(step(i), step(i).calls[c]);
      for (TensorView* view : {&tensors.q, &tensors.k, &tensors.v, &tensors.out, &*tensors.lse}) {
        *view = unbatched(*view, Layout::packed);
      }
      attention_.forward(tensors, plan_.packed->calls[i][c].plan(), bindings_,
                         {.scale = options_.scale, .stream = options_.stream});
    }
  }

  ForwardTensors tensors_of(const Step& step, const PairCall& call) const {
    const std::int64_t row = plan_.q_row(call.q_shard) + call.first_row;
    ForwardTensors tensors = {.q = rows_of(tensors_.q, spec_.layout, row, call.rows)};
    std::tie(tensors.k, tensors.v) = columns_.of(step, call);
    const Part part = part_of(call);
    tensors.out = part.out;
    tensors.lse = part.lse;
    return tensors;
  }

  Part part_of(const PairCall& call) const {
    if (!call.writes_out) {
      return {dense_view(workspace_ + call.out_offset, spec_.output_dtype(), spec_.layout, batch(),
                         heads(), call.rows, spec_.value_head_dim()),
              lse_of(call)};
    }
    return {rows_of(tensors_.out, spec_.layout, plan_.q_row(call.q_shard), call.rows),
            lse_of(call)};
  }

  TensorView lse_of(const PairCall& call) const {
    if (call.writes_out && writes_lse_itself()) return *tensors_.lse;
    return TensorView::contiguous(workspace_ + call.lse_offset, DType::f32,
                                  {batch(), heads(), call.rows});
  }

  const PairCall& call_that_writes_out(int q_shard) const {
    const std::vector<PairCall>& calls = step(0).calls;
    return *std::find_if(calls.begin(), calls.end(), [&](const PairCall& call) {
      return call.q_shard == q_shard && call.writes_out;
    });
  }

  void merge(const MergedRows& merged) {
    const PairCall& first = call_that_writes_out(merged.q_shard);
    std::array<Part, kMostMerged> parts;
    parts[0] = merged_part(first, merged, 0);
    for (std::size_t done = 0; done < merged.parts.size(); done += kMostMerged - 1) {
      const std::size_t count = std::min(merged.parts.size() - done, kMostMerged - 1);
      for (std::size_t i = 0; i < count; ++i) {
        parts[i + 1] = merged_part(*merged.parts[done + i], merged, done + i + 1);
      }
      std::array<Part, kMostMerged> given = parts;
      for (Part& part : std::span(given).first(count + 1)) {
        part = {unbatched(part.out, spec_.layout), unbatched(part.lse, spec_.layout)};
      }
      attention_.merge(std::span(given).first(count + 1), given[0].out, given[0].lse,
                       options_.stream);
    }
    if (tensors_.lse && merged.lse_offsets[0] >= 0) {
      copy_lse_rows(row_of(first, merged), first.rows, parts[0].lse.data, merged.rows, merged.rows);
    }
  }

  // A call's part of some rows, whose lse is made contiguous.
  Part merged_part(const PairCall& call, const MergedRows& merged, std::size_t place) {
    Part part = part_of(call);
    const std::int64_t offset = merged.lse_offsets[place];
    if (offset < 0) return part;
    part.out = rows_of(part.out, spec_.layout, merged.first_row - call.first_row, merged.rows);
    part.lse =
        TensorView::contiguous(workspace_ + offset, DType::f32, {batch(), heads(), merged.rows});
    copy_lse_rows(part.lse.data, merged.rows, row_of(call, merged), call.rows, merged.rows);
    return part;
  }

  // Where the first head's lse of the merged rows is.
  float* row_of(const PairCall& call, const MergedRows& merged) const {
    return static_cast<float*>(lse_of(call).data) + (merged.first_row - call.first_row);
  }

  // Copies rows of lse of all heads between tensors that have more rows.
  void copy_lse_rows(void* to, std::int64_t to_rows, const void* from, std::int64_t from_rows,
                     std::int64_t rows) {
    constexpr std::int64_t kElement = sizeof(float);
    plan_.lane->copy({.to = to,
                      .to_pitch = to_rows * kElement,
                      .from = from,
                      .from_pitch = from_rows * kElement,
                      .width = rows * kElement,
                      .height = batch() * heads()},
                     options_.stream);
  }

  void copy_lse() {
    for (const int shard : plan_.list.of_rank(plan_.rank)) {
      const PairCall& call = call_that_writes_out(shard);
      copy_lse_rows(static_cast<float*>(tensors_.lse->data) + plan_.q_row(shard),
                    tensors_.lse->shape[2], lse_of(call).data, call.rows, call.rows);
    }
  }

  const Attention& attention_;
  const Spec& spec_;
  Communicator& communicator_;
  const ForwardTensors& tensors_;
  ContextPlanState& plan_;
  const Bindings& bindings_;
  const ContextCallOptions& options_;
  Columns columns_;
  std::byte* workspace_;
};

}  // namespace

void run_forward(const Attention& attention, Communicator& communicator,
                 const ForwardTensors& tensors, ContextPlanState& plan, const Bindings& bindings,
                 const ContextCallOptions& options) {
  const Layout layout = attention.spec().layout;
  ForwardTensors given = {.q = batched(tensors.q, layout),
                          .k = batched(tensors.k, layout),
                          .v = batched(tensors.v, layout),
                          .out = batched(tensors.out, layout)};
  if (tensors.lse) given.lse = batched(*tensors.lse, layout);
  ForwardRun(attention, communicator, given, plan, bindings, options).run();
}

}  // namespace tilewright::parallel
