#include "c/handles.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"
#include "c/text.hpp"

namespace tilewright::capi {
namespace {

Sequences sequences_of(const tw_sequences* sequences, const Device& device) {
  const Sized given(&required(sequences, "sequences"), "tw_sequences");
  return {.q_begin = view_of(given->q_begin, device, "q_begin"),
          .kv_begin = optional_view_of(given->kv_begin, device, "kv_begin"),
          .kv_len = optional_view_of(given->kv_len, device, "kv_len"),
          .page_table = optional_view_of(given->page_table, device, "page_table"),
          .page_begin = optional_view_of(given->page_begin, device, "page_begin"),
          .q_offset = optional_view_of(given->q_offset, device, "q_offset"),
          .kv_offset = optional_view_of(given->kv_offset, device, "kv_offset")};
}

PlanOptions plan_options(const tw_plan_options* options) {
  const Sized given(&required(options, "options"), "tw_plan_options");
  return {.workspace = TensorView::contiguous(given->workspace, u8, {given->workspace_bytes}),
          .stream = given->stream,
          .batch_invariant = given->batch_invariant != 0,
          .positions = given->positions ? &given->positions->mask : nullptr,
          .count_absent = given->count_absent != 0,
          .backward = given->backward != 0};
}

static_assert(static_cast<int>(PlanReport::Kind::q_begin) == TW_Q_BEGIN &&
              static_cast<int>(PlanReport::Kind::kv_begin) == TW_KV_BEGIN &&
              static_cast<int>(PlanReport::Kind::page_begin) == TW_PAGE_BEGIN &&
              static_cast<int>(PlanReport::Kind::kv_len) == TW_KV_LEN &&
              static_cast<int>(PlanReport::Kind::page_table) == TW_PAGE_TABLE &&
              static_cast<int>(PlanReport::Kind::q_offset) == TW_Q_OFFSET &&
              static_cast<int>(PlanReport::Kind::kv_offset) == TW_KV_OFFSET &&
              static_cast<int>(PlanReport::Kind::position_rows) == TW_POSITION_ROWS &&
              static_cast<int>(PlanReport::Kind::position_columns) == TW_POSITION_COLUMNS &&
              static_cast<int>(PlanReport::Kind::unsorted) == TW_UNSORTED &&
              static_cast<int>(PlanReport::Kind::q_len) == TW_Q_LEN);

tw_report report_of(const PlanReport& report) {
  tw_report result = {};
  result.count = report.count;
  result.unplanned_rows = report.unplanned_rows;
  result.unsorted = report.unsorted;
  result.kind = TW_NOTHING_CLAMPED;
  if (!report.first) return result;
  result.kind = static_cast<std::int32_t>(report.first->kind);
  result.sequence = report.first->sequence;
  result.place = report.first->place;
  result.value = report.first->value;
  result.limit = report.first->limit;
  return result;
}

}  // namespace
}  // namespace tilewright::capi

using namespace tilewright;
using namespace tilewright::capi;

extern "C" {

tw_status tw_plan_workspace_size(const tw_attention* attention, const tw_packed_shape* shape,
                                 const tw_plan_options* options, int64_t* bytes, tw_error** error) {
  return guarded(error, [&] {
    const Attention& on = of(attention);
    const PackedShape sizes = shape_of(shape);
    const Sized given(options, "tw_plan_options");
    std::int64_t& result = required(bytes, "bytes");
    if (given->positions) {
      result = on.workspace_size(sizes, &given->positions->mask);
    } else {
      result = given->batch_invariant ? on.workspace_size(sizes, true) : on.workspace_size(sizes);
    }
  });
}

tw_status tw_plan_create(const tw_attention* attention, const tw_packed_shape* shape,
                         const tw_sequences* sequences, const tw_bindings* bindings,
                         const tw_plan_options* options, tw_plan** plan, tw_error** error) {
  return guarded(plan, error, [&] {
    const Attention& on = of(attention);
    return new tw_plan{on.plan(shape_of(shape), sequences_of(sequences, on.device()), of(bindings),
                               plan_options(options))};
  });
}

tw_status tw_plan_rebuild(const tw_attention* attention, tw_plan* plan, const tw_bindings* bindings,
                          void* stream, tw_error** error) {
  return guarded(error,
                 [&] { of(attention).rebuild(required(plan, "plan").plan, of(bindings), stream); });
}

tw_status tw_plan_report(const tw_plan* plan, tw_report* report, tw_error** error) {
  return guarded(error, [&] {
    fill_sized(report, report_of(required(plan, "plan").plan.report()), "tw_report");
  });
}

tw_status tw_plan_report_text(const tw_plan* plan, char* buffer, size_t* size) {
  return guarded(nullptr,
                 [&] { copy_text(required(plan, "plan").plan.report().text(), buffer, size); });
}

void tw_plan_destroy(tw_plan* plan) {
  delete plan;
}

}  // extern "C"
