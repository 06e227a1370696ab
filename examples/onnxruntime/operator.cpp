#include <atomic>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#include <tilewright.h>

namespace {

// The node that this thread computes. The library calls run_loop() on the thread that called it.
thread_local const Ort::KernelContext* node = nullptr;

// More workers than the session has threads find no item that is left.
const int32_t workers = static_cast<int32_t>(std::thread::hardware_concurrency()) + 1;

void run_loop(void*, int64_t items, void (*body)(void*, int64_t, int32_t), void* context) {
  std::atomic<int64_t> next = 0;
  auto work = [&](size_t worker) {
    for (int64_t item; (item = next++) < items;) body(context, item, static_cast<int32_t>(worker));
  };
  using Work = decltype(work);
  node->ParallelFor([](void* given, size_t worker) { (*static_cast<Work*>(given))(worker); },
                    workers, 0, &work);
}

template <typename Value>
tw_tensor view(const Value& value) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  const auto shape = info.GetShape();
  const auto type = info.GetElementType();
  const int32_t dtype = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT     ? TW_F32
                        : type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 ? TW_F16
                        : type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32   ? TW_I32
                        : type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64   ? TW_I64
                        : type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL    ? TW_BOOL
                                                                        : -1;
  return tw_tensor_contiguous(const_cast<void*>(value.GetTensorRawData()), dtype,
                              static_cast<int32_t>(shape.size()), shape.data());
}

// What `function` throws, as ONNX Runtime reports it.
template <typename Function>
OrtStatusPtr status_of(Function&& function) try {
  function();
  return nullptr;
} catch (const std::exception& error) {
  return Ort::Status(error.what(), ORT_FAIL).release();
}

void check(tw_error* error) {
  const std::unique_ptr<tw_error, void (*)(tw_error*)> owner(error, tw_error_destroy);
  if (error) throw std::runtime_error(tw_error_report(error));
}

class Kernel {
 public:
  explicit Kernel(const OrtKernelInfo* node_info) {
    const Ort::ConstKernelInfo info(node_info);
    const auto spec = info.GetAttribute<std::string>("spec");
    has_mask_ = spec.find("\"mask_mod\"") != std::string::npos;
    if (info.GetInputCount() > 3) {
      std::istringstream names(info.GetAttribute<std::string>("buffers"));
      for (std::string name; names >> name;) names_.push_back(name);
    }
    tw_options options = {.struct_size = sizeof options, .device = "cpu"};
    options.parallel_for = run_loop;
    options.pool_size = [](void*) { return workers; };
    tw_error* error = nullptr;
    tw_attention_create(spec.c_str(), &options, &attention_, &error);
    check(error);
  }
  ~Kernel() { tw_attention_destroy(attention_); }

  OrtStatusPtr ComputeV2(OrtKernelContext* context) const {
    return status_of([&] { compute(Ort::KernelContext(context)); });
  }

 private:
  void compute(const Ort::KernelContext& context) const {
    node = &context;
    const auto input = [&](size_t i) { return view(context.GetInput(i)); };
    const tw_tensor q = input(0), k = input(1), v = input(2);
    tw_shape shape = {sizeof shape, q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2]};
    shape.q_offset = shape.kv_len - shape.q_len;  // the last row stands at the last position
    tw_tensor out;
    tw_error* error = nullptr;
    tw_output_shape(attention_, &shape, &out, nullptr, &error);
    check(error);
    out = view(context.GetOutput(0, out.shape, 4));
    std::vector<tw_buffer> buffers;
    for (size_t i = 0; i < names_.size(); ++i) buffers.push_back({names_[i].c_str(), input(3 + i)});

    tw_bindings* bindings = nullptr;
    tw_mask* mask = nullptr;
    tw_bind(attention_, buffers.data(), buffers.size(), nullptr, 0, &bindings, &error);
    if (!error && has_mask_) tw_mask_create(attention_, &shape, bindings, nullptr, &mask, &error);
    const tw_call call = {sizeof call, q, k, v, out, {}, mask, nullptr, bindings, shape.q_offset};
    if (!error) tw_forward(attention_, &call, &error);
    tw_mask_destroy(mask);
    tw_bindings_destroy(bindings);
    check(error);
  }

  tw_attention* attention_ = nullptr;
  bool has_mask_ = false;
  std::vector<std::string> names_;
};

// q, k, v and out of `type`, and buffers of any.
template <ONNXTensorElementDataType type>
struct Operator : Ort::CustomOpBase<Operator<type>, Kernel, true> {
  const char* GetName() const { return "Attention"; }
  size_t GetInputTypeCount() const { return 4; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t i) const {
    return i < 3 ? type : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  }
  ONNXTensorElementDataType GetOutputType(size_t) const { return type; }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(size_t i) const {
    return i < 3 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_VARIADIC;
  }
  int GetVariadicInputMinArity() const { return 0; }
  bool GetVariadicInputHomogeneity() const { return false; }
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo* info, void** kernel) const {
    return status_of([&] { *kernel = new Kernel(info); });
  }
};

struct Domain : Ort::CustomOpDomain {
  Domain() : CustomOpDomain("tilewright") { Add(&f32), Add(&f16); }
  Operator<ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT> f32;
  Operator<ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16> f16;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(
    OrtSessionOptions* options, const OrtApiBase* base) {
  Ort::InitApi(base->GetApi(ORT_API_VERSION));
  return status_of([&] {
    static const Domain domain;
    Ort::UnownedSessionOptions(options).Add(domain);
  });
}
