#include "fuzz/case_gradients.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "fuzz/relation_calls.hpp"
#include "fuzz/written.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/io/float16.hpp"
#include "verify/random.hpp"
#include "verify/sequences.hpp"

namespace tilewright::verify::fuzz {
namespace {

// Rows of q that a sequence has; all of a dense call.
std::vector<bool> rows_of_sequences(const Problem& problem) {
  std::vector<bool> rows(static_cast<std::size_t>(problem.shape.q_len), !problem.sequences);
  if (!problem.sequences) return rows;
  for (const SequenceRows& one : read_sequences(problem)) {
    std::fill_n(rows.begin() + one.q_begin, one.q_len, true);
  }
  return rows;
}

// row_of: the row of q of an element, by its number.
template <typename RowOf>
Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Random random,
                     double factor, const std::vector<bool>& rows, const RowOf& row_of) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    // Rounded first, so that twice a number is twice what is stored.
    const double value = factor * round_to(dtype, random.normal());
    const bool is_used = rows[static_cast<std::size_t>(row_of(i))];
    write_element(tensor.data(), dtype, i,
                  is_used ? value : std::numeric_limits<double>::quiet_NaN());
  }
  return tensor;
}

std::vector<std::int64_t> lse_shape(const FuzzCase& c) {
  const Shape& shape = c.shape;
  if (c.spec.is_packed()) return {shape.num_q_heads, shape.q_len};
  return {shape.batch, shape.num_q_heads, shape.q_len};
}

Tensor random_dout(const FuzzCase& c, const std::vector<bool>& rows, double factor) {
  const Written written(c);
  const TensorView& out = written.out_view();
  const std::int64_t width = c.spec.value_head_dim();
  const std::int64_t heads = c.shape.num_q_heads, length = c.shape.q_len;
  const bool is_head_first = c.spec.layout == Layout::bhsd;
  return random_tensor(c.spec.output_dtype(), {out.extents().begin(), out.extents().end()},
                       Random(c.seed, "dout"), factor, rows, [=](std::int64_t i) {
                         return is_head_first ? i / width % length : i / width / heads % length;
                       });
}

Tensor random_dlse(const FuzzCase& c, const std::vector<bool>& rows, double factor) {
  return random_tensor(DType::f32, lse_shape(c), Random(c.seed, "dlse"), factor, rows,
                       [&](std::int64_t i) { return i % c.shape.q_len; });
}

bool has_bytes_of(const TensorView& view, const Tensor& before) {
  const Tensor now = Tensor::copy_of(view);
  return std::memcmp(now.data(), before.data(), static_cast<std::size_t>(now.bytes())) == 0;
}

}  // namespace

CaseGradients::CaseGradients(const FuzzCase& fuzz_case, const Problem& problem, double factor)
    : dout_(GuardedTensor::copy_of(random_dout(fuzz_case, rows_of_sequences(problem), factor),
                                   fuzz_case.out)),
      dout_before_(Tensor::copy_of(dout_.view())) {
  const Spec& spec = fuzz_case.spec;
  if (fuzz_case.dlse) {
    dlse_.emplace(
        GuardedTensor::copy_of(random_dlse(fuzz_case, rows_of_sequences(problem), factor)));
    dlse_before_ = Tensor::copy_of(dlse_->view());
  }
  if (has_gradient(spec, "q")) make("dq", spec.dtype, problem.q, fuzz_case.q);
  if (has_gradient(spec, "k")) make("dk", spec.key_value_dtype(), problem.k, fuzz_case.k);
  if (has_gradient(spec, "v")) make("dv", spec.key_value_dtype(), problem.v, fuzz_case.v);
  for (const std::string& name : gradient_names(spec)) {
    const auto buffer = problem.snippet.buffers.find(name);
    if (buffer == problem.snippet.buffers.end()) {
      written_.emplace("d_" + name, GuardedTensor(DType::f32, std::array<std::int64_t, 1>{1}));
      continue;
    }
    const bool is_as_stored = fuzz_case.seed / 4 % 2 == 0;
    make("d_" + name, is_as_stored ? gradient_dtype(buffer->second.dtype) : DType::f32,
         buffer->second, fuzz_case.buffers);
  }
}

void CaseGradients::make(const std::string& name, DType dtype, const TensorView& like,
                         const Placement& placement) {
  written_.emplace(name, GuardedTensor(dtype, like.extents(), placement));
}

void CaseGradients::take_batches(const std::vector<std::int64_t>& from) {
  dout_before_ = taken(dout_before_, 0, from);
  dout_ = GuardedTensor::copy_of(dout_before_);
  if (!dlse_) return;
  dlse_before_ = taken(dlse_before_, 0, from);
  dlse_ = GuardedTensor::copy_of(dlse_before_);
}

BackwardTensors CaseGradients::tensors(const ForwardTensors& forward) const {
  const auto view = [&](const char* name) {
    const auto found = written_.find(name);
    return found == written_.end() ? std::nullopt : std::optional(found->second.view());
  };
  BackwardTensors tensors{.q = forward.q,
                          .k = forward.k,
                          .v = forward.v,
                          .out = forward.out,
                          .lse = forward.lse.value(),
                          .dout = dout_.view(),
                          .dq = view("dq"),
                          .dk = view("dk"),
                          .dv = view("dv")};
  if (dlse_) tensors.dlse = dlse_->view();
  return tensors;
}

GradientBuffers CaseGradients::buffers() const {
  GradientBuffers buffers;
  for (const auto& [name, tensor] : written_) {
    if (name.starts_with("d_")) buffers.emplace(name.substr(2), tensor.view());
  }
  return buffers;
}

GradientResults CaseGradients::results() const {
  GradientResults results{.dout = dout_.view()};
  if (dlse_) results.dlse = dlse_->view();
  for (const auto& [name, tensor] : written_) results.gradients.emplace(name, tensor.view());
  return results;
}

std::string CaseGradients::damage() const {
  for (const auto& [name, tensor] : written_) {
    if (const auto found = tensor.damage())
      return fmt::format("{} was written to: {}", name, *found);
  }
  if (!has_bytes_of(dout_.view(), dout_before_) || dout_.damage()) return "dout was changed";
  if (dlse_ && (!has_bytes_of(dlse_->view(), dlse_before_) || dlse_->damage())) {
    return "dlse was changed";
  }
  return {};
}

std::string CaseGradients::touched_row(const Problem& problem) const {
  const auto dq = written_.find("dq");
  if (!problem.sequences || dq == written_.end()) return {};
  const std::vector<bool> rows = rows_of_sequences(problem);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row] || dq->second.is_untouched(0, static_cast<std::int64_t>(row))) continue;
    return fmt::format("row {} of dq belongs to no sequence and was written to", row);
  }
  return {};
}

}  // namespace tilewright::verify::fuzz
