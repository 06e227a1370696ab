#include "tests/compile_matrix/wishes.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "generator/spec/spec_json.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/packed_spec.hpp"

namespace tilewright::compile_matrix {

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> parsed;
    for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"}) {
      parsed.push_back(Target::parse(name));
    }
    return parsed;
  }();
  return all;
}

std::vector<Spec> specs_of(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Spec> specs;
  for (const auto& path : paths) specs.push_back(spec_from_file(path));
  return specs;
}

std::vector<Spec> as_packed(const std::vector<Spec>& specs) {
  std::vector<Spec> packed;
  for (const Spec& spec : specs) {
    std::optional<Spec> one = test::as_packed(spec);
    if (!one || spec.is_packed()) continue;
    one->name += "_packed";
    packed.push_back(std::move(*one));
  }
  return packed;
}

namespace {

constexpr std::size_t kSharesOfSample = 3;

Spec with_gradient(std::string name, std::string score_mod, std::vector<BufferDim> shape) {
  Spec spec{.name = std::move(name), .dtype = DType::bf16};
  spec.score_mod = std::move(score_mod);
  spec.mask_mod = "q_idx >= kv_idx";
  spec.buffers["x"] = {.dtype = DType::f32, .shape = std::move(shape)};
  spec.outputs.lse = true;
  spec.gradients = {"q", "k", "v", "x"};
  return spec;
}

// Head dims above 128, whose registers two warpgroups share.
std::vector<Wish> wide_gradient_wishes() {
  std::vector<Wish> wishes;
  Spec learnt = with_gradient("wide_gradients_slopes", "score + x[h] * (kv_idx - q_idx)",
                              {NamedDim::num_q_heads});
  learnt.head_dim = 192;
  wishes.push_back({learnt, Target::parse("sm_90a"), backward_kernel(learnt)});
  for (const auto& [head_dim, v_head_dim] :
       {std::pair<std::int64_t, std::int64_t>{192, 128}, {192, 192}, {256, 256}, {136, 200}}) {
    for (const char* score_mod : {"", "20.0 * tanh(score / 20.0)"}) {
      Spec spec{.name = "wide_gradients", .dtype = DType::bf16, .head_dim = head_dim};
      spec.v_head_dim = v_head_dim;
      spec.score_mod = score_mod;
      spec.outputs.lse = true;
      spec.gradients = {"q", "k", "v"};
      if (!spec.score_mod.empty()) spec.mask_mod = "q_idx >= kv_idx";
      wishes.push_back({spec, Target::parse("sm_90a"), backward_kernel(spec)});
    }
  }
  return wishes;
}

// Twins for calls that are deterministic.
std::vector<Wish> deterministic_wishes() {
  std::vector<Wish> wishes;
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const char* score_mod : {"", "20.0 * tanh(score / 20.0)"}) {
      Spec spec{.name = "deterministic_gradients", .dtype = DType::bf16, .head_dim = head_dim};
      spec.score_mod = score_mod;
      spec.outputs.lse = true;
      spec.gradients = {"q", "k", "v"};
      for (const char* mask_mod : {"", "q_idx >= kv_idx"}) {
        spec.mask_mod = mask_mod;
        KernelVariant kernel = backward_kernel(spec);
        kernel.deterministic = true;
        wishes.push_back({spec, Target::parse("sm_90a"), kernel});
      }
    }
  }
  return wishes;
}

}  // namespace

std::vector<Wish> all_wishes(const std::vector<Spec>& specs) {
  std::vector<Wish> wishes;
  for (const Spec& spec : specs) {
    for (const Target& target : targets()) {
      for (const KernelVariant& id : kernel_set(spec, target)) wishes.push_back({spec, target, id});
    }
  }
  return wishes;
}

std::vector<Wish> main_wishes(const std::vector<Spec>& specs) {
  std::vector<Wish> wishes;
  for (const Spec& spec : specs) {
    for (const Target& target : targets())
      wishes.push_back({spec, target, forward_kernel(spec, target)});
  }
  return wishes;
}

std::vector<Wish> tight_wishes(const std::vector<Spec>& specs) {
  std::vector<Wish> wishes;
  for (Spec spec : specs) {
    if (spec.dtype == f32) spec.dtype = bf16;
    spec.kv_dtype = spec.out_dtype = std::nullopt;
    spec.v_head_dim = 0;
    for (const std::int64_t head_dim : {64, 128}) {
      spec.head_dim = head_dim;
      for (const Target& target : targets()) {
        wishes.push_back({spec, target, forward_kernel(spec, target)});
      }
    }
  }
  return wishes;
}

std::vector<Wish> sample_wishes(const std::vector<Spec>& specs) {
  std::vector<Wish> wishes;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!is_in_share(i, kSharesOfSample)) continue;
    const Target& target = targets()[(i + i / targets().size()) % targets().size()];
    const std::vector<KernelVariant> ids = kernel_set(specs[i], target);
    wishes.push_back({specs[i], target, ids[i % ids.size()]});
  }
  return wishes;
}

std::vector<Wish> difference_wishes() {
  const Target hopper = Target::parse("sm_90a");
  std::vector<Wish> wishes;
  for (const char* const score_mod :
       {"score + x[clamp(kv_idx - q_idx, -200, 200) + 200]",
        "score + x[int(4.0 * log(1.0 + abs(kv_idx - q_idx)))]",
        "20.0 * tanh((score + x[kv_idx - q_idx + q_len - 1]) / 20.0)"}) {
    Spec spec{.name = "values_by_difference", .dtype = DType::bf16};
    spec.score_mod = score_mod;
    spec.buffers["x"] = {.dtype = DType::f32, .shape = {std::int64_t{401}}};
    spec.outputs.lse = true;
    spec.gradients = {"q", "k", "v"};
    for (const std::int64_t head_dim : {64, 128}) {
      spec.head_dim = head_dim;
      for (const char* const mask_mod : {"", "q_idx >= kv_idx"}) {
        spec.mask_mod = mask_mod;
        wishes.push_back({spec, hopper, forward_kernel(spec, hopper)});
        wishes.push_back({spec, hopper, backward_kernel(spec)});
      }
    }
  }
  return wishes;
}

std::vector<Wish> dropout_wishes() {
  std::vector<Wish> wishes;
  const Target hopper = Target::parse("sm_90a");
  for (const std::int64_t head_dim : {64, 128, 192, 256}) {
    for (const char* mask_mod : {"", "q_idx >= kv_idx"}) {
      for (const char* score_mod : {"", "20.0 * tanh(score / 20.0)"}) {
        Spec spec{.name = "dropout", .dtype = DType::bf16, .head_dim = head_dim};
        spec.score_mod = score_mod;
        spec.mask_mod = mask_mod;
        spec.dropout = "p";
        spec.scalars["p"] = {.dtype = DType::f32};
        spec.scalars["seed"] = {.dtype = DType::i64};
        spec.outputs.lse = true;
        spec.gradients = {"q", "k", "v"};
        for (const KernelVariant& kernel : kernel_set(spec, hopper)) {
          if (kernel.aligned) wishes.push_back({spec, hopper, kernel});
        }
      }
    }
  }
  return wishes;
}

std::vector<Wish> one_byte_wishes() {
  std::vector<Wish> wishes;
  const Target hopper = Target::parse("sm_90a");
  const auto add = [&](const Spec& spec) {
    for (const KernelVariant& kernel : kernel_set(spec, hopper)) {
      if (kernel.is_forward() && kernel.aligned) wishes.push_back({spec, hopper, kernel});
    }
  };
  for (const std::int64_t head_dim : {64, 128, 192, 256}) {
    for (const char* score_mod : {"", "20.0 * tanh(score / 20.0)"}) {
      Spec spec{.name = "one_byte", .head_dim = head_dim};
      spec.out_dtype = DType::bf16;
      spec.q_scale = spec.k_scale = spec.v_scale = "1.0f";
      spec.score_mod = score_mod;
      spec.mask_mod = "q_idx >= kv_idx";
      spec.dtype = DType::bf16;
      spec.kv_dtype = DType::f8e4m3;
      add(spec);
      spec.dtype = DType::f8e4m3;
      add(spec);
      spec.block = {192, 96};
      add(spec);
    }
  }
  return wishes;
}

std::vector<Wish> gradient_wishes() {
  const Spec specs[] = {
      with_gradient("learnt_slopes", "score + x[h] * (kv_idx - q_idx)", {NamedDim::num_q_heads}),
      with_gradient("learnt_columns", "score + x[kv_idx]", {NamedDim::kv_len}),
      with_gradient("learnt_rows", "score + x[q_idx]", {NamedDim::q_len}),
      with_gradient("learnt_differences", "score + x[clamp(kv_idx - q_idx, -200, 200) + 200]",
                    {std::int64_t{401}}),
      with_gradient("learnt_table", "score + x[kv_idx - q_idx + q_len - 1]", {std::int64_t{16383}}),
      with_gradient("learnt_elements", "score + x[(q_idx * 7 + kv_idx) % 1009]",
                    {std::int64_t{1009}})};
  std::vector<Wish> wishes;
  for (Spec spec : specs) {
    for (const std::int64_t head_dim : {64, 128}) {
      spec.head_dim = head_dim;
      for (const char* target : {"sm_80", "sm_90a"}) {
        wishes.push_back({spec, Target::parse(target), backward_kernel(spec)});
      }
    }
  }
  for (const std::vector<Wish>& more : {wide_gradient_wishes(), deterministic_wishes()}) {
    wishes.insert(wishes.end(), more.begin(), more.end());
  }
  return wishes;
}

}  // namespace tilewright::compile_matrix
