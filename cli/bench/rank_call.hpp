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

/// What both passes write of the whole sequence: tensors in bf16 [heads, q_len or kv_len, width],
/// and lse [heads, q_len].
struct WholeResults {
  explicit WholeResults(const Workload& workload);

  std::vector<std::uint16_t> out, dq, dk, dv;
  std::vector<float> lse;
};

/// Rows of a sequence in bf16 on one GPU, with what both passes write: all of them, or a rank's
/// shards. An element of an input depends on its position in the whole alone.
class SequenceRows {
 public:
  /// @param workload a bhsd spec of batch 1
  SequenceRows(const Workload& workload, const std::vector<Shard>& shards, const Device& device);

  ForwardTensors tensors() const;
  BackwardTensors backward_tensors() const;
  /// Copies what the pass wrote to its places in the whole's. Each rank writes other elements.
  void read_results(Pass pass, WholeResults& whole) const;

 private:
  TensorView of_q(const GpuMemory& memory, std::int64_t width) const;
  TensorView of_kv(const GpuMemory& memory, std::int64_t width) const;

  Spec spec_;
  Shape shape_;
  std::vector<Shard> shards_;
  std::int64_t q_rows_ = 0;
  std::int64_t kv_rows_ = 0;
  std::unique_ptr<GpuMemory> q_, k_, v_, out_, lse_, dout_, dq_, dk_, dv_;
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

/// How far two results of a pass are apart.
struct ResultDistance {
  double relative_rms = 0;  ///< a difference's root mean square / the tensor's, the largest
  double lse_max = 0;       ///< of forward
};
ResultDistance distance(Pass pass, const WholeResults& whole, const WholeResults& other);

}  // namespace tilewright::cli
