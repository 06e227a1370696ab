#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cli/bench/measure.hpp"
#include "runtime/api/context_parallel.hpp"
#include "runtime/cuda/driver.hpp"

namespace tilewright::cli {

/// Memory of a GPU.
class GpuMemory {
 public:
  GpuMemory(int ordinal, std::int64_t bytes);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  void* data() const;
  void fill(const void* from, std::int64_t bytes) const;
  void read(void* to, std::int64_t bytes) const;

 private:
  const cuda::Driver& driver_;
  int ordinal_;
  cuda::DevicePointer pointer_ = 0;
};

/// Rows of a sequence in bf16 on one GPU, with out and lse: all of them, or a rank's shards. An
/// element depends on its position in the whole alone.
class SequenceRows {
 public:
  /// @param workload a bhsd spec of batch 1
  SequenceRows(const Workload& workload, const std::vector<Shard>& shards, const Device& device);

  ForwardTensors tensors() const;
  /// Copies out and lse to their places in the whole's, [heads, q_len, v_head_dim] and
  /// [heads, q_len].
  void read_results(std::vector<std::uint16_t>& out, std::vector<float>& lse) const;

 private:
  TensorView view(const GpuMemory& memory, std::int64_t heads, std::int64_t rows,
                  std::int64_t width) const;

  Spec spec_;
  Shape shape_;
  std::vector<Shard> shards_;
  std::int64_t q_rows_ = 0;
  std::int64_t kv_rows_ = 0;
  std::unique_ptr<GpuMemory> q_, k_, v_, out_, lse_;
};

/// The whole sequence as one shard.
std::vector<Shard> whole_shard(const Shape& shape);

/// Buffer `doc` of twelve documents on a GPU: position to document.
struct DocumentIds {
  DocumentIds(std::int64_t length, int ordinal);
  SnippetInputs inputs() const;

  std::int64_t length;
  GpuMemory memory;
};

/// How far two results are apart.
struct ResultDistance {
  double relative_rms = 0;  ///< of the difference of out, to that of out
  double lse_max = 0;
};
ResultDistance distance(const std::vector<std::uint16_t>& out, const std::vector<float>& lse,
                        const std::vector<std::uint16_t>& other_out,
                        const std::vector<float>& other_lse);

}  // namespace tilewright::cli
