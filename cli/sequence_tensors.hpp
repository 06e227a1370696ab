#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/api/safetensors.hpp"
#include "runtime/api/sequences.hpp"

namespace tilewright::cli {

/// The tensors of a file that say where sequences lie, as i32.
class SequenceTensors {
 public:
  static const std::vector<std::string>& required();  ///< q_begin, kv_begin
  static const std::vector<std::string>& optional();  ///< kv_len, q_offset, kv_offset

  /// Takes them out of a file. I64 is narrowed.
  /// @throws Error with code tensor for another dtype, or a number that 32 bits do not hold
  static SequenceTensors of_file(const std::string& path, const TensorFile& file);

  /// One sequence of these lengths; its rows are the whole tensors.
  static SequenceTensors of_one(std::int64_t q_len, std::int64_t kv_len, std::int64_t q_offset,
                                std::int64_t kv_offset);

  /// Views of them.
  Sequences sequences() const;

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace tilewright::cli
