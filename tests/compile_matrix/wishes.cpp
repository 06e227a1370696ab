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

}  // namespace tilewright::compile_matrix
