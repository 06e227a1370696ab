#include "runtime/cuda/gradient_sums.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

constexpr std::int64_t kMostFinishBlocks = 4096;

cuda_abi::FinishArguments finish_arguments(const TensorView& view,
                                           const cuda_abi::SumsArgument& sums) {
  cuda_abi::FinishArguments finish{.sums = sums,
                                   .data = view.data,
                                   .cells = view.numel(),
                                   .stride = {},
                                   .size = {1, 1, 1, 1, 1},
                                   .type = view.dtype == DType::f16    ? cuda_abi::kSumsF16
                                           : view.dtype == DType::bf16 ? cuda_abi::kSumsBF16
                                                                       : cuda_abi::kSumsF32};
  for (int i = 0; i < view.rank; ++i) {
    finish.size[i] = static_cast<int>(view.shape[i]);
    finish.stride[i] = view.strides[i];
  }
  return finish;
}

}  // namespace

std::int64_t bytes_of_sums(const TensorView& gradient, bool deterministic) {
  return round_up(gradient.numel() * (deterministic ? kBinBytes : 4), kBackwardAlignment);
}

GradientSums::GradientSums(const BackwardCall& call, std::int64_t begin) : bytes_(begin) {
  for (const TensorView& view : call.gradients) {
    const bool in_place = !call.deterministic && view.dtype == DType::f32 && view.is_contiguous();
    offsets_.push_back(in_place ? -1 : bytes_);
    if (!in_place) bytes_ += bytes_of_sums(view, call.deterministic);
  }
}

cuda_abi::SumsArgument GradientSums::argument(const BackwardCall& call, std::size_t i) const {
  if (offsets_[i] < 0) return {static_cast<float*>(call.gradients[i].data), nullptr};
  std::byte* const at = static_cast<std::byte*>(call.workspace.data) + offsets_[i];
  if (call.deterministic) return {nullptr, reinterpret_cast<long long*>(at)};
  return {reinterpret_cast<float*>(at), nullptr};
}

std::vector<cuda_abi::SumsArgument> GradientSums::arguments(const BackwardCall& call) const {
  std::vector<cuda_abi::SumsArgument> all(std::max<std::size_t>(offsets_.size(), 1));
  for (std::size_t i = 0; i < offsets_.size(); ++i) all[i] = argument(call, i);
  return all;
}

void GradientSums::clear(const BackwardLaunch& launch, const BackwardCall& call) const {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const cuda_abi::SumsArgument sums = argument(call, i);
    const bool has_bins = sums.bins != nullptr;
    launch.clear(has_bins ? static_cast<void*>(sums.bins) : sums.sums,
                 call.gradients[i].numel() * (has_bins ? kBinBytes : 4));
  }
}

void GradientSums::finish(const BackwardLaunch& launch, const BackwardCall& call) const {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    if (offsets_[i] < 0) continue;
    cuda_abi::FinishArguments arguments = finish_arguments(call.gradients[i], argument(call, i));
    launch.plain("tilewright_backward_finish",
                 std::clamp<std::int64_t>(ceil_div(arguments.cells, cuda_abi::kPlainThreads), 1,
                                          kMostFinishBlocks),
                 arguments);
  }
}

}  // namespace tilewright::cuda
