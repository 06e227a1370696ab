#pragma once

// Support for tests of rendered CPU kernels: compiles one with the system's compiler and loads it,
// and computes attention in plain double loops.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generator/render/kernel_source.hpp"
#include "generator/spec/spec.hpp"
#include "templates/abi/cpu.hpp"

namespace tilewright::test {

/// A shared object made from C++ text. Equal texts are compiled once in a process.
class CompiledText {
 public:
  CompiledText(const std::string& text, const std::vector<std::string>& options);

  template <typename T>
  T symbol(const char* name) const {
    return reinterpret_cast<T>(address(name));
  }

 private:
  void* address(const char* name) const;
  std::shared_ptr<void> object_;
};

/// A rendered kernel, compiled and loaded.
CompiledText load_kernel(const Spec& spec, std::string_view kernel,
                         const Target& target = Target::host_cpu());

/// Whether this machine can run kernels for a target.
bool can_run(const Target& target);

/// A call's sizes. The k and v of several batches may be one (kv_batch = 1).
struct CallShape {
  int batch = 1;
  int q_heads = 1;
  int kv_heads = 1;
  int q_len = 1;
  int kv_len = 1;
  int q_offset = 0;
  int kv_offset = 0;
  int kv_batch = 0;  // 0: batch
};

/// Snippets as C++ functions.
struct Mods {
  using Score = std::function<double(double score, int b, int h, int q_idx, int kv_idx)>;
  using Mask = std::function<bool(int b, int h, int q_idx, int kv_idx)>;
  Score score = [](double s, int, int, int, int) { return s; };
  Mask mask = [](int, int, int, int) { return true; };
};

/// A block mask's lists, made by looking at every element.
struct BlockLists {
  std::vector<long long> row_offsets, full_row_offsets;
  std::vector<int> indices, full_indices;
  int batch, heads, q_blocks;

  BlockLists(const Spec& spec, const CallShape& shape, const Mods& mods, int mask_batch,
             int mask_heads);
  abi::BlockMaskArgument argument() const;
};

/// Tensors of a call with random contents, and its results.
class Call {
 public:
  Call(const Spec& spec, const CallShape& shape, unsigned seed = 1);

  /// Element (b, h, row, d) of q, k or v, rounded to its type.
  double q(int b, int h, int row, int d) const;
  double k(int b, int h, int row, int d) const;
  double v(int b, int h, int row, int d) const;
  void set_k(int b, int h, int row, int d, float value);
  void set_v(int b, int h, int row, int d, float value);

  /// Runs every q tile of every head. `lists` for masked kernels, else null.
  void run(const CompiledText& kernel, const BlockLists* lists = nullptr);

  /// Buffers in the order of their names.
  std::vector<abi::BufferArgument> buffers;
  /// Scalars likewise.
  std::vector<abi::ScalarArgument> scalars;

  struct Difference {
    double out = 0;  // greatest error of out, relative to max(1, |expected|); NaN where only one is
    double lse = 0;
  };
  /// Against the double loops.
  Difference difference(const Mods& mods) const;

  float out(int b, int h, int row, int d) const;
  float lse(int b, int h, int row) const;
  abi::SnippetArguments snippet_arguments() const;
  const CallShape& shape() const { return shape_; }
  float scale = 0;

 private:
  static constexpr std::size_t kBehind = 4096;  // NaNs after the last element
  struct Tensor {
    DType dtype;
    Layout layout;
    long long heads, rows, dim;
    long long row_stride, head_stride, batch_stride;
    std::vector<std::uint32_t> storage;  // bit patterns of the dtype, one a word

    std::vector<unsigned char> bytes(std::size_t count) const;
    std::size_t size() const { return storage.size() - kBehind; }  // elements
    long long index(int b, int h, int row, int d) const;
    double get(int b, int h, int row, int d) const;
    void set(int b, int h, int row, int d, float value);
  };
  static Tensor make_tensor(DType dtype, Layout layout, int batch, int heads, int rows, int dim);

  Spec spec_;
  CallShape shape_;
  Tensor q_, k_, v_, out_;
  std::vector<float> lse_;
};

/// A float's bits in a 16-bit type and back, by arithmetic on doubles.
std::uint16_t round_to(DType dtype, float value);
float widen(DType dtype, std::uint16_t bits);

}  // namespace tilewright::test
