// A diagnostics sink that calls the library back while the process's own store and bundles report
// to it: a bundle that is not there, and a cache directory that cannot be one. Prints "right".
#include <cstdio>
#include <cstdlib>

#include <tilewright.hpp>

using namespace tilewright;

namespace {

int messages = 0;
int calls = 0;

void call_back(Severity, std::string_view) {
  if (++messages > 10) return;
  for (const char* mask : {"q_idx >= kv_idx", "q_idx == kv_idx"}) {
    const Attention attention({.dtype = f32, .head_dim = 16, .mask_mod = mask},
                              {.device = Device::cpu(), .kernels = {.diagnostics = call_back}});
    const Shape shape{.num_q_heads = 1, .num_kv_heads = 1, .q_len = 20, .kv_len = 20};
    calls += attention.block_mask(shape).rows() == 1;
  }
  throw 1;  // is dropped
}

}  // namespace

int main() {
  ::setenv("TILEWRIGHT_BUNDLES", "/nonexistent/bundle.twb", 1);
  ::setenv("TILEWRIGHT_CACHE", "/dev/null/cache", 1);
  try {
    const Attention attention({.dtype = f32, .head_dim = 16, .mask_mod = "q_idx >= kv_idx"},
                              {.device = Device::cpu(), .kernels = {.diagnostics = call_back}});
  } catch (const std::exception& error) {
    std::printf("wrong: %s\n", error.what());
    return 1;
  }
  // Both were reported, and each report's calls ended.
  std::printf(messages == 2 && calls == 4 ? "right\n" : "wrong: %d messages, %d calls\n", messages,
              calls);
  return 0;
}
