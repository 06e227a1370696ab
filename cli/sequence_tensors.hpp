#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/safetensors.hpp"
#include "runtime/api/sequences.hpp"

namespace tilewright::cli {

/// The tensors of a file that say where sequences lie.
class SequenceTensors {
 public:
  /// q_begin, and kv_begin or, of paged k and v, kv_len.
  static std::vector<std::string> required(const Spec& spec);
  /// kv_len or, of paged k and v, page_table and page_begin; q_offset, kv_offset.
  static std::vector<std::string> optional(const Spec& spec);

  /// Takes them out of a file. I64 is narrowed, but for page_begin.
  /// @throws Error with code tensor for another dtype, or a number that 32 bits do not hold
  static SequenceTensors of_file(const Spec& spec, const std::string& path, const TensorFile& file);

  /// One sequence of these lengths; its rows are the whole tensors, or one page.
  static SequenceTensors of_one(const Spec& spec, std::int64_t q_len, std::int64_t kv_len,
                                std::int64_t q_offset, std::int64_t kv_offset);

  /// Views of them.
  Sequences sequences() const;

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace tilewright::cli
