#include "cli/expected.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/sequence_tensors.hpp"
#include "runtime/api/safetensors.hpp"

namespace tilewright::cli {
namespace {

const std::vector<std::string> kResults = {"out", "lse"};

void require_known_names(const std::string& path, const Spec& spec,
                         const std::vector<std::string>& others) {
  std::vector<std::string> inputs = {"q", "k", "v"};
  if (spec.is_packed()) {
    for (const auto& names : {SequenceTensors::required(spec), SequenceTensors::optional(spec)}) {
      inputs.insert(inputs.end(), names.begin(), names.end());
    }
  }
  for (const auto& [name, buffer] : spec.buffers) inputs.push_back(name);
  for (const std::string& name : others) {
    if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
    const std::string hint = did_you_mean(name, kResults);
    throw Error(ErrorCode::tensor, fmt::format("\"{}\" holds an extra tensor \"{}\"", path, name),
                hint.empty() ? "a result is \"out\", and \"lse\" where there is one" : hint);
  }
}

void require_alike(const std::string& path, const char* name, const Tensor& given,
                   const Tensor& wanted) {
  if (given.describe() == wanted.describe()) return;
  throw Error(ErrorCode::tensor,
              fmt::format("tensor \"{}\" of \"{}\" is {}, but this call gives {}", name, path,
                          given.describe(), wanted.describe()),
              "write it in the spec's output dtype and layout, for the sizes of --inputs");
}

}  // namespace

verify::AttentionValues read_expected(const std::string& path, const Spec& spec,
                                      const CallInputs& inputs) {
  const TensorFile file = read_safetensors(path, kResults);
  require_known_names(path, spec, file.skipped);
  const auto out = file.tensors.find("out");
  if (out == file.tensors.end()) {
    throw Error(ErrorCode::tensor, fmt::format("\"{}\" holds no tensor \"out\"", path),
                "--expect judges \"out\", and \"lse\" where the file has it");
  }
  require_alike(path, "out", out->second, inputs.out());
  verify::AttentionValues values{.out = verify::read_values(out->second.view(), spec.layout)};
  const auto lse = file.tensors.find("lse");
  if (lse == file.tensors.end()) return values;
  const Shape& shape = inputs.shape();
  const Tensor wanted =
      spec.is_packed() ? Tensor::zeros(DType::f32, {shape.num_q_heads, shape.q_len})
                       : Tensor::zeros(DType::f32, {shape.batch, shape.num_q_heads, shape.q_len});
  require_alike(path, "lse", lse->second, wanted);
  values.lse = verify::read_lse(lse->second.view());
  return values;
}

}  // namespace tilewright::cli
