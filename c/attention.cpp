#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "c/handles.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"
#include "c/store.hpp"
#include "c/tensor.hpp"
#include "c/text.hpp"

namespace tilewright::capi {
namespace {

std::optional<bool> jit_of(std::int32_t jit) {
  if (jit == TW_JIT_DEFAULT) return std::nullopt;
  if (jit == TW_JIT_ON || jit == TW_JIT_OFF) return jit == TW_JIT_ON;
  throw Error(ErrorCode::usage, "jit is " + std::to_string(jit),
              "give TW_JIT_DEFAULT (0), TW_JIT_ON (1) or TW_JIT_OFF (-1)");
}

std::unique_ptr<LentPool> pool_of(const tw_options& options) {
  if (!options.parallel_for && !options.pool_size) return nullptr;
  if (options.parallel_for && options.pool_size) return std::make_unique<LentPool>(options);
  throw Error(ErrorCode::usage,
              options.parallel_for ? "pool_size is NULL, and parallel_for is not"
                                   : "parallel_for is NULL, and pool_size is not",
              "give both functions, or neither");
}

std::unique_ptr<tw_attention> make_attention(const char* spec_json, const tw_options& options) {
  auto made = std::make_unique<tw_attention>();
  if (options.log) made->log = std::make_unique<LogSink>(options.log, options.log_user);
  made->pool = pool_of(options);
  AttentionOptions given;
  given.device = options.device ? Device::parse(options.device) : Device::automatic();
  if (made->log) given.kernels.diagnostics = made->log->diagnostics();
  given.kernels.store = store_in(options.cache_dir, given.kernels.diagnostics);
  given.kernels.jit = jit_of(options.jit);
  given.threads = made->pool.get();
  given.takes_block_mask = options.takes_block_mask != 0;
  given.masks_only = options.masks_only != 0;
  given.positions = options.positions != 0;
  given.merge = options.merge != 0;
  given.append = options.append != 0;
  made->attention = std::make_unique<Attention>(spec_from_json(spec_json), std::move(given));
  return made;
}

nlohmann::ordered_json json_of(const KernelBuild& build) {
  return {{"kernel", build.kernel},       {"source", build.source},
          {"render_ms", build.render_ms}, {"compile_ms", build.compile_ms},
          {"load_ms", build.load_ms},     {"bytes", build.bytes}};
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
