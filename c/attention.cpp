#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "c/handles.hpp"
#include "c/options.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"
#include "c/text.hpp"

namespace tilewright::capi {
namespace {

std::unique_ptr<tw_attention> make_attention(const char* spec_json, const tw_options& options) {
  auto made = std::make_unique<tw_attention>();
  AttentionOptions given = attention_options(options, made->log, made->pool);
  made->attention = std::make_unique<Attention>(spec_from_json(spec_json), std::move(given));
  return made;
}

nlohmann::ordered_json json_of(const KernelBuild& build) {
  return {{"kernel", build.kernel},       {"source", build.source},
          {"render_ms", build.render_ms}, {"compile_ms", build.compile_ms},
          {"load_ms", build.load_ms},     {"bytes", build.bytes},
          {"names", build.names}};
}

void fill_outputs(const OutputShapes& shapes, tw_tensor* out, tw_tensor* lse) {
  required(out, "out") = tensor_of(shapes.out);
  if (lse) *lse = shapes.lse ? tensor_of(*shapes.lse) : tw_tensor{};
}

}  // namespace
}  // namespace tilewright::capi

using namespace tilewright;
using namespace tilewright::capi;

extern "C" {

tw_status tw_attention_create(const char* spec_json, const tw_options* options,
                              tw_attention** attention, tw_error** error) {
  return guarded(attention, error, [&] {
    required(spec_json, "spec_json");
    const Sized given(options, "tw_options");
    return make_attention(spec_json, *given).release();
  });
}

void tw_attention_destroy(tw_attention* attention) {
  delete attention;
}

tw_status tw_attention_spec(const tw_attention* attention, char* buffer, size_t* size) {
  return guarded(nullptr, [&] { copy_text(to_json(of(attention).spec()), buffer, size); });
}

int32_t tw_attention_has_mask_mod(const tw_attention* attention) {
  return attention != nullptr && !of(attention).spec().mask_mod.empty() ? 1 : 0;
}

tw_status tw_attention_device(const tw_attention* attention, char* buffer, size_t* size) {
  return guarded(nullptr, [&] { copy_text(of(attention).device().name(), buffer, size); });
}

tw_status tw_attention_target(const tw_attention* attention, char* buffer, size_t* size) {
  return guarded(nullptr, [&] { copy_text(of(attention).target().name(), buffer, size); });
}

tw_status tw_attention_builds(const tw_attention* attention, char* buffer, size_t* size) {
  return guarded(nullptr, [&] {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const KernelBuild& build : of(attention).builds()) all.push_back(json_of(build));
    copy_text(all.dump(), buffer, size);
  });
}

tw_status tw_attention_prepare(const tw_attention* attention, tw_error** error) {
  return guarded(error, [&] { of(attention).prepare(); });
}

tw_status tw_output_shape(const tw_attention* attention, const tw_shape* shape, tw_tensor* out,
                          tw_tensor* lse, tw_error** error) {
  return guarded(error,
                 [&] { fill_outputs(of(attention).output_shapes(shape_of(shape)), out, lse); });
}

tw_status tw_packed_output_shape(const tw_attention* attention, const tw_packed_shape* shape,
                                 tw_tensor* out, tw_tensor* lse, tw_error** error) {
  return guarded(error,
                 [&] { fill_outputs(of(attention).output_shapes(shape_of(shape)), out, lse); });
}

tw_status tw_workspace_size(const tw_attention* attention, const tw_shape* shape, int64_t* bytes,
                            tw_error** error) {
  return guarded(error,
                 [&] { required(bytes, "bytes") = of(attention).workspace_size(shape_of(shape)); });
}

}  // extern "C"
