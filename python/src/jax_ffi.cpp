#include "jax_ffi.hpp"

#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "base/error.hpp"
#include "generator/spec/spec_json.hpp"
#include "jax_frame.hpp"
#include "runtime/api/attention.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

/// An attention that compiled programs call, and its masks that depend on the shape alone.
struct Variant {
  explicit Variant(const std::string& spec, const char* device)
      : attention(spec_from_json(spec), {.device = Device::parse(device)}) {}

  Attention attention;
  std::mutex mutex;
  std::map<std::string, BlockMask> masks;
};

Variant& variant_of(const std::string& spec, const char* device) {
  static std::mutex mutex;
  // Never destroyed: programs of XLA may run while the process ends.
  static auto& variants =
      *new std::map<std::pair<std::string, std::string>, std::unique_ptr<Variant>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Variant>& variant = variants[{spec, device}];
  if (!variant) variant = std::make_unique<Variant>(spec, device);
  return *variant;
}

Shape shape_of(const Spec& spec, const TensorView& q, const TensorView& k, const JaxFrame& frame) {
  if (q.rank != 4 || k.rank != 4) {
    throw Error(ErrorCode::tensor, "q and k must have 4 dimensions");
  }
  const std::size_t q_heads = spec.layout == Layout::bshd ? 2 : 1;
  const std::size_t kv_heads = spec.key_value_layout() == Layout::bshd ? 2 : 1;
  return {.batch = q.shape[0],
          .num_q_heads = q.shape[q_heads],
          .num_kv_heads = k.shape[kv_heads],
          .q_len = q.shape[3 - q_heads],
          .kv_len = k.shape[3 - kv_heads],
          .q_offset = frame.integer("q_offset"),
          .kv_offset = frame.integer("kv_offset")};
}

BlockMask mask_of(Variant& variant, const Shape& shape, const Bindings& bindings, Stream stream) {
  constexpr std::size_t kMostMasks = 64;
  if (!bindings.is_default()) return variant.attention.block_mask(shape, bindings, stream);
  const std::lock_guard lock(variant.mutex);
  const auto found = variant.masks.find(shape.describe());
  if (found != variant.masks.end()) return found->second;
  if (variant.masks.size() >= kMostMasks) variant.masks.clear();
  return variant.masks
      .emplace(shape.describe(), variant.attention.block_mask(shape, bindings, stream))
      .first->second;
}

void run(const JaxFrame& frame, const char* device, Stream stream) {
  Variant& variant = variant_of(frame.text("spec"), device);
  const Spec& spec = variant.attention.spec();
  ForwardTensors tensors{
      .q = frame.input(0), .k = frame.input(1), .v = frame.input(2), .out = frame.output(0)};
  if (frame.outputs() > 1) tensors.lse = frame.output(1);
  SnippetInputs inputs;
  std::size_t next = 3;
  for (const auto& [name, declared] : spec.buffers)
    inputs.buffers.emplace(name, frame.input(next++));
  const std::vector<double> scalars = frame.numbers("scalars");
  std::size_t scalar = 0;
  for (const auto& [name, declared] : spec.scalars)
    inputs.scalars.emplace(name, scalars.at(scalar++));
  const Bindings bindings = inputs.buffers.empty() && inputs.scalars.empty()
                                ? Bindings()
                                : variant.attention.bind(inputs);
  ForwardOptions options{.stream = stream};
  if (const double scale = frame.number("scale"); !std::isnan(scale)) options.scale = scale;
  const Shape shape = shape_of(spec, tensors.q, tensors.k, frame);
  options.q_offset = shape.q_offset;
  options.kv_offset = shape.kv_offset;
  if (spec.mask_mod.empty()) return variant.attention.forward(tensors, bindings, options);
  variant.attention.forward(tensors, mask_of(variant, shape, bindings, stream), bindings, options);
}

XLA_FFI_Error* failed(const XLA_FFI_CallFrame& frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {};
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = message;
  args.errc = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  return frame.api->XLA_FFI_Error_Create(&args);
}

// XLA asks what a handler was compiled for.
bool answer_metadata(XLA_FFI_CallFrame& frame) {
  XLA_FFI_Extension_Base* extension = frame.extension_start;
  if (!extension || extension->type != XLA_FFI_Extension_Metadata) return false;
  XLA_FFI_Metadata& metadata = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(extension)->metadata;
  metadata.api_version.major_version = XLA_FFI_API_MAJOR;
  metadata.api_version.minor_version = XLA_FFI_API_MINOR;
  metadata.traits = 0;
  return true;
}

XLA_FFI_Error* handle(XLA_FFI_CallFrame* frame, const char* device) {
  if (answer_metadata(*frame)) return nullptr;
  if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE) return nullptr;
  try {
    const JaxFrame call(*frame);
    run(call, device, std::string_view(device) == "cpu" ? nullptr : call.stream());
    return nullptr;
  } catch (const std::exception& error) {
    return failed(*frame, error.what());
  }
}

XLA_FFI_Error* forward_on_cpu(XLA_FFI_CallFrame* frame) {
  return handle(frame, "cpu");
}

XLA_FFI_Error* forward_on_cuda(XLA_FFI_CallFrame* frame) {
  return handle(frame, "cuda");
}

}  // namespace

void declare_jax(nb::module_& module) {
  module.def("jax_handler", [](const std::string& platform) {
    XLA_FFI_Handler* handler = platform == "cpu" ? &forward_on_cpu : &forward_on_cuda;
    return nb::capsule(reinterpret_cast<void*>(handler));
  });
}

}  // namespace tilewright::py
