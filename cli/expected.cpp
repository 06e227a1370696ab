#include "cli/expected.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/sequence_tensors.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/api/safetensors.hpp"

namespace tilewright::cli {
namespace {

void require_known_names(const std::string& path, const Spec& spec,
                         const std::vector<std::string>& others) {
  std::vector<std::string> inputs = {"q", "k", "v"};
  if (spec.is_packed()) {
    for (const auto& names : {SequenceTensors::required(spec), SequenceTensors::optional(spec)}) {
      inputs.insert(inputs.end(), names.begin(), names.end());
    }
  }
  if (!spec.gradients.empty()) inputs.insert(inputs.end(), {"dout", "dlse"});
  if (spec.kv_new) inputs.insert(inputs.end(), {"k_new", "v_new"});
  for (const auto& [name, buffer] : spec.buffers) inputs.push_back(name);
  for (const std::string& name : others) {
    if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
    const std::string hint = did_you_mean(name, result_names(spec));
    throw Error(
        ErrorCode::tensor, fmt::format("\"{}\" holds an extra tensor \"{}\"", path, name),
        hint.empty()
            ? R"(a result is "out", with "lse", "max_scores", "weights" and gradients where the spec names them)"
            : hint);
  }
}

void require_alike(const std::string& path, const std::string& name, const Tensor& given,
                   const TensorView& wanted) {
  if (given.describe() == wanted.describe()) return;
  throw Error(ErrorCode::tensor,
              fmt::format("tensor \"{}\" of \"{}\" is {}, but this call gives {}", name, path,
                          given.describe(), wanted.describe()),
              "write it in the spec's output dtype and layout, for the sizes of --inputs");
}

}  // namespace

std::vector<std::string> result_names(const Spec& spec) {
  std::vector<std::string> names = {"out", "lse", "max_scores", "weights"};
  for (const char* const name : {"q", "k", "v"}) {
    if (has_gradient(spec, name)) names.push_back(std::string("d") + name);
  }
  for (const std::string& name : gradient_names(spec)) names.push_back("d_" + name);
  return names;
}

ExpectedResult read_expected(const std::string& path, const Spec& spec, const CallInputs& inputs) {
  TensorFile file = read_safetensors(path, result_names(spec));
  require_known_names(path, spec, file.skipped);
  const auto out = file.tensors.find("out");
  if (out == file.tensors.end()) {
    throw Error(
        ErrorCode::tensor, fmt::format("\"{}\" holds no tensor \"out\"", path),
        R"(--expect judges "out", and each of "lse", "max_scores" and "weights" that the file has)");
  }
  require_alike(path, "out", out->second, inputs.out().view());
  verify::AttentionValues values{.out = verify::read_values(out->second.view(), spec.layout)};
  const Shape& shape = inputs.shape();
  const Tensor wanted =
      spec.is_packed() ? Tensor::zeros(DType::f32, {shape.num_q_heads, shape.q_len})
                       : Tensor::zeros(DType::f32, {shape.batch, shape.num_q_heads, shape.q_len});
  const auto read_rows = [&](const char* name, verify::Values& rows) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) return;
    require_alike(path, name, found->second, wanted.view());
    rows = verify::read_lse(found->second.view());
  };
  read_rows("lse", values.lse);
  read_rows("max_scores", values.max_scores);
  const auto weights = file.tensors.find("weights");
  if (weights != file.tensors.end() && !spec.is_packed()) {
    require_alike(path, "weights", weights->second,
                  Tensor::zeros(spec.output_dtype(),
                                {shape.batch, shape.num_q_heads, shape.q_len, shape.kv_len})
                      .view());
    values.weights = verify::read_values(weights->second.view(), Layout::bhsd);
  }
  ExpectedResult result{.values = std::move(values), .out = std::move(out->second)};
  if (inputs.gradients() == nullptr) return result;
  result.has_unread_dlse =
      std::find(file.skipped.begin(), file.skipped.end(), "dlse") != file.skipped.end();
  for (const auto& [name, ours] : inputs.gradients()->outputs()) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) continue;
    require_alike(path, name, found->second, ours);
    result.gradients.emplace(name, std::move(found->second));
  }
  return result;
}

}  // namespace tilewright::cli
