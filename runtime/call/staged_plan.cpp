#include "runtime/call/staged_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/call/plan_state.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/call/workspace.hpp"
#include "runtime/cuda/device_memory.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr std::byte kGarbage{0xa5};

const char* hint_for(PlanReport::Kind kind) {
  switch (kind) {
    case PlanReport::Kind::unsorted:
      return R"(sort each row of the buffer, or write "sorted": true in the spec)";
    case PlanReport::Kind::position_rows:
    case PlanReport::Kind::position_columns:
      return "give lists for all positions that the longest sequence has";
    case PlanReport::Kind::page_table:
      return "a call would read its rows as zeros; mend the table, or write -1 for a freed page";
    default:
      return "a call would clamp it; mend the tensor that it names";
  }
}

bool is_garbage(std::byte byte) {
  return byte == kGarbage;
}

}  // namespace

struct StagedPlan::Copy {
  std::string name;
  cuda::DeviceTensor tensor;
};

StagedPlan::StagedPlan(const Attention& attention, const PackedShape& shape,
                       const Sequences& sequences, const Bindings& bindings, OnFaults on_faults,
                       const PlanWishes& wishes)
    : device_(attention.device()), wishes_(wishes) {
  const std::int64_t bytes = attention.workspace_size(shape, wishes.positions);
  require_sequences(sequences, shape, attention.spec().kv_new);
  workspace_ = make_workspace(bytes);
  make(attention, shape, sequences, bindings, on_faults);
}

void StagedPlan::plan_again(const Attention& attention, const Sequences& sequences,
                            const Bindings& bindings) {
  make(attention, plan_->shape(), sequences, bindings, OnFaults::refuse);
}

void StagedPlan::make(const Attention& attention, const PackedShape& shape,
                      const Sequences& sequences, const Bindings& bindings, OnFaults on_faults) {
  plan_.emplace(attention.plan(shape, stage(sequences), bindings,
                               {.workspace = workspace_,
                                .batch_invariant = wishes_.batch_invariant,
                                .splits = wishes_.splits,
                                .positions = wishes_.positions,
                                .count_absent = on_faults != OnFaults::clamp,
                                .backward = !attention.spec().gradients.empty()}));
  const PlanReport report = plan_->report();
  const bool takes_unsorted = on_faults == OnFaults::take_unsorted;
  const std::int64_t refused = report.count - (takes_unsorted ? report.unsorted : 0);
  if (refused == 0 || on_faults == OnFaults::clamp) return;
  throw Error(ErrorCode::tensor, report.text(), hint_for(report.first->kind));
}

StagedPlan::~StagedPlan() = default;

TensorView StagedPlan::stage(const std::string& name, const TensorView& host) {
  if (device_.kind() == Device::Kind::cpu) return host;
  return copies_.emplace_back(Copy{name, {device_, host, kStagedInputMargin}}).tensor.view();
}

Sequences StagedPlan::stage(const Sequences& host) {
  Sequences staged = host;
  staged.q_begin = stage("q_begin", host.q_begin);
  if (host.kv_begin) staged.kv_begin = stage("kv_begin", *host.kv_begin);
  if (host.kv_len) staged.kv_len = stage("kv_len", *host.kv_len);
  if (host.page_table) staged.page_table = stage("page_table", *host.page_table);
  if (host.page_begin) staged.page_begin = stage("page_begin", *host.page_begin);
  if (host.q_offset) staged.q_offset = stage("q_offset", *host.q_offset);
  if (host.kv_offset) staged.kv_offset = stage("kv_offset", *host.kv_offset);
  return staged;
}

// A kernel that relies on zeros finds none. Both devices have the workspace at the same place in
// the memory, which the device's addresses decide.
TensorView StagedPlan::make_workspace(std::int64_t bytes) {
  bytes_ = static_cast<std::size_t>(bytes);
  memory_.assign(bytes_ + 2 * kGuard + kWorkspaceAlignment, kGarbage);
  TensorView all = TensorView::contiguous(memory_.data(), DType::u8,
                                          {static_cast<std::int64_t>(memory_.size())});
  if (device_.kind() == Device::Kind::cuda) all = device_memory_.emplace_back(device_, all).view();
  auto* const base = static_cast<std::byte*>(all.data);
  const std::uintptr_t misaligned =
      (reinterpret_cast<std::uintptr_t>(base) + kGuard) % kWorkspaceAlignment;
  offset_ = kGuard + (kWorkspaceAlignment - misaligned) % kWorkspaceAlignment;
  return TensorView::contiguous(base + offset_, DType::u8, {bytes});
}

std::optional<std::string> StagedPlan::damage() const {
  for (const Copy& copy : copies_) {
    const std::optional<std::ptrdiff_t> byte = copy.tensor.first_change();
    if (byte) return fmt::format("{} was written to on the GPU, at byte {}", copy.name, *byte);
  }
  for (const cuda::DeviceTensor& memory : device_memory_) memory.copy_back();
  const std::byte* const begin = memory_.data();
  const std::byte* const end = begin + offset_ + bytes_;
  const bool is_sound = std::all_of(begin, begin + offset_, is_garbage) &&
                        std::all_of(end, begin + memory_.size(), is_garbage);
  if (is_sound) return std::nullopt;
  return "memory around the plan's workspace was written to";
}

}  // namespace tilewright
