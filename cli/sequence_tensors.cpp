#include "cli/sequence_tensors.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::cli {
namespace {

Tensor narrowed(const std::string& path, const std::string& name, const Tensor& given) {
  if (given.dtype() == DType::i32) return Tensor::copy_of(given);
  if (given.dtype() != DType::i64) {
    throw Error(ErrorCode::tensor,
                fmt::format("tensor \"{}\" of \"{}\" is {}; it must be I32 or I64", name, path,
                            given.describe()),
                "write whole numbers: rows, lengths and positions");
  }
  Tensor tensor = Tensor::zeros(DType::i32, given.shape());
  const auto* const from = static_cast<const std::int64_t*>(given.data());
  auto* const to = static_cast<std::int32_t*>(tensor.data());
  for (std::int64_t i = 0; i < given.numel(); ++i) {
    to[i] = static_cast<std::int32_t>(from[i]);
    if (to[i] == from[i]) continue;
    throw Error(ErrorCode::tensor,
                fmt::format("{}[{}] is {}, which 32 bits do not hold", name, i, from[i]),
                fmt::format("kernels count rows in 32 bits: at most {}",
                            std::numeric_limits<std::int32_t>::max()));
  }
  return tensor;
}

Tensor numbers(std::initializer_list<std::int64_t> values) {
  Tensor tensor = Tensor::zeros(DType::i32, {static_cast<std::int64_t>(values.size())});
  auto* to = static_cast<std::int32_t*>(tensor.data());
  for (const std::int64_t value : values) *to++ = static_cast<std::int32_t>(value);
  return tensor;
}

}  // namespace

std::vector<std::string> SequenceTensors::required(const Spec& spec) {
  return {"q_begin", spec.is_paged() ? "kv_len" : "kv_begin"};
}

std::vector<std::string> SequenceTensors::optional(const Spec& spec) {
  if (spec.is_paged()) return {"page_table", "page_begin", "q_offset", "kv_offset"};
  return {"kv_len", "q_offset", "kv_offset"};
}

SequenceTensors SequenceTensors::of_file(const Spec& spec, const std::string& path,
                                         const TensorFile& file) {
  SequenceTensors taken;
  std::vector<std::string> names = required(spec);
  for (std::string& name : optional(spec)) names.push_back(std::move(name));
  for (const std::string& name : names) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) continue;
    const bool may_be_wide = name == "page_begin" && found->second.dtype() == DType::i64;
    taken.tensors_.emplace(
        name, may_be_wide ? Tensor::copy_of(found->second) : narrowed(path, name, found->second));
  }
  return taken;
}

SequenceTensors SequenceTensors::of_one(const Spec& spec, std::int64_t q_len, std::int64_t kv_len,
                                        std::int64_t q_offset, std::int64_t kv_offset) {
  SequenceTensors taken;
  taken.tensors_.emplace("q_begin", numbers({0, q_len}));
  if (spec.is_paged()) {
    taken.tensors_.emplace("kv_len", numbers({kv_len}));
  } else {
    taken.tensors_.emplace("kv_begin", numbers({0, kv_len}));
  }
  taken.tensors_.emplace("q_offset", numbers({q_offset}));
  taken.tensors_.emplace("kv_offset", numbers({kv_offset}));
  return taken;
}

Sequences SequenceTensors::sequences() const {
  const auto view = [&](const std::string& name) -> std::optional<TensorView> {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return std::nullopt;
    return found->second.view();
  };
  return {.q_begin = view("q_begin").value_or(TensorView{}),
          .kv_begin = view("kv_begin"),
          .kv_len = view("kv_len"),
          .page_table = view("page_table"),
          .page_begin = view("page_begin"),
          .q_offset = view("q_offset"),
          .kv_offset = view("kv_offset")};
}

}  // namespace tilewright::cli
