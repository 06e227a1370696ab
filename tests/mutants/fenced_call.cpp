#include "tests/mutants/fenced_call.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>

#include "runtime/library/kernel_library.hpp"
#include "templates/abi/cpu.hpp"
#include "tests/support/fenced_memory.hpp"
#include "verify/random_inputs.hpp"
#include "verify/snippet_evaluator.hpp"

namespace tilewright::mutants {
namespace {

// The tensors of a call with fences between them.
class FencedTensors {
 public:
  void* room(std::size_t bytes) { return blocks_.emplace_back(bytes).data(); }
  TensorView copy_of(const TensorView& dense) {
    TensorView copy = dense;
    copy.data = room(static_cast<std::size_t>(dense.bytes()));
    std::memcpy(copy.data, dense.data, static_cast<std::size_t>(dense.bytes()));
    return copy;
  }

 private:
  std::deque<test::FencedMemory> blocks_;
};

abi::TensorArgument argument(const TensorView& tensor) {
  return {tensor.data, tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

Spec fenced_spec(DType dtype, std::int64_t head_dim, std::int64_t v_head_dim) {
  Spec spec;
  spec.name = "fences";
  spec.dtype = dtype;
  spec.head_dim = head_dim;
  spec.v_head_dim = v_head_dim;
  spec.score_mod = "score + of_row[q_idx] + of_column[kv_idx] + of_both(h, q_idx, kv_idx)";
  const BufferDim rows = NamedDim::q_len, columns = NamedDim::kv_len, heads = NamedDim::num_q_heads;
  spec.buffers["of_row"] = {.dtype = DType::f32, .shape = {rows}};
  spec.buffers["of_column"] = {.dtype = DType::f32, .shape = {columns}};
  spec.buffers["of_both"] = {.dtype = DType::f32, .shape = {heads, rows, columns}};
  spec.outputs.lse = true;
  return spec;
}

}  // namespace

std::vector<Spec> fenced_specs() {
  return {fenced_spec(DType::f32, 128, 64), fenced_spec(DType::f32, 64, 128),
          fenced_spec(DType::bf16, 64, 64), fenced_spec(DType::f16, 128, 64),
          fenced_spec(DType::f32, 20, 13)};
}

std::string wrong_between_fences(const Attention& attention, const Toolchain& kernels) {
  using Forward = void(const abi::ForwardArguments*, int, int, int, void*);
  const Spec& spec = attention.spec();
  const Shape shape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 37, .kv_len = 301};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 1);
  FencedTensors memory;
  SnippetInputs snippet;
  for (const auto& [name, tensor] : inputs.buffers) {
    snippet.buffers.emplace(name, memory.copy_of(tensor));
  }
  const verify::SnippetValues values(spec, snippet, shape);
  const Tensor out = Tensor::zeros(spec.output_dtype(), {1, 2, shape.q_len, spec.value_head_dim()});
  abi::ForwardArguments arguments{};
  arguments.snippet = values.arguments();
  arguments.q = argument(memory.copy_of(inputs.q));
  arguments.k = argument(memory.copy_of(inputs.k));
  arguments.v = argument(memory.copy_of(inputs.v));
  arguments.out = argument(memory.copy_of(out));
  arguments.lse = static_cast<float*>(memory.room(sizeof(float) * 2 * 37));
  arguments.scale = 1;
  const auto kernel =
      load_kernel(spec, attention.target(), KernelVariant::parse("forward_lse"), kernels);
  const auto scratch_bytes = *kernel->entry<const long long>("tilewright_scratch_bytes");
  const int q_tile = *kernel->entry<const int>("tilewright_q_tile");
  void* const scratch = memory.room(static_cast<std::size_t>(scratch_bytes));
  for (int h = 0; h < 2; ++h) {
    for (int tile = 0; tile * q_tile < shape.q_len; ++tile) {
      kernel->entry<Forward>("tilewright_forward")(&arguments, 0, h, tile, scratch);
    }
  }
  return "";
}

Spec fenced_mask_spec() {
  Spec spec;
  spec.name = "fenced mask";
  spec.dtype = DType::f32;
  spec.head_dim = 16;
  spec.mask_mod = "document[q_idx] == document[kv_idx]";
  spec.block = {16, 16};
  spec.buffers["document"] = {
      .dtype = DType::i32, .shape = {NamedDim::kv_len}, .range = {{0, 5}}, .sorted = true};
  return spec;
}

std::string wrong_mask_between_fences(const Attention& attention, const Toolchain&) {
  const Shape shape{.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 301, .kv_len = 301};
  const verify::Inputs inputs = verify::random_inputs(attention.spec(), shape, 1);
  FencedTensors memory;
  SnippetInputs snippet;
  snippet.buffers.emplace("document", memory.copy_of(inputs.buffers.at("document")));
  attention.block_mask(shape, attention.bind(snippet));
  return "";
}

}  // namespace tilewright::mutants
