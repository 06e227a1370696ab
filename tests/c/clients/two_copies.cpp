// two_copies LIBRARY: libtilewright.so.1 and the archive in one process, each with a kernel. A
// kernel that one copy loads is not taken for the other one's.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <dlfcn.h>
#include <tilewright.h>
#include <tilewright.hpp>

using namespace tilewright;

namespace {

constexpr std::int64_t kKeys = 2, kDim = 16;

// Two keys: q meets the first one, whose value is 0; the second one's is 1.
struct Data {
  std::vector<float> q = std::vector<float>(kDim, 1), k = std::vector<float>(kKeys * kDim, 0),
                     v = std::vector<float>(kKeys * kDim, 1), out = std::vector<float>(kDim);
  Data() {
    for (std::int64_t i = 0; i < kDim; ++i) k[i] = 10, v[i] = 0;
  }
};

TensorView view(std::vector<float>& values, std::int64_t rows) {
  return TensorView::contiguous(values.data(), f32, {1, 1, rows, kDim});
}

// Scores do not matter: the mean of the values.
float mean_by_archive() {
  Data data;
  static const Attention attention({.dtype = f32, .head_dim = kDim, .score_mod = "score * 0"},
                                   {.device = Device::cpu()});
  attention.forward({.q = view(data.q, 1),
                     .k = view(data.k, kKeys),
                     .v = view(data.v, kKeys),
                     .out = view(data.out, 1)});
  return data.out[0];
}

// The first key's value.
float softmax_by(void* library) {
  const auto create =
      reinterpret_cast<decltype(&tw_attention_create)>(dlsym(library, "tw_attention_create"));
  const auto destroy =
      reinterpret_cast<decltype(&tw_attention_destroy)>(dlsym(library, "tw_attention_destroy"));
  const auto forward = reinterpret_cast<decltype(&tw_forward)>(dlsym(library, "tw_forward"));
  Data data;
  tw_options options = {};
  options.struct_size = sizeof options;
  options.device = "cpu";
  tw_attention* attention = nullptr;
  if (create(R"({"dtype": "f32", "head_dim": 16})", &options, &attention, nullptr)) return NAN;
  const std::int64_t query[] = {1, 1, 1, kDim}, keys[] = {1, 1, kKeys, kDim};
  tw_call call = {};
  call.struct_size = sizeof call;
  call.q = tw_tensor_contiguous(data.q.data(), TW_F32, 4, query);
  call.k = tw_tensor_contiguous(data.k.data(), TW_F32, 4, keys);
  call.v = tw_tensor_contiguous(data.v.data(), TW_F32, 4, keys);
  call.out = tw_tensor_contiguous(data.out.data(), TW_F32, 4, query);
  const tw_status status = forward(attention, &call, nullptr);
  destroy(attention);
  return status ? NAN : data.out[0];
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  void* const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  const float mean = mean_by_archive(), softmax = softmax_by(library);
  std::printf("mean %g, softmax %g\n", mean, softmax);
  return mean == 0.5f && softmax < 1e-3f ? 0 : 1;
}
