#include "tests/mutants/slow_hardware.hpp"

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/render/engine/engine.hpp"
#include "runtime/cuda/device_memory.hpp"
#include "tests/mutants/emulated.hpp"
#include "tests/mutants/far_memory.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::mutants {
namespace {

Spec hopper_spec(std::string name, int head_dim, std::map<std::string, std::int64_t> parameters) {
  Spec spec;
  spec.name = std::move(name);
  spec.dtype = DType::bf16;
  spec.head_dim = head_dim;
  spec.tactic = TacticSpec{.name = "hopper", .parameters = std::move(parameters)};
  return spec;
}

Spec portable_spec(std::string name, std::map<std::string, std::int64_t> parameters) {
  Spec spec;
  spec.name = std::move(name);
  spec.dtype = DType::bf16;
  spec.head_dim = 64;
  spec.tactic = TacticSpec{.name = "portable", .parameters = std::move(parameters)};
  return spec;
}

// Short rows: a q tile is stored every few microseconds, and out has 128 MiB, more than a GPU's
// cache holds back, so that the bus decides when. All batches have the same inputs. The emulated
// GPU has three multiprocessors, and no bus.
Shape many_short_rows(const Spec& spec) {
  if (is_emulated()) {
    return {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 1'100, .kv_len = 64};
  }
  return {.batch = 512 / spec.head_dim,
          .num_q_heads = 32,
          .num_kv_heads = 1,
          .q_len = 4'096,
          .kv_len = 64};
}

// A call's tensors, each near or far.
class PlacedTensors {
 public:
  explicit PlacedTensors(const Device& device) : device_(device) {}

  // host: [1 or batch, ...]
  TensorView place(const Tensor& host, bool far, std::int64_t batch) {
    TensorView view = host.view();
    if (view.shape[0] == 1) view.strides[0] = 0;
    view.shape[0] = batch;
    if (!far) return near_.emplace_back(device_, view).view();
    view.data = far_.emplace_back(device_, static_cast<std::size_t>(host.bytes())).data();
    std::memcpy(view.data, host.data(), static_cast<std::size_t>(host.bytes()));
    return view;
  }

  // What was placed last, where it lies near, goes back to where it came from.
  void copy_back_last() const { near_.back().copy_back(); }

 private:
  Device device_;
  std::deque<cuda::DeviceTensor> near_;
  std::deque<FarMemory> far_;
};

struct Far {
  bool inputs = false;
  bool out = false;
};

Tensor out_of_call(const Attention& attention, const Far& far) {
  const Spec& spec = attention.spec();
  const Shape shape = many_short_rows(spec);
  Shape one = shape;
  one.batch = 1;
  const verify::Inputs inputs = verify::random_inputs(spec, one, 1);
  Tensor out = Tensor::zeros(spec.output_dtype(),
                             {shape.batch, shape.num_q_heads, shape.q_len, spec.value_head_dim()});
  const auto bytes = static_cast<std::size_t>(out.bytes());
  std::memset(out.data(), 0xff, bytes);  // NaN: what is not written
  PlacedTensors tensors(attention.device());
  ForwardTensors placed;
  placed.q = tensors.place(inputs.q, far.inputs, shape.batch);
  placed.k = tensors.place(inputs.k, far.inputs, shape.batch);
  placed.v = tensors.place(inputs.v, far.inputs, shape.batch);
  placed.out = tensors.place(out, far.out, shape.batch);
  attention.forward(placed);
  cuda::synchronize(attention.device());
  if (far.out) {
    std::memcpy(out.data(), placed.out.data, bytes);
  } else {
    tensors.copy_back_last();
  }
  return out;
}

std::string difference(const Tensor& wanted, const Tensor& got, std::string_view where) {
  const auto* const a = static_cast<const char*>(wanted.data());
  const auto* const b = static_cast<const char*>(got.data());
  if (std::memcmp(a, b, static_cast<std::size_t>(wanted.bytes())) == 0) return "";
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < wanted.bytes(); ++i) different += a[i] != b[i];
  return fmt::format("{} of {} bytes of out are others with {}", different, wanted.bytes(), where);
}

// The templates with warps that sleep: thread 0 before it makes the barriers, and one in eight
// after each wait for a barrier.
class SleepyTemplates : public jinja::Loader {
 public:
  explicit SleepyTemplates(std::shared_ptr<const jinja::Loader> awake) : awake_(std::move(awake)) {}

  std::optional<std::string> load(std::string_view name) const override {
    std::optional<std::string> text = awake_->load(name);
    if (text && name == "cuda/ptx/mbarrier.hpp") {
      insert(*text, "namespace tw_kernel {\n", kSleep);
      insert(*text, "    __trap();\n  }\n", "  sleep_at_times();\n");
    }
    if (text && name == "cuda/hopper/forward.hpp") {
      insert(*text, "unsigned char* shared_memory) {\n", "  if (threadIdx.x == 0) sleep_long();\n");
    }
    return text;
  }

  std::vector<std::string> names() const override { return awake_->names(); }

 private:
  static constexpr std::string_view kSleep = R"(
TW_INLINE void sleep_at_times() {
  unsigned time;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(time));
  if (((time ^ threadIdx.x / 32 * 40503u) * 2654435761u) >> 29 == 0) __nanosleep(2000);
}
TW_INLINE void sleep_long() {
  for (int i = 0; i < 20; ++i) __nanosleep(10000);
}
)";

  static void insert(std::string& text, std::string_view behind, std::string_view added) {
    const std::size_t place = text.find(behind);
    if (place == std::string::npos) {
      throw Error(ErrorCode::internal, fmt::format("no \"{}\" to put sleep behind", behind));
    }
    text.insert(place + behind.size(), added);
  }

  std::shared_ptr<const jinja::Loader> awake_;
};

}  // namespace

std::shared_ptr<const jinja::Loader> sleepy_templates(std::shared_ptr<const jinja::Loader> awake) {
  return std::make_shared<SleepyTemplates>(std::move(awake));
}

std::vector<Spec> specs_with_many_q_tiles() {
  return {
      hopper_spec("output of its own place", 64, {{"persistent", 1}}),
      hopper_spec("output over Q", 256, {{"out_over_q", 1}, {"q_stages", 1}, {"persistent", 1}})};
}

Spec spec_with_many_blocks() {
  return hopper_spec("a block for each q tile", 64, {{"persistent", 0}});
}

Spec spec_with_many_blocks_of_one_place() {
  return hopper_spec("a block for each q tile, one place of Q", 256,
                     {{"out_over_q", 1}, {"q_stages", 1}, {"persistent", 0}});
}

Spec spec_with_stages() {
  return portable_spec("several stages", {{"stages", 3}});
}

Spec spec_with_q_in_registers() {
  return portable_spec("Q in registers",
                       {{"q_tile", 64}, {"kv_tile", 64}, {"stages", 2}, {"q_in_registers", 1}});
}

std::string wrong_with_far_output(const Attention& attention) {
  return difference(out_of_call(attention, {}), out_of_call(attention, {.out = true}),
                    "out in the host's memory");
}

std::string wrong_with_far_inputs(const Attention& attention) {
  return difference(out_of_call(attention, {}), out_of_call(attention, {.inputs = true}),
                    "q, k and v in the host's memory");
}

std::string wrong_with_far_output_or_late_warps(const Attention& attention,
                                                const Toolchain& kernels) {
  const Tensor wanted = out_of_call(attention, {});
  const std::string wrong =
      difference(wanted, out_of_call(attention, {.out = true}), "out in the host's memory");
  if (!wrong.empty()) return wrong;
  AttentionOptions options{.device = attention.device(), .kernels = kernels};
  // The emulated GPU's warps come in any order by themselves.
  if (!is_emulated()) options.kernels.templates = sleepy_templates(kernels.templates);
  const Attention late(attention.spec(), options);
  return difference(wanted, out_of_call(late, {}), "late warps");
}

}  // namespace tilewright::mutants
