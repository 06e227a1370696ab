// faults CASE: makes the C ABI fail in one way, and checks the status and the error.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <tilewright.h>

namespace {

// Allocations of at least so many bytes fail.
std::size_t smallest_failing = SIZE_MAX;

const char* const kCausal =
    R"({"dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx", "block": [16, 16]})";

template <typename Struct>
Struct sized() {
  Struct made = {};
  made.struct_size = sizeof made;
  return made;
}

tw_options options() {
  auto made = sized<tw_options>();
  made.device = "cpu";
  return made;
}

tw_status create(const char* spec, const tw_options& given, tw_error** error) {
  tw_attention* made = nullptr;
  const tw_status status = tw_attention_create(spec, &given, &made, error);
  tw_attention_destroy(made);
  return status;
}

// Runs a call with an attention that was made before.
tw_status with_attention(const tw_options& given, tw_error** error,
                         const std::function<tw_status(tw_attention*)>& call) {
  tw_attention* made = nullptr;
  tw_status status = tw_attention_create(kCausal, &given, &made, error);
  if (status == TW_OK) status = call(made);
  tw_attention_destroy(made);
  return status;
}

tw_status make_mask(const tw_attention* attention, std::int64_t length, tw_error** error,
                    const char* path = nullptr) {
  auto shape = sized<tw_shape>();
  shape.batch = shape.num_q_heads = shape.num_kv_heads = 1;
  shape.q_len = shape.kv_len = length;
  tw_mask* mask = nullptr;
  tw_status status = tw_mask_create(attention, &shape, nullptr, nullptr, &mask, error);
  if (status == TW_OK && path) status = tw_mask_save(mask, path, error);
  smallest_failing = SIZE_MAX;
  tw_mask_destroy(mask);
  return status;
}

tw_status forward(const tw_attention* attention, std::int32_t dtype, tw_error** error) {
  static std::vector<float> x(16 * 16), out(x.size());
  const std::int64_t sizes[] = {1, 1, 16, 16};
  auto call = sized<tw_call>();
  call.q = call.k = call.v = tw_tensor_contiguous(x.data(), dtype, 4, sizes);
  call.out = tw_tensor_contiguous(out.data(), TW_F32, 4, sizes);
  return tw_forward(attention, &call, error);
}

tw_status fail_allocations(std::size_t bytes, tw_error** error) {
  return with_attention(options(), error, [&](tw_attention* attention) {
    smallest_failing = bytes;
    return make_mask(attention, 1 << 20, error);
  });
}

struct Fault {
  tw_status wanted;
  std::function<tw_status(tw_error**)> call;
};

const std::map<std::string, Fault> kFaults = {
    {"usage", {TW_USAGE, [](tw_error** e) { return create(nullptr, options(), e); }}},
    {"spec", {TW_SPEC, [](tw_error** e) { return create("{", options(), e); }}},
    {"snippet",
     {TW_SNIPPET,
      [](tw_error** e) {
        return create(R"({"dtype": "f32", "head_dim": 16, "score_mod": "scores"})", options(), e);
      }}},
    // With TILEWRIGHT_TEMPLATES.
    {"kernel_template", {TW_TEMPLATE, [](tw_error** e) { return create(kCausal, options(), e); }}},
    {"tensor",
     {TW_TENSOR,
      [](tw_error** e) {
        return with_attention(options(), e, [&](tw_attention* a) { return forward(a, TW_F16, e); });
      }}},
    {"block_mask",
     {TW_BLOCK_MASK,
      [](tw_error** e) {
        return with_attention(options(), e, [&](tw_attention* a) { return forward(a, TW_F32, e); });
      }}},
    {"file",
     {TW_FILE,
      [](tw_error** e) {
        tw_mask* mask = nullptr;
        return tw_mask_load("/nonexistent/mask.safetensors", &mask, e);
      }}},
    {"device",
     {TW_DEVICE,
      [](tw_error** e) {
        tw_options given = options();
        given.device = "cuda:99";
        return create(kCausal, given, e);
      }}},
    // With TILEWRIGHT_CXX and an empty cache.
    {"compiler", {TW_COMPILER, [](tw_error** e) { return create(kCausal, options(), e); }}},
    // With an empty cache.
    {"missing_kernel",
     {TW_MISSING_KERNEL,
      [](tw_error** e) {
        tw_options given = options();
        given.jit = TW_JIT_OFF;
        return create(kCausal, given, e);
      }}},
    {"memory", {TW_MEMORY, [](tw_error** e) { return fail_allocations(1 << 16, e); }}},
    {"memory_even_for_errors", {TW_MEMORY, [](tw_error** e) { return fail_allocations(0, e); }}},
    {"disk",
     {TW_DISK,
      [](tw_error** e) {
        return with_attention(options(), e, [&](tw_attention* a) {
          return make_mask(a, 64, e, "/nonexistent/mask.safetensors");
        });
      }}},
    {"internal",
     {TW_INTERNAL,
      [](tw_error** e) {
        tw_options given = options();
        given.pool_size = [](void*) { return 2; };
        given.parallel_for = [](void*, std::int64_t, void (*)(void*, std::int64_t, std::int32_t),
                                void*) { throw std::runtime_error("a callback threw this"); };
        return with_attention(given, e, [&](tw_attention* a) { return make_mask(a, 64, e); });
      }}},
};

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = bytes >= smallest_failing ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return bytes >= smallest_failing ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

int main(int count, char** arguments) {
  const auto fault = kFaults.find(count > 1 ? arguments[1] : "");
  if (fault == kFaults.end()) return std::fprintf(stderr, "no such fault\n"), 2;
  tw_error* error = nullptr;
  const tw_status status = fault->second.call(&error);
  std::printf("%s\n%s\n", tw_status_name(status), tw_error_report(error));
  const bool right = status == fault->second.wanted && tw_error_status(error) == status &&
                     std::strlen(tw_error_message(error)) > 0;
  tw_error_destroy(error);
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 1;
}
