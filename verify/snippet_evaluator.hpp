#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "../generator/snippet/snippet.hpp"
#include "../generator/spec/spec.hpp"
#include "../runtime/api/bindings.hpp"
#include "../runtime/api/shape.hpp"
#include "../runtime/library/kernel_library.hpp"
#include "../templates/abi/cpu.hpp"

namespace tilewright::verify {

/// Run-time values as CPU kernels take them. Packed here a second time, so that a mistake in the
/// runtime's own packing shows as a wrong result instead of being shared with the reference.
class SnippetValues {
 public:
  /// What a buffer's dimension of size 1 that is broadcast says its extent is: 1, as for a forward
  /// kernel, or what it stands for, so that the checked interpretation does not object to an index
  /// in it.
  enum class Extents { physical, logical };

  /// Holds views of the buffers. @throws Error as Bindings
  SnippetValues(const Spec& spec, const SnippetInputs& inputs, const Shape& shape,
                Extents extents = Extents::physical);

  /// Points into this object.
  abi::SnippetArguments arguments() const;

 private:
  Shape shape_;
  std::vector<abi::BufferArgument> buffers_;
  std::vector<abi::ScalarArgument> scalars_;
};

/// The snippets of a spec in one of their interpretations (docs/spec.md), compiled for this
/// machine's CPU. Immutable; may be used from many threads.
template <typename Score>
class SnippetEvaluator {
 public:
  /// @param role evaluate_float, evaluate_double or evaluate_checked
  /// @throws Error as load_kernel
  SnippetEvaluator(const Spec& spec, KernelRole role, const Toolchain& toolchain);

  /// One row of scores: `modified` and `keep` from `scores`, kv_len of each.
  void row(const abi::SnippetArguments& arguments, std::int64_t b, std::int64_t h, std::int64_t row,
           const Score* scores, Score* modified, unsigned char* keep) const {
    entry_(&arguments, static_cast<int>(b), static_cast<int>(h), static_cast<int>(row), scores,
           modified, keep);
  }

  /// A scale or the sink of a spec that has one: as ScaleValues says.
  void scale(SnippetKind kind, const abi::SnippetArguments& arguments, std::int64_t b,
             std::int64_t h, std::int64_t first, std::int64_t count, Score* values) const;

  const LoadedKernel& kernel() const { return *kernel_; }

 private:
  using Entry = void(const abi::SnippetArguments*, int b, int h, int row, const Score* scores,
                     Score* modified, unsigned char* keep);
  using ScaleEntry = void(const abi::SnippetArguments*, int which, int b, int h, int first,
                          int count, Score* values);

  std::shared_ptr<const LoadedKernel> kernel_;
  Entry* entry_;
  ScaleEntry* scale_entry_ = nullptr;  // null without scales and a sink
};

extern template class SnippetEvaluator<float>;
extern template class SnippetEvaluator<double>;

/// The snippets as the forward kernels read them.
class FloatInterpretation : public SnippetEvaluator<float> {
 public:
  FloatInterpretation(const Spec& spec, const Toolchain& toolchain)
      : SnippetEvaluator(spec, KernelRole::evaluate_float, toolchain) {}
};

/// The snippets in double, for the reference.
class DoubleInterpretation : public SnippetEvaluator<double> {
 public:
  DoubleInterpretation(const Spec& spec, const Toolchain& toolchain)
      : SnippetEvaluator(spec, KernelRole::evaluate_double, toolchain) {}
};

/// The snippets with every operation checked. Slow, and one thread at a time.
class CheckedInterpretation : public SnippetEvaluator<float> {
 public:
  CheckedInterpretation(const Spec& spec, const Toolchain& toolchain);

  /// What has been found since the last call: at most `capacity` findings, and how many there were.
  struct Findings {
    std::vector<abi::Finding> first;
    std::int64_t count = 0;
  };
  Findings take_findings(int capacity = 64) const;

 private:
  using Take = int(abi::Finding*, int capacity);
  Take* take_;
};

}  // namespace tilewright::verify
