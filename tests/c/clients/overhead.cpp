// What tw_forward costs beyond Attention::forward: the least time of a call over many rounds in
// turns. Run by hand; as a test with a number of rounds it only checks that both compute the same.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dlfcn.h>
#include <tilewright.h>
#include <tilewright.hpp>

using namespace tilewright;

namespace {

constexpr int kCallsPerRound = 2000;
const char* const kSpec = R"({"dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx"})";

// One tile of one head.
struct Data {
  std::vector<float> x = std::vector<float>(16, 0.5f), out = std::vector<float>(16);
};

void require(tw_status status) {
  if (status == TW_OK) return;
  std::fprintf(stderr, "%s\n", tw_status_name(status));
  std::exit(1);
}

// The shared library's functions, not the archive's.
struct Functions {
  decltype(&tw_attention_create) create;
  decltype(&tw_mask_create) create_mask;
  decltype(&tw_forward) forward;
  decltype(&tw_mask_destroy) destroy_mask;
  decltype(&tw_attention_destroy) destroy;

  explicit Functions(const char* path) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::fprintf(stderr, "%s\n", dlerror()), std::exit(1);
    create = reinterpret_cast<decltype(create)>(dlsym(library, "tw_attention_create"));
    create_mask = reinterpret_cast<decltype(create_mask)>(dlsym(library, "tw_mask_create"));
    forward = reinterpret_cast<decltype(forward)>(dlsym(library, "tw_forward"));
    destroy_mask = reinterpret_cast<decltype(destroy_mask)>(dlsym(library, "tw_mask_destroy"));
    destroy = reinterpret_cast<decltype(destroy)>(dlsym(library, "tw_attention_destroy"));
  }
};

class ByC {
 public:
  ByC(const char* library, Data& data) : functions_(library) {
    tw_options options = {};
    options.struct_size = sizeof options;
    options.device = "cpu";
    options.pool_size = [](void*) { return 1; };
    options.parallel_for = [](void*, std::int64_t items,
                              void (*body)(void*, std::int64_t, std::int32_t), void* context) {
      for (std::int64_t item = 0; item < items; ++item) body(context, item, 0);
    };
    require(functions_.create(kSpec, &options, &attention_, nullptr));
    const tw_shape shape = {sizeof shape, 1, 1, 1, 1, 1, 0, 0};
    require(functions_.create_mask(attention_, &shape, nullptr, nullptr, &mask_, nullptr));
    const std::int64_t sizes[] = {1, 1, 1, 16};
    call_.struct_size = sizeof call_;
    call_.q = call_.k = call_.v = tw_tensor_contiguous(data.x.data(), TW_F32, 4, sizes);
    call_.out = tw_tensor_contiguous(data.out.data(), TW_F32, 4, sizes);
    call_.mask = mask_;
  }
  ByC(const ByC&) = delete;
  ByC& operator=(const ByC&) = delete;
  ~ByC() {
    functions_.destroy_mask(mask_);
    functions_.destroy(attention_);
  }
  void operator()() const { require(functions_.forward(attention_, &call_, nullptr)); }

 private:
  Functions functions_;
  tw_attention* attention_ = nullptr;
  tw_mask* mask_ = nullptr;
  tw_call call_ = {};
};

class ByCpp {
 public:
  explicit ByCpp(Data& data)
      : attention_(spec_from_json(kSpec), {.device = Device::cpu(), .threads = &alone_}),
        mask_(attention_.block_mask({.q_len = 1, .kv_len = 1})) {
    const auto view = [](std::vector<float>& values) {
      return TensorView::contiguous(values.data(), f32, {1, 1, 1, 16});
    };
    tensors_ = {.q = view(data.x), .k = view(data.x), .v = view(data.x), .out = view(data.out)};
  }
  void operator()() const { attention_.forward(tensors_, mask_); }

 private:
  ThreadPool alone_{1};
  Attention attention_;
  BlockMask mask_;
  ForwardTensors tensors_;
};

template <typename Call>
double nanoseconds(const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int i = 0; i < kCallsPerRound; ++i) call();
  const std::chrono::duration<double, std::nano> took = Clock::now() - start;
  return took.count() / kCallsPerRound;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  Data data_of_c, data_of_cpp;
  const ByC by_c(arguments[1], data_of_c);
  const ByCpp by_cpp(data_of_cpp);
  const int rounds = count > 2 ? std::atoi(arguments[2]) : 300;
  double c = 1e9, cpp = 1e9;
  for (int round = 0; round < rounds; ++round) {
    cpp = std::min(cpp, nanoseconds(by_cpp));
    c = std::min(c, nanoseconds(by_c));
  }
  std::printf("C++ %.0f ns, C %.0f ns: %.0f ns more\n", cpp, c, c - cpp);
  return data_of_c.out == data_of_cpp.out ? 0 : 1;
}
