#include <cstdio>
#include <vector>

#include <tilewright.hpp>

int main() {
  using namespace tilewright;
  const Attention attention({.dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"},
                            {.device = Device::cpu()});
  std::vector<float> q(8 * 512 * 64, 0.5f), k = q, v = q, out(q.size());
  const auto view = [](auto& x) { return TensorView::contiguous(x.data(), f32, {1, 8, 512, 64}); };
  const BlockMask mask =
      attention.block_mask({.num_q_heads = 8, .num_kv_heads = 8, .q_len = 512, .kv_len = 512});
  attention.forward({.q = view(q), .k = view(k), .v = view(v), .out = view(out)}, mask);
  std::printf("out[0] = %g, %.0f %% of the tiles visited\n", out[0], 100 * mask.density());
}
