#include "runtime/parallel/backward.hpp"

#include <cstddef>
#include <optional>
#include <tuple>

#include "runtime/parallel/buffer_sums.hpp"
#include "runtime/parallel/columns.hpp"
#include "runtime/parallel/views.hpp"

namespace tilewright::parallel {
namespace {

// All tensors, batched or unbatched.
template <typename Change>
BackwardTensors in_layout(BackwardTensors tensors, const Change& change, Layout layout) {
  for (TensorView* view :
       {&tensors.q, &tensors.k, &tensors.v, &tensors.out, &tensors.lse, &tensors.dout}) {
    *view = change(*view, layout);
  }
  for (std::optional<TensorView>* view : {&tensors.dlse, &tensors.dq, &tensors.dk, &tensors.dv}) {
    if (*view) **view = change(**view, layout);
  }
  return tensors;
}

// One call of one rank. Exchange t brings k and v of distance t, and sends the gradients of
// distance t - 2 back to their owners, so that all that travels is one step away from all that
// computes.
class BackwardRun {
 public:
  BackwardRun(const Attention& attention, Communicator& communicator,
              const BackwardTensors& tensors, ContextPlanState& plan, const Bindings& bindings,
              const GradientBuffers& to, const ContextCallOptions& options)
      : attention_(attention),
        spec_(attention.spec()),
        communicator_(communicator),
        tensors_(tensors),
        plan_(plan),
        gradients_(*plan.gradients),
        bindings_(bindings),
        to_(to),
        options_(options),
        columns_(spec_, plan, tensors.k, tensors.v, options.workspace),
        buffers_(plan, communicator, options),
        workspace_(static_cast<std::byte*>(options.workspace.data)) {}

  void run() {
    const int last = ranks() + 1;
    clear_sums();
    bool travels = exchange(1);
    compute(0);
    for (int t = 1; t <= last; ++t) {
      const bool travels_next = t < last && exchange(t + 1);
      if (travels) plan_.lane->join(options_.stream, t % 2);
      compute(t);
      add_returned(t - 2);
      travels = travels_next;
    }
    buffers_.sum_over_ranks();
    store_sums();
  }

 private:
  int ranks() const { return static_cast<int>(gradients_.steps.size()); }
  std::int64_t batch() const { return plan_.whole.batch; }
  std::int64_t q_heads() const { return plan_.whole.num_q_heads; }
  std::int64_t kv_heads() const { return plan_.whole.num_kv_heads; }

  // What a distance has; null where that is nothing.
  const GradientStep* gradient_step(int distance) const {
    if (distance < 0 || distance >= ranks()) return nullptr;
    const GradientStep& of = gradients_.steps[static_cast<std::size_t>(distance)];
    return of.step < 0 ? nullptr : &of;
  }
  const Step& step(const GradientStep& of) const {
    return plan_.schedule.steps[static_cast<std::size_t>(of.step)];
  }

  // Waits for kernels that read the memory which it writes to, or write what it sends: of the steps
  // before the one at hand.
  bool exchange(int t) {
    plan_.sends.clear();
    plan_.receives.clear();
    if (const GradientStep* of = gradient_step(t)) {
      columns_.append_sends(step(*of), plan_.sends);
      columns_.append_receives(step(*of), plan_.receives);
    }
    const GradientStep* of = gradient_step(t - 2);
    if (of && t > 2) {
      append_parts(step(*of).calls, of->parts, (plan_.rank + ranks() - (t - 2)) % ranks(),
                   plan_.sends);
      append_parts(step(*of).returns, of->returned, (plan_.rank + t - 2) % ranks(), plan_.receives);
    }
    if (plan_.sends.empty() && plan_.receives.empty()) return false;
    plan_.lane->follow(options_.stream);
    communicator_.exchange(plan_.sends, plan_.receives, plan_.lane->stream());
    plan_.lane->mark(t % 2);
    return true;
  }

  void append_parts(const std::vector<PairCall>& calls, const std::vector<GradientPart>& parts,
                    int peer, std::vector<Message>& messages) const {
    for (std::size_t c = 0; c < calls.size(); ++c) {
      for (const TensorView& part : {k_part(calls[c], parts[c]), v_part(calls[c], parts[c])}) {
        if (part.data) messages.push_back({.peer = peer, .data = part.data, .bytes = part.bytes()});
      }
    }
  }

  // Without data where the spec does not name it.
  TensorView k_part(const PairCall& call, const GradientPart& part) const {
    return gradients_.has_k ? part_of(part.k_offset, call.columns, spec_.head_dim) : TensorView{};
  }
  TensorView v_part(const PairCall& call, const GradientPart& part) const {
    return gradients_.has_v ? part_of(part.v_offset, call.columns, spec_.value_head_dim())
                            : TensorView{};
  }
  TensorView part_of(std::int64_t offset, std::int64_t columns, std::int64_t width) const {
    return dense_view(workspace_ + offset, spec_.key_value_dtype(), spec_.key_value_layout(),
                      batch(), kv_heads(), columns, width);
  }

  TensorView q_sum() const {
    return dense_view(workspace_ + gradients_.q_sum_offset, DType::f32, spec_.layout, batch(),
                      q_heads(), gradients_.summed_q.count(), spec_.head_dim);
  }
  TensorView k_sum() const {
    return dense_view(workspace_ + gradients_.k_sum_offset, DType::f32, spec_.key_value_layout(),
                      batch(), kv_heads(), gradients_.summed_kv.count(), spec_.head_dim);
  }
  TensorView v_sum() const {
    return dense_view(workspace_ + gradients_.v_sum_offset, DType::f32, spec_.key_value_layout(),
                      batch(), kv_heads(), gradients_.summed_kv.count(), spec_.value_head_dim());
  }

  // What the caller gets of the rows that sums hold.
  TensorView summed_dq() const { return rows(*tensors_.dq, spec_.layout, gradients_.summed_q); }
  TensorView summed_dk() const {
    return rows(*tensors_.dk, spec_.key_value_layout(), gradients_.summed_kv);
  }
  TensorView summed_dv() const {
    return rows(*tensors_.dv, spec_.key_value_layout(), gradients_.summed_kv);
  }
  static TensorView rows(const TensorView& view, Layout layout, const RowRange& range) {
    return rows_of(view, layout, range.begin, range.count());
  }

  void clear_sums() const {
    buffers_.clear();
    if (gradients_.first_is_whole) return;
    if (gradients_.has_q) plan_.sums->add({}, q_sum(), false, options_.stream);
    if (gradients_.has_k) plan_.sums->add({}, k_sum(), false, options_.stream);
    if (gradients_.has_v) plan_.sums->add({}, v_sum(), false, options_.stream);
  }

  // With what the first call stored.
  void begin_sums() const {
    if (gradients_.has_q) plan_.sums->add(summed_dq(), q_sum(), false, options_.stream);
    if (gradients_.has_k) plan_.sums->add(summed_dk(), k_sum(), false, options_.stream);
    if (gradients_.has_v) plan_.sums->add(summed_dv(), v_sum(), false, options_.stream);
  }

  void store_sums() const {
    if (gradients_.has_q) plan_.sums->add(q_sum(), summed_dq(), false, options_.stream);
    if (gradients_.has_k) plan_.sums->add(k_sum(), summed_dk(), false, options_.stream);
    if (gradients_.has_v) plan_.sums->add(v_sum(), summed_dv(), false, options_.stream);
    buffers_.store(to_);
  }

  void compute(int distance) {
    const GradientStep* of = gradient_step(distance);
    if (!of) return;
    const std::vector<PairCall>& calls = step(*of).calls;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      run_pair(*of, c);
      buffers_.add_part();
      if (stores_at_once(*of)) {
        begin_sums();
        continue;
      }
      add_q_part(calls[c]);
      if (distance == 0) add_parts(calls[c], of->parts[c]);
    }
  }

  // Its one call stores gradients where the caller wants them.
  bool stores_at_once(const GradientStep& of) const {
    return gradients_.first_is_whole && step(of).distance == 0;
  }

  void run_pair(const GradientStep& of, std::size_t c) {
    if (plan_.packed) return run_packed(of, c);
    const PairCall& call = step(of).calls[c];
    const BackwardTensors tensors = tensors_of(of, c);
    const BackwardOptions options = {
        .q_offset = plan_.whole.q_offset + plan_.shard(call.q_shard).q_begin + call.first_row,
        .kv_offset =
            plan_.whole.kv_offset + plan_.shard(call.kv_shard).kv_begin + call.first_column,
        .scale = options_.scale,
        .deterministic = options_.deterministic,
        .workspace = kernel_workspace(),
        .stream = options_.stream};
    if (const auto& mask = plan_.masks[static_cast<std::size_t>(of.step)][c]) {
      attention_.backward(tensors, *mask, bindings_, buffers_.part(), options);
    } else {
      attention_.backward(tensors, bindings_, buffers_.part(), options);
    }
  }

  void run_packed(const GradientStep& of, std::size_t c) {
    const Plan& plan = plan_.packed->calls[static_cast<std::size_t>(of.step)][c].plan();
    attention_.backward(in_layout(tensors_of(of, c), unbatched, Layout::packed), plan, bindings_,
                        buffers_.part(),
                        {.scale = options_.scale,
                         .deterministic = options_.deterministic,
                         .workspace = kernel_workspace(),
                         .stream = options_.stream});
  }

  TensorView kernel_workspace() const {
    const std::int64_t bytes = gradients_.kernel_bytes.of(options_.deterministic);
    if (bytes == 0) return {};
    return TensorView::contiguous(workspace_ + gradients_.kernel_offset, DType::u8, {bytes});
  }

  BackwardTensors tensors_of(const GradientStep& of, std::size_t c) {
    const PairCall& call = step(of).calls[c];
    const std::int64_t row = plan_.q_row(call.q_shard) + call.first_row;
    const auto own_rows = [&](const TensorView& view) {
      return rows_of(view, spec_.layout, row, call.rows);
    };
    BackwardTensors tensors = {
        .q = own_rows(tensors_.q),
        .out = own_rows(tensors_.out),
        .lse = contiguous_rows(tensors_.lse, row, call.rows, gradients_.lse_offset),
        .dout = own_rows(tensors_.dout)};
    std::tie(tensors.k, tensors.v) = columns_.of(step(of), call);
    if (tensors_.dlse) {
      tensors.dlse = contiguous_rows(*tensors_.dlse, row, call.rows, gradients_.dlse_offset);
    }
    if (stores_at_once(of)) {
      tensors.dq = tensors_.dq;
      tensors.dk = tensors_.dk;
      tensors.dv = tensors_.dv;
      return tensors;
    }
    if (gradients_.has_q) tensors.dq = q_part(call);
    if (gradients_.has_k) tensors.dk = k_part(call, of.parts[c]);
    if (gradients_.has_v) tensors.dv = v_part(call, of.parts[c]);
    return tensors;
  }

  // Rows of lse or dlse, which a kernel takes contiguous.
  TensorView contiguous_rows(const TensorView& view, std::int64_t row, std::int64_t rows,
                             std::int64_t offset) {
    if (rows == view.shape[2]) return view;
    constexpr std::int64_t kElement = sizeof(float);
    const TensorView copy =
        TensorView::contiguous(workspace_ + offset, DType::f32, {batch(), q_heads(), rows});
    plan_.lane->copy({.to = copy.data,
                      .to_pitch = rows * kElement,
                      .from = static_cast<const float*>(view.data) + row,
                      .from_pitch = view.shape[2] * kElement,
                      .width = rows * kElement,
                      .height = batch() * q_heads()},
                     options_.stream);
    return copy;
  }

  TensorView q_part(const PairCall& call) const {
    return dense_view(workspace_ + gradients_.q_part_offset, spec_.dtype, spec_.layout, batch(),
                      q_heads(), call.rows, spec_.head_dim);
  }

  void add_q_part(const PairCall& call) const {
    if (!gradients_.has_q) return;
    const std::int64_t row = plan_.q_row(call.q_shard) + call.first_row - gradients_.summed_q.begin;
    plan_.sums->add(q_part(call), rows_of(q_sum(), spec_.layout, row, call.rows), true,
                    options_.stream);
  }

  // Gradients of this rank's columns that one call gave.
  void add_parts(const PairCall& call, const GradientPart& part) const {
    const std::int64_t column =
        plan_.kv_row(call.kv_shard) + call.first_column - gradients_.summed_kv.begin;
    const auto add = [&](const TensorView& from, const TensorView& sum) {
      plan_.sums->add(from, rows_of(sum, spec_.key_value_layout(), column, call.columns), true,
                      options_.stream);
    };
    if (gradients_.has_k) add(k_part(call, part), k_sum());
    if (gradients_.has_v) add(v_part(call, part), v_sum());
  }

  void add_returned(int distance) const {
    if (distance < 1) return;
    const GradientStep* of = gradient_step(distance);
    if (!of) return;
    const std::vector<PairCall>& calls = step(*of).returns;
    for (std::size_t c = 0; c < calls.size(); ++c) add_parts(calls[c], of->returned[c]);
  }

  const Attention& attention_;
  const Spec& spec_;
  Communicator& communicator_;
  const BackwardTensors& tensors_;
  ContextPlanState& plan_;
  const GradientSchedule& gradients_;
  const Bindings& bindings_;
  const GradientBuffers& to_;
  const ContextCallOptions& options_;
  Columns columns_;
  BufferSums buffers_;
  std::byte* workspace_;
};

}  // namespace

void run_backward(const Attention& attention, Communicator& communicator,
                  const BackwardTensors& tensors, ContextPlanState& plan, const Bindings& bindings,
                  const GradientBuffers& gradients, const ContextCallOptions& options) {
  const BackwardTensors given = in_layout(tensors, batched, attention.spec().layout);
  BackwardRun(attention, communicator, given, plan, bindings, gradients, options).run();
}

}  // namespace tilewright::parallel
