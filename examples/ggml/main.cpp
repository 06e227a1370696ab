#include <cmath>
#include <cstdio>
#include <random>

#include <ggml-cpu.h>

#include "attention.hpp"

// Two layers with a softcap and a causal window, against ggml_flash_attn_ext with a dense mask.
int main() {
  ggml_context* context =
      ggml_init({.mem_size = 64 << 20, .mem_buffer = nullptr, .no_alloc = false});
  std::mt19937 generator;
  const auto random = [&](int rows, int heads) {
    ggml_tensor* x = ggml_new_tensor_4d(context, GGML_TYPE_F32, 64, rows, heads, 1);
    std::normal_distribution<float> normal;
    for (int i = 0; i < ggml_nelements(x); ++i) ggml_get_data_f32(x)[i] = normal(generator);
    return x;
  };
  ggml_tensor *q = random(200, 8), *k = random(300, 2), *v = random(300, 2);
  ggml_tensor* dense_mask = ggml_new_tensor_2d(context, GGML_TYPE_F16, 300, 200);
  for (int i = 0; i < 200 * 300; ++i) {
    const int distance = i / 300 + 100 - i % 300;
    static_cast<ggml_fp16_t*>(dense_mask->data)[i] =
        ggml_fp32_to_fp16(0 <= distance && distance < 90 ? 0 : -INFINITY);
  }

  Attention attention(R"spec({"dtype": "f32", "head_dim": 64,
                              "score_mod": "20 * tanh(score / 20)",
                              "mask_mod": "0 <= q_idx - kv_idx && q_idx - kv_idx < 90"})spec");
  const auto ours = [&](ggml_tensor* x) { return attention(context, x, k, v); };
  const auto theirs = [&](ggml_tensor* x) {
    return ggml_flash_attn_ext(context, x, k, v, dense_mask, 1 / std::sqrt(64.0f), 0, 20);
  };
  const auto two_layers = [&](const auto& layer) {
    return layer(ggml_permute(context, layer(q), 0, 2, 1, 3));
  };
  ggml_tensor* difference = ggml_sub(context, two_layers(ours), two_layers(theirs));
  ggml_cgraph* graph = ggml_new_graph(context);
  ggml_build_forward_expand(graph, difference);
  ggml_graph_compute_with_ctx(context, graph, 4);

  float worst = 0;
  for (int i = 0; i < ggml_nelements(difference); ++i)
    worst = std::fmax(worst, std::abs(ggml_get_data_f32(difference)[i]));
  std::printf("%sat most %.1g from ggml_flash_attn_ext\n", attention.error.c_str(), worst);
  ggml_free(context);
  return attention.error.empty() && worst < 1e-5f ? 0 : 1;
}
