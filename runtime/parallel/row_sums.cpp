#include "runtime/parallel/row_sums.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "generator/render/templates.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/io/float16.hpp"
#include "runtime/library/kernel_library.hpp"
#include "templates/abi/row_sums.hpp"

namespace tilewright::parallel {
namespace {

abi::RowType row_type(DType dtype) {
  if (dtype == DType::f32) return abi::RowType::f32;
  return dtype == DType::f16 ? abi::RowType::f16 : abi::RowType::bf16;
}

abi::SummedRows summed_rows(const TensorView& view) {
  return {view.data, view.strides[0], view.strides[1], view.strides[2], row_type(view.dtype)};
}

abi::RowSumArguments row_sum(const TensorView& from, const TensorView& to, bool adds) {
  const std::int64_t width = to.shape[3];
  return {.to = summed_rows(to),
          .from = from.data ? summed_rows(from) : abi::SummedRows{},
          .adds = adds ? 1 : 0,
          .middle = static_cast<int>(to.shape[1]),
          .rows = static_cast<int>(to.shape[2]),
          .width = static_cast<int>(width),
          .all_rows = to.shape[0] * to.shape[1] * to.shape[2],
          .lane_bits = 0};
}

void read_row(const abi::SummedRows& rows, std::int64_t offset, int width, float* to) {
  if (!rows.data) {
    std::fill_n(to, width, 0.0f);
  } else if (rows.type == abi::RowType::f32) {
    std::copy_n(static_cast<const float*>(rows.data) + offset, width, to);
  } else {
    const auto* const from = static_cast<const std::uint16_t*>(rows.data) + offset;
    std::transform(from, from + width, to,
                   rows.type == abi::RowType::f16 ? f16_to_float : bf16_to_float);
  }
}

void write_row(const float* from, int width, const abi::SummedRows& rows, std::int64_t offset) {
  if (rows.type == abi::RowType::f32) {
    std::copy_n(from, width, static_cast<float*>(rows.data) + offset);
  } else {
    std::transform(from, from + width, static_cast<std::uint16_t*>(rows.data) + offset,
                   rows.type == abi::RowType::f16 ? float_to_f16 : float_to_bf16);
  }
}

// values, more: room for a row each
void add_row(const abi::RowSumArguments& call, std::int64_t row, float* values, float* more) {
  const auto index = static_cast<unsigned>(row);
  const std::int64_t to = abi::summed_row_offset(call.to, call, index);
  read_row(call.from, abi::summed_row_offset(call.from, call, index), call.width, values);
  if (call.adds != 0) {
    read_row(call.to, to, call.width, more);
    for (int d = 0; d < call.width; ++d) values[d] += more[d];
  }
  write_row(values, call.width, call.to, to);
}

class CudaRowSums final : public RowSums {
 public:
  CudaRowSums(int ordinal, std::span<const std::byte> kernel)
      : RowSums(nullptr), driver_(cuda::Driver::get()), ordinal_(ordinal) {
    const cuda::ContextScope scope(driver_, ordinal);
    context_id_ = scope.id();
    context_ = scope.context();
    const cuda::DriverFunctions& f = driver_.functions();
    driver_.check(f.module_load(&module_, kernel.data()), "loading the kernel that adds rows");
    driver_.check(f.module_function(&function_, module_, "tilewright_add_rows"),
                  "finding the kernel that adds rows");
  }

  ~CudaRowSums() override {
    const cuda::ReleaseScope scope(driver_, context_, context_id_);
    if (scope) driver_.functions().module_unload(module_);
  }

  void add(const TensorView& from, const TensorView& to, bool adds, Stream stream) override {
    abi::RowSumArguments call = row_sum(from, to, adds);
    if (call.all_rows == 0) return;
    constexpr unsigned kLanesOfWarp = 32;
    call.lane_bits =
        std::countr_zero(std::min(std::bit_ceil(static_cast<unsigned>(call.width)), kLanesOfWarp));
    const std::int64_t rows_of_block = abi::kRowSumThreads >> call.lane_bits;
    const auto blocks = static_cast<unsigned>(ceil_div(std::int64_t{call.all_rows}, rows_of_block));
    void* parameters[] = {&call};
    const cuda::ContextScope scope(driver_, ordinal_);
    driver_.check(
        driver_.functions().launch(function_, blocks, 1, 1, abi::kRowSumThreads, 1, 1, 0,
                                   static_cast<cuda::Stream>(stream), parameters, nullptr),
        "adding up gradients");
  }

 private:
  const cuda::Driver& driver_;
  int ordinal_;
  cuda::Context context_ = nullptr;
  std::uint64_t context_id_ = 0;
  cuda::Module module_ = nullptr;
  cuda::Function function_ = nullptr;
};

}  // namespace

std::vector<std::byte> RowSums::compile(const Attention& attention, const Toolchain& kernels) {
  if (attention.device().kind() == Device::Kind::cpu) return {};
  const Toolchain toolchain = with_defaults(kernels);
  if (!*toolchain.jit) {
    throw Error(ErrorCode::missing_kernel,
                "context parallel compiles the kernel that adds up gradients, and kernels must not "
                "be compiled",
                "leave \"gradients\" out of the spec, or allow it: TILEWRIGHT_JIT=on");
  }
  const jinja::Rendered rendered =
      jinja::render(*toolchain.templates, "cuda/kernels/add_rows.cu.jinja", {});
  cuda::Nvrtc::Result result =
      cuda::Nvrtc::get().compile(rendered.text, attention.target().name(),
                                 {"--std=c++20", "-minimal", "-default-device", "-w"});
  if (result.succeeded) return std::move(result.cubin);
  throw Error(ErrorCode::compiler,
              "the kernel that adds up gradients does not compile: " + result.log);
}

std::unique_ptr<RowSums> RowSums::make(const Device& device, std::span<const std::byte> kernel,
                                       Executor* threads) {
  if (device.kind() == Device::Kind::cuda) {
    return std::make_unique<CudaRowSums>(device.index(), kernel);
  }
  return std::make_unique<RowSums>(threads);
}

void RowSums::add(const TensorView& from, const TensorView& to, bool adds, Stream) {
  const abi::RowSumArguments call = row_sum(from, to, adds);
  constexpr std::int64_t kRowsOfItem = 64;
  Executor& threads = threads_ ? *threads_ : static_cast<Executor&>(ThreadPool::shared());
  const std::int64_t rows = call.all_rows;
  threads.parallel_for(ceil_div(rows, kRowsOfItem), [&](std::int64_t item, int) {
    std::vector<float> memory(2 * static_cast<std::size_t>(call.width));
    const std::int64_t end = std::min(rows, (item + 1) * kRowsOfItem);
    for (std::int64_t row = item * kRowsOfItem; row < end; ++row) {
      add_row(call, row, memory.data(), memory.data() + call.width);
    }
  });
}

}  // namespace tilewright::parallel
