#include "jax_ffi.hpp"

#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "base/error.hpp"
#include "generator/spec/gradients.hpp"
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

/// A call, as far as both directions share it. Arrays of snippets follow the tensors.
struct Call {
  Call(const JaxFrame& frame, const char* device, std::size_t tensors, Stream stream)
      : variant(variant_of(frame.text("spec"), device)), stream(stream) {
    const Spec& spec = variant.attention.spec();
    shape = shape_of(spec, frame.input(0), frame.input(1), frame);
    if (const double given = frame.number("scale"); !std::isnan(given)) scale = given;
    SnippetInputs inputs;
    for (const auto& [name, declared] : spec.buffers)
      inputs.buffers.emplace(name, frame.input(tensors++));
    const std::vector<double> scalars = frame.numbers("scalars");
    std::size_t scalar = 0;
    for (const auto& [name, declared] : spec.scalars)
      inputs.scalars.emplace(name, scalars.at(scalar++));
    if (!inputs.buffers.empty() || !inputs.scalars.empty())
      bindings = variant.attention.bind(inputs);
    if (!spec.mask_mod.empty()) mask = mask_of(variant, shape, bindings, stream);
  }

  Variant& variant;
  Stream stream;
  Shape shape;
  Bindings bindings;
  std::optional<double> scale;
  std::optional<BlockMask> mask;
};

void forward(const JaxFrame& frame, const char* device, Stream stream) {
  const Call call(frame, device, 3, stream);
  ForwardTensors tensors{
      .q = frame.input(0), .k = frame.input(1), .v = frame.input(2), .out = frame.output(0)};
  if (frame.outputs() > 1) tensors.lse = frame.output(1);
  const ForwardOptions options{call.shape.q_offset, call.shape.kv_offset, call.scale, stream};
  const Attention& attention = call.variant.attention;
  if (!call.mask) return attention.forward(tensors, call.bindings, options);
  attention.forward(tensors, *call.mask, call.bindings, options);
}

// Results are the gradients of q, k, v, then of buffers and scalars, as far as the spec names them.
void backward(const JaxFrame& frame, const char* device, Stream stream) {
  const Call call(frame, device, 7, stream);
  const Spec& spec = call.variant.attention.spec();
  BackwardTensors tensors{.q = frame.input(0),
                          .k = frame.input(1),
                          .v = frame.input(2),
                          .out = frame.input(3),
                          .lse = frame.input(4),
                          .dout = frame.input(5),
                          .dlse = frame.input(6)};
  std::size_t next = 0;
  if (has_gradient(spec, "q")) tensors.dq = frame.output(next++);
  if (has_gradient(spec, "k")) tensors.dk = frame.output(next++);
  if (has_gradient(spec, "v")) tensors.dv = frame.output(next++);
  GradientBuffers named;
  for (const std::string& name : gradient_names(spec)) named.emplace(name, frame.output(next++));
  const BackwardOptions options{.q_offset = call.shape.q_offset,
                                .kv_offset = call.shape.kv_offset,
                                .scale = call.scale,
                                .stream = stream};
  const Attention& attention = call.variant.attention;
  if (!call.mask) return attention.backward(tensors, call.bindings, named, options);
  if (!call.mask->has_transposed()) call.mask->transposed();
  attention.backward(tensors, *call.mask, call.bindings, named, options);
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

using Run = void(const JaxFrame&, const char* device, Stream stream);

template <Run run>
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

template <Run run>
XLA_FFI_Error* on_cpu(XLA_FFI_CallFrame* frame) {
  return handle<run>(frame, "cpu");
}

template <Run run>
XLA_FFI_Error* on_cuda(XLA_FFI_CallFrame* frame) {
  return handle<run>(frame, "cuda");
}

}  // namespace

void declare_jax(nb::module_& module) {
  module.def("jax_handler", [](const std::string& platform, const std::string& pass) {
    const bool cpu = platform == "cpu";
    XLA_FFI_Handler* handler = pass == "forward" ? (cpu ? &on_cpu<forward> : &on_cuda<forward>)
                                                 : (cpu ? &on_cpu<backward> : &on_cuda<backward>);
    return nb::capsule(reinterpret_cast<void*>(handler));
  });
}

}  // namespace tilewright::py
