#include "generator/messages/usual_mistakes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/characters.hpp"

namespace tilewright {
namespace {

// Names with one advice.
struct Mistake {
  std::string_view names;  // separated by blanks
  std::string_view advice;
};

constexpr std::string_view kInfinity = "write INFINITY, or -INFINITY";
constexpr std::string_view kCausalSnippet =
    "a causal mask is mask_mod \"q_idx >= kv_idx\"; a snippet sees no flag";
constexpr std::string_view kLengths = "write q_len or kv_len";
constexpr std::string_view kNoLibrary =
    "a snippet is C++ without libraries: exp(x), max(x, y), select(condition, x, y)";
constexpr std::string_view kCalls = "each call's tensors bring this size; the spec leaves it out";
constexpr std::string_view kRandomShape = "write --inputs random:B,HQ,HKV,SQ,SKV";
constexpr std::string_view kInSpec = "this is a key of the spec, not an option";
constexpr std::string_view kNvidia = "GPUs are NVIDIA's: \"cuda\" or \"cuda:N\"; else \"cpu\"";

constexpr auto kSnippet = std::to_array<Mistake>({
    {"q query q_i q_pos q_index query_idx",
     "write q_idx, the query's position; a snippet does not see the values of q"},
    {"k key kv k_idx k_pos kv_pos kv_index key_idx",
     "write kv_idx, the key's position; a snippet does not see the values of k and v"},
    {"v value values", "a snippet changes scores; it does not see the values of v"},
    {"batch batch_idx b_idx", "write b"},
    {"head head_idx q_head h_idx h_q hq", "write h, the query's head"},
    {"kv_head k_head hkv kv_head_idx", "write h_kv, the head of k and v"},
    {"seq_len seqlen seq_length sequence_length q_seq_len kv_seq_len seqlen_q seqlen_k max_seq_len "
     "context_len k_len",
     kLengths},
    {"num_heads n_heads heads nheads num_attention_heads", "write num_q_heads or num_kv_heads"},
    {"causal is_causal", kCausalSnippet},
    {"window window_size sliding_window window_left",
     "declare it under \"scalars\"; a sliding window is mask_mod \"0 <= q_idx - kv_idx && "
     "q_idx - kv_idx < window\""},
    {"block_size BLOCK_M BLOCK_N BLOCK_SIZE",
     "snippets know positions, not tiles; the tile of the block mask is the spec's \"block\""},
    {"sink sinks attention_sinks s_aux",
     "a logit that joins the softmax's sum is the spec's \"sink\": \"sinks[h]\"; a first token "
     "that "
     "is always kept is mask_mod \"kv_idx < 4 || ...\""},
    {"sm_scale softmax_scale scale scaling",
     "score is scaled already; the spec's \"scale\" is the factor"},
    {"inf Inf INF infinity Infinity inff NEG_INF neg_inf NINF ninf NEG_INFINITY MASK_VALUE "
     "mask_value finfo",
     kInfinity},
    {"FLT_MAX DBL_MAX HUGE_VAL HUGE_VALF FLOAT_MAX", "write 3.4028235e38f, or INFINITY"},
    {"FLT_MIN DBL_MIN", "write 1.17549435e-38f"},
    {"FLT_EPSILON DBL_EPSILON", "write 1.1920929e-7f"},
    {"INT_MAX INT32_MAX", "write 2147483647"},
    {"INT_MIN INT32_MIN", "write -2147483647 - 1"},
    {"M_PI PI", "write 3.14159265f"},
    {"M_LOG2E", "write 1.44269504f"},
    {"M_E", "write 2.71828183f"},
    {"nan NaN nanf", "write NAN"},
    {"True TRUE", "write true"},
    {"False FALSE", "write false"},
    {"None NULL null nil",
     "C++ has no such value; a condition that holds always is true, a score left alone is score"},
    {"torch np numpy jnp jax tl triton F tf mx", kNoLibrary},
    {"math cmath std cuda libdevice", "write the function alone: log(x), exp(x), pow(x, y)"},
    {"where tl_where", "write select(condition, x, y), or condition ? x : y"},
    {"cond ite", "write condition ? x : y"},
    {"sigmoid", "write 1 / (1 + exp(-x))"},
    {"silu swish", "write x / (1 + exp(-x))"},
    {"softplus", "write log1p(exp(x))"},
    {"relu", "write max(x, 0.0f)"},
    {"square sqr", "write x * x"},
    {"power", "write pow(x, y)"},
    {"maximum fmaximum", "write max(x, y)"},
    {"minimum fminimum", "write min(x, y)"},
    {"absolute fabsolute", "write abs(x)"},
    {"clip clamp_", "write clamp(x, low, high)"},
    {"isnan", "write x != x"},
    {"isinf", "write abs(x) == INFINITY"},
    {"isfinite", "write abs(x) < INFINITY"},
    {"signbit", "write x < 0"},
    {"logical_and bitwise_and", "write x && y"},
    {"logical_or bitwise_or", "write x || y"},
    {"logical_not bitwise_not", "write !x"},
    {"lambda", "a lambda of C++ is [](int x) { return x + 1; }"},
    {"def fn func",
     "a snippet is an expression, or a body with return; a helper is a lambda: "
     "const auto f = [](int x) { return x + 1; };"},
    {"elementwise vmap vectorize", "a snippet is one element's: write what happens to that score"},
    {"self", "a snippet is a member of nothing; it reads its buffers and scalars by name"},
    {"elif", "write else if"},
    {"pass", "write {}"},
    {"print printf", "a snippet cannot print; `tilewright check` shows values that go wrong"},
    {"range", "write for (int i = 0; i < n; ++i)"},
    {"len", "write x.size(0), or a length: q_len, kv_len"},
    {"let var", "write const auto x = ...;"},
    {"int32 int32_t i32", "write int"},
    {"int64 int64_t i64 size_t ssize_t ptrdiff_t", "write long long"},
    {"uint32 uint32_t", "write unsigned"},
    {"float32 float16 bfloat16 half __half f32 f16 bf16",
     "write float; a snippet computes in float"},
});

constexpr auto kKeys = std::to_array<Mistake>({
    {"causal is_causal", R"(write "mask_mod": "q_idx >= kv_idx")"},
    {"window window_size sliding_window window_left",
     R"(write "mask_mod": "0 <= q_idx - kv_idx && q_idx - kv_idx < 256")"},
    {"block_size tile block_shape", R"(write "block": [128, 128])"},
    {"num_heads heads num_q_heads num_kv_heads n_heads batch batch_size q_len kv_len seq_len "
     "seqlen max_seq_len",
     kCalls},
    {"enable_gqa gqa num_kv_groups",
     "grouped heads need no key: q may have any multiple of the heads of k and v"},
    {"sm_scale softmax_scale scaling", R"(write "scale")"},
    {"softcap soft_cap logits_soft_cap",
     R"x(write "score_mod": "cap * tanh(score / cap)" with "cap" under "scalars")x"},
    {"alibi alibi_slopes",
     R"x(write "score_mod": "score + slopes[h] * (kv_idx - q_idx)" with "slopes" under "buffers")x"},
    {"head_size headdim d dim d_head", R"(write "head_dim")"},
    {"v_dim value_dim d_v", R"(write "v_head_dim")"},
    {"type torch_dtype precision data_type", R"(write "dtype")"},
    {"score score_fn score_function", R"(write "score_mod")"},
    {"mask mask_fn attn_mask block_mask", R"(write "mask_mod")"},
    {"params parameters constants", R"(write "scalars")"},
    {"tensors inputs arrays", R"(write "buffers")"},
    {"return_lse lse return_softmax_lse", R"(write "outputs": ["out", "lse"])"},
    {"max_scores return_max_scores", R"(write "outputs": ["out", "max_scores"])"},
    {"weights need_weights return_attn_probs output_attentions",
     R"(write "outputs": ["out", "lse", "weights"])"},
    {"device target", "the device and the target are options of the command: --device, --target"},
    {"dropout_p attn_dropout attention_dropout",
     R"(write "dropout": "0.1f" with "seed": {"dtype": "i64"} under "scalars")"},
    {"sinks attention_sinks s_aux", R"(write "sink": "sinks[h]" with "sinks" under "buffers")"},
    {"scale_q q_descale descale_q", R"(write "q_scale")"},
    {"scale_k k_descale descale_k k_scales", R"(write "k_scale")"},
    {"scale_v v_descale descale_v v_scales", R"(write "v_scale")"},
});

constexpr auto kOptions = std::to_array<Mistake>({
    {"--spec --file --config", "SPEC is the first argument: tilewright run my.json"},
    {"--gpu --cuda --use-gpu", "write --device cuda"},
    {"--cpu", "write --device cpu"},
    {"--rocm --hip --amd --mps", kNvidia},
    {"--random --shape --batch --heads --num-heads --seq-len --seqlen", kRandomShape},
    {"--causal --is-causal", R"(a causal mask is the spec's "mask_mod": "q_idx >= kv_idx")"},
    {"--dtype --head-dim --score-mod --mask-mod --block --layout --window-size --window", kInSpec},
    {"--arch --sm --gpu-architecture -arch", "write --target sm_90a"},
    {"--quiet --silent", "progress and notes go to stderr: write 2>/dev/null"},
});

constexpr auto kDevices = std::to_array<Mistake>({
    {"gpu nvidia cudagpu nv", "write \"cuda\""},
    {"gpu:0 cuda0 gpu0 0", "write \"cuda:0\""},
    {"gpu:1 cuda1 gpu1 1", "write \"cuda:1\""},
    {"rocm hip amd mps metal xpu tpu vulkan opencl sycl xla npu", kNvidia},
    {"x86 host avx2 avx512", "write \"cpu\""},
});

constexpr auto kTargets = std::to_array<Mistake>({
    {"h100 h200 hopper sm90a gh200", "write \"sm_90a\""},
    {"a100 ampere sm80", "write \"sm_80\""},
    {"a10 a40 rtx3090 sm86", "write \"sm_86\""},
    {"l4 l40 l40s rtx4090 ada sm89", "write \"sm_89\""},
    {"b200 b100 blackwell sm100a", "write \"sm_100a\""},
    {"rocm hip gfx90a gfx942", kNvidia},
});

constexpr auto kVerbs = std::to_array<Mistake>({
    {"build jit", "write compile"},
    {"test verify validate compare", "write check"},
    {"exec execute forward attention eval", "write run"},
    {"benchmark time perf profile", "write bench"},
    {"show print source generate emit codegen", "write render"},
    {"info env devices status diagnose", "write doctor"},
    {"plot draw picture visualize blockmask block_mask", "write mask"},
    {"bundle export package", "write precompile"},
    {"clean clear prune", "write cache clear, or cache prune"},
    {"help", "write tilewright --help"},
    {"version", "write tilewright --version"},
});

bool lists(std::string_view names, std::string_view wanted) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == wanted) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

std::span<const Mistake> table(MistakeIn where) {
  switch (where) {
    case MistakeIn::snippet:
      return kSnippet;
    case MistakeIn::key:
      return kKeys;
    case MistakeIn::option:
      return kOptions;
    case MistakeIn::device:
      return kDevices;
    case MistakeIn::target:
      return kTargets;
    case MistakeIn::verb:
      return kVerbs;
  }
  return {};
}

}  // namespace

std::string_view usual_mistake(MistakeIn where, std::string_view name) {
  std::string wanted(name);
  if (where != MistakeIn::snippet) {
    std::transform(wanted.begin(), wanted.end(), wanted.begin(), to_lower);
  }
  for (const Mistake& mistake : table(where)) {
    if (lists(mistake.names, wanted)) return mistake.advice;
  }
  return {};
}

}  // namespace tilewright
