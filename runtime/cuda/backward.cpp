#include "runtime/cuda/backward.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/backward_tactic.hpp"
#include "runtime/call/tensor_role.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

constexpr std::int64_t kAlignment = 16;
constexpr std::int64_t kBinBytes = cuda_abi::kSumBins * sizeof(long long);

std::int64_t round_up(std::int64_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t facts_bytes(const Shape& shape) {
  return shape.batch * shape.num_q_heads * cuda_abi::facts_rows(shape.q_len) *
         static_cast<std::int64_t>(sizeof(cuda_abi::RowFacts));
}

std::int64_t bytes_of_sums(const TensorView& gradient, bool deterministic) {
  return round_up(gradient.numel() * (deterministic ? kBinBytes : 4));
}

unsigned grid_of(std::int64_t blocks) {
  if (blocks <= std::numeric_limits<std::int32_t>::max()) return static_cast<unsigned>(blocks);
  throw Error(ErrorCode::tensor,
              fmt::format("the call needs {} blocks of threads; a launch takes at most {}", blocks,
                          std::numeric_limits<std::int32_t>::max()),
              "split the batch");
}

// The sums of a call's gradients of buffers and scalars: where they lie, and how they reach the
// caller's tensors.
class Sums {
 public:
  Sums(const BackwardCall& call, std::int64_t begin) : bytes_(begin) {
    for (const TensorView& view : call.gradients) {
      const bool in_place = !call.deterministic && view.dtype == DType::f32 && view.is_contiguous();
      offsets_.push_back(in_place ? -1 : bytes_);
      if (!in_place) bytes_ += bytes_of_sums(view, call.deterministic);
    }
  }

  std::int64_t bytes() const { return bytes_; }  ///< of the whole workspace

  cuda_abi::SumsArgument argument(const BackwardCall& call, std::size_t i) const {
    if (offsets_[i] < 0) return {static_cast<float*>(call.gradients[i].data), nullptr};
    std::byte* const at = static_cast<std::byte*>(call.workspace.data) + offsets_[i];
    if (call.deterministic) return {nullptr, reinterpret_cast<long long*>(at)};
    return {reinterpret_cast<float*>(at), nullptr};
  }
  bool is_in_place(std::size_t i) const { return offsets_[i] < 0; }

 private:
  std::vector<std::int64_t> offsets_ = {};  // in the workspace; -1: the caller's tensor
  std::int64_t bytes_;
};

void require_workspace_of(const BackwardCall& call, std::int64_t bytes) {
  const TensorView& given = call.workspace;
  const std::int64_t has = given.data == nullptr ? 0 : given.bytes();
  if (has < bytes) {
    throw Error(
        ErrorCode::tensor,
        fmt::format("the workspace has {} bytes; this call of backward needs {}", has, bytes),
        "attention.workspace_size(shape, Pass::backward) says it; of gradients in 16 bits and "
        "deterministic ones, workspace_size(shape, Pass::backward, bindings, deterministic)");
  }
  if (!given.is_contiguous()) {
    throw Error(ErrorCode::tensor, "the workspace is not contiguous",
                "give one block of memory, for example u8 [workspace_size(shape, Pass::backward)]");
  }
  if (reinterpret_cast<std::uintptr_t>(given.data) % kAlignment == 0) return;
  throw Error(ErrorCode::tensor,
              fmt::format("the workspace begins at no multiple of {} bytes", kAlignment),
              "align it as allocations of the GPU's memory are");
}

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

class Launch {
 public:
  Launch(const Driver& driver, const ContextKernels& kernels, const KernelVariant& variant,
         const BackwardCall& call)
      : driver_(driver), kernels_(kernels), variant_(variant), call_(call) {}

  std::int64_t own_rows() const { return kernel("tilewright_backward_rows").launch.q_tile; }

  // A kernel whose blocks walk over tiles.
  void sweep(std::string_view entry, std::int64_t blocks, void** parameters) const {
    const KernelLaunch& launch = kernel(entry).launch;
    run(entry, blocks, launch.threads, launch.shared_bytes, parameters);
  }
  void plain(std::string_view entry, std::int64_t blocks, void** parameters) const {
    run(entry, blocks, cuda_abi::kPlainThreads, 0, parameters);
  }
  void clear(void* memory, std::int64_t bytes) const {
    if (bytes == 0) return;
    driver_.check(driver_.functions().fill_bytes(device_pointer(memory), 0,
                                                 static_cast<std::size_t>(bytes), stream()),
                  "clearing sums of gradients");
  }

 private:
  const Kernel& kernel(std::string_view entry) const { return kernels_.kernel(variant_, entry); }
  Stream stream() const { return static_cast<Stream>(call_.forward.stream); }

  void run(std::string_view entry, std::int64_t blocks, std::int64_t threads,
           std::int64_t shared_bytes, void** parameters) const {
    driver_.check(driver_.functions().launch(
                      kernel(entry).function, grid_of(blocks), 1, 1, static_cast<unsigned>(threads),
                      1, 1, static_cast<unsigned>(shared_bytes), stream(), parameters, nullptr),
                  "launching backward");
  }

  const Driver& driver_;
  const ContextKernels& kernels_;
  KernelVariant variant_;
  const BackwardCall& call_;
};

cuda_abi::BackwardArguments arguments_of(const BackwardCall& call, const BackwardMask& mask) {
  const ForwardCall& forward = call.forward;
  return {.q = tensor_argument(forward.q),
          .k = tensor_argument(forward.k),
          .v = tensor_argument(forward.v),
          .out = tensor_argument(forward.out),
          .dout = tensor_argument(call.dout),
          .lse = forward.lse,
          .dlse = call.dlse,
          .dq = tensor_argument(call.dq),
          .dk = tensor_argument(call.dk),
          .dv = tensor_argument(call.dv),
          .facts = static_cast<cuda_abi::RowFacts*>(call.workspace.data),
          .facts_rows = static_cast<int>(cuda_abi::facts_rows(forward.shape.q_len)),
          .batches_of_block = 1,
          .scale = static_cast<float>(forward.scale),
          .gathers_columns = 1,
          .mask = mask.rows,
          .columns = mask.columns};
}

// dk and dv by columns. Where one of them is a sum over the batch and the other is not, each has a
// launch.
void launch_columns(const Launch& launch, const Spec& spec, const BackwardCall& call,
                    cuda_abi::BackwardArguments arguments, std::array<void*, 3> parameters) {
  const Shape& shape = call.forward.shape;
  parameters[0] = &arguments;
  const std::int64_t tiles = ceil_div(shape.kv_len, launch.own_rows()) * shape.num_kv_heads;
  const std::int64_t parts = splits_backward_columns(spec) ? 2 : 1;
  const auto run = [&](bool sums_batch) {
    arguments.batches_of_block = sums_batch ? static_cast<int>(shape.batch) : 1;
    launch.sweep("tilewright_backward_columns",
                 parts * tiles * (shape.batch / arguments.batches_of_block), parameters.data());
  };
  const bool wants_dk = call.dk.data != nullptr, wants_dv = call.dv.data != nullptr;
  const bool has_names = !call.gradients.empty();
  if (!wants_dk || !wants_dv || call.sums_dk == call.sums_dv || shape.batch == 1) {
    if (wants_dk || wants_dv || has_names) run(call.sums_dk || call.sums_dv);
    return;
  }
  arguments.dv.data = nullptr;
  run(call.sums_dk);
  arguments.dk.data = nullptr;
  arguments.dv.data = call.dv.data;
  arguments.gathers_columns = 0;
  run(call.sums_dv);
}

}  // namespace

std::int64_t backward_workspace(const Shape& shape, const std::vector<TensorView>& gradients,
                                bool deterministic) {
  std::int64_t bytes = facts_bytes(shape);
  for (const TensorView& gradient : gradients) bytes += bytes_of_sums(gradient, deterministic);
  return bytes;
}

std::int64_t backward_workspace(const Spec& spec, const Shape& shape) {
  if (gradient_names(spec).empty()) return facts_bytes(shape);
  return facts_bytes(shape) +
         std::max<std::int64_t>(
             4 * shape.batch * shape.num_q_heads * shape.q_len * spec.head_dim,
             static_cast<std::int64_t>(gradient_names(spec).size()) * 64 * kBinBytes);
}

bool is_aligned(const Spec& spec, const BackwardCall& call) {
  return is_aligned(spec, call.forward) && tilewright::is_aligned(call.dout, spec.output_dtype()) &&
         tilewright::is_aligned(call.dq, spec.dtype) &&
         tilewright::is_aligned(call.dk, spec.key_value_dtype()) &&
         tilewright::is_aligned(call.dv, spec.key_value_dtype());
}

void launch_backward(const Driver& driver, const ContextKernels& kernels,
                     const KernelVariant& variant, const Spec& spec, const BackwardCall& call,
                     const BackwardMask& mask, const Bindings& bindings) {
  const Shape& shape = call.forward.shape;
  const Sums sums(call, facts_bytes(shape));
  require_workspace_of(call, sums.bytes());
  const Launch launch(driver, kernels, variant, call);
  cuda_abi::BackwardArguments arguments = arguments_of(call, mask);
  std::vector<cuda_abi::SumsArgument> sums_arguments(
      std::max<std::size_t>(call.gradients.size(), 1));
  for (std::size_t i = 0; i < call.gradients.size(); ++i) {
    sums_arguments[i] = sums.argument(call, i);
    const bool has_bins = sums_arguments[i].bins != nullptr;
    launch.clear(has_bins ? static_cast<void*>(sums_arguments[i].bins) : sums_arguments[i].sums,
                 call.gradients[i].numel() * (has_bins ? kBinBytes : 4));
  }
  SnippetParameter snippet(bindings.cuda_arguments(), shape);
  std::array<void*, 3> parameters = {&arguments, snippet.data(), sums_arguments.data()};
  const std::int64_t heads = shape.batch * shape.num_q_heads;
  const int lanes = cuda_abi::lanes_of_row(static_cast<int>(spec.value_head_dim()),
                                           static_cast<int>(size_of(spec.output_dtype())));
  launch.plain("tilewright_backward_prepare",
               ceil_div(heads * arguments.facts_rows, cuda_abi::kPlainThreads / lanes),
               parameters.data());
  const std::int64_t own = launch.own_rows();
  const bool has_names = !call.gradients.empty();
  launch_columns(launch, spec, call, arguments, parameters);
  if (call.dq.data != nullptr || has_names) {
    launch.sweep("tilewright_backward_rows", ceil_div(shape.q_len, own) * heads, parameters.data());
  }
  for (std::size_t i = 0; i < call.gradients.size(); ++i) {
    if (sums.is_in_place(i)) continue;
    cuda_abi::FinishArguments finish = finish_arguments(call.gradients[i], sums_arguments[i]);
    void* finish_parameters[] = {&finish};
    constexpr std::int64_t kMostBlocks = 4096;
    launch.plain(
        "tilewright_backward_finish",
        std::clamp<std::int64_t>(ceil_div(finish.cells, cuda_abi::kPlainThreads), 1, kMostBlocks),
        finish_parameters);
  }
}

}  // namespace tilewright::cuda
