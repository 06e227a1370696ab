#pragma once

#include <cstdint>
#include <memory>

#include "../generator/spec/spec.hpp"
#include "../runtime/library/kernel_library.hpp"
#include "../templates/abi/cpu.hpp"

namespace tilewright::verify {

/// The derivatives of a spec's score_mod in float or in double, compiled for this machine's CPU.
template <typename Score>
class SlopesEvaluator {
 public:
  /// @throws Error as load_kernel
  SlopesEvaluator(const Spec& spec, const Toolchain& toolchain)
      : kernel_(load_kernel(
            spec, Target::host_cpu(),
            {.role = sizeof(Score) == sizeof(float) ? KernelRole::evaluate_slopes_float
                                                    : KernelRole::evaluate_slopes_double},
            toolchain)),
        slopes_(kernel_->template entry<Slopes>("tilewright_evaluate_slopes")),
        add_(kernel_->template entry<Add>("tilewright_add_gradients")),
        add_magnitudes_(kernel_->template entry<Add>("tilewright_add_gradient_magnitudes")) {}

  /// The derivative by the score at each element of a row.
  void row(const abi::SnippetArguments& arguments, std::int64_t b, std::int64_t h, std::int64_t row,
           const Score* scores, Score* slopes) const {
    slopes_(&arguments, static_cast<int>(b), static_cast<int>(h), static_cast<int>(row), scores,
            slopes);
  }

  /// Adds what the elements of a row give to the gradients of buffers and scalars.
  void add(const abi::SnippetArguments& arguments, std::int64_t b, std::int64_t h, std::int64_t row,
           const Score* scores, const Score* dy, const abi::GradientArgument* gradients,
           double* sums) const {
    add_(&arguments, static_cast<int>(b), static_cast<int>(h), static_cast<int>(row), scores, dy,
         gradients, sums);
  }

  /// The same, of which each term counts by its magnitude.
  void add_magnitudes(const abi::SnippetArguments& arguments, std::int64_t b, std::int64_t h,
                      std::int64_t row, const Score* scores, const Score* dy,
                      const abi::GradientArgument* gradients, double* sums) const {
    add_magnitudes_(&arguments, static_cast<int>(b), static_cast<int>(h), static_cast<int>(row),
                    scores, dy, gradients, sums);
  }

 private:
  using Slopes = void(const abi::SnippetArguments*, int b, int h, int row, const Score*, Score*);
  using Add = void(const abi::SnippetArguments*, int b, int h, int row, const Score*, const Score*,
                   const abi::GradientArgument*, double*);

  std::shared_ptr<const LoadedKernel> kernel_;
  Slopes* slopes_;
  Add* add_;
  Add* add_magnitudes_;
};

}  // namespace tilewright::verify
