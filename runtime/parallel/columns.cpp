#include "runtime/parallel/columns.hpp"

#include "runtime/parallel/views.hpp"

namespace tilewright::parallel {

Columns::Columns(const Spec& spec, const ContextPlanState& plan, const TensorView& k,
                 const TensorView& v, const TensorView& workspace)
    : spec_(spec), plan_(plan), k_(k), v_(v), workspace_(static_cast<std::byte*>(workspace.data)) {}

void Columns::append_sends(const Step& step, std::vector<Message>& messages) const {
  const Layout layout = spec_.key_value_layout();
  for (const Transfer& sent : step.sends) {
    const std::int64_t row = plan_.kv_row(sent.shard) + sent.first_column;
    append_messages(messages, rows_of(k_, layout, row, sent.columns), layout, sent.peer);
    append_messages(messages, rows_of(v_, layout, row, sent.columns), layout, sent.peer);
  }
}

void Columns::append_receives(const Step& step, std::vector<Message>& messages) const {
  const Layout layout = spec_.key_value_layout();
  for (const Transfer& from : step.receives) {
    append_messages(messages, received_k(from), layout, from.peer);
    append_messages(messages, received_v(from), layout, from.peer);
  }
}

std::pair<TensorView, TensorView> Columns::of(const Step& step, const PairCall& call) const {
  const Layout layout = spec_.key_value_layout();
  if (call.transfer < 0) {
    const std::int64_t column = plan_.kv_row(call.kv_shard) + call.first_column;
    return {rows_of(k_, layout, column, call.columns), rows_of(v_, layout, column, call.columns)};
  }
  const Transfer& from = step.receives[static_cast<std::size_t>(call.transfer)];
  const std::int64_t column = call.first_column - from.first_column;
  return {rows_of(received_k(from), layout, column, call.columns),
          rows_of(received_v(from), layout, column, call.columns)};
}

TensorView Columns::received(std::int64_t offset, std::int64_t columns, std::int64_t width) const {
  return dense_view(workspace_ + offset, spec_.key_value_dtype(), spec_.key_value_layout(),
                    plan_.whole.batch, plan_.whole.num_kv_heads, columns, width);
}

TensorView Columns::received_k(const Transfer& from) const {
  return received(from.k_offset, from.columns, spec_.head_dim);
}

TensorView Columns::received_v(const Transfer& from) const {
  return received(from.v_offset, from.columns, spec_.value_head_dim());
}

}  // namespace tilewright::parallel
