#include "tests/mutants/population.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "generator/render/embedded_templates.hpp"
#include "generator/render/templates.hpp"

namespace tilewright::mutants {
namespace {

// The group of a template; none for what is not mutated: interfaces, the kernels that evaluate
// snippets for the reference, and the interpretation that looks for undefined behaviour.
std::optional<Group> group_of(std::string_view file) {
  const auto is_in = [&](std::initializer_list<std::string_view> starts) {
    return std::any_of(starts.begin(), starts.end(),
                       [&](std::string_view start) { return file.starts_with(start); });
  };
  if (is_in({"abi/plan", "abi/tile_map", "cuda/plan/", "cuda/kernels/plan",
             "cuda/attention/packed_sequence", "cuda/attention/planned_q_tiles"})) {
    return Group::plan;
  }
  if (is_in({"abi/", "cpu/evaluate", "cpu/scale_value", "cpu/kernels/evaluate",
             "cuda/kernels/empty", "cuda/kernels/add_rows", "kernel/"})) {
    return std::nullopt;
  }
  if (is_in({"cuda/merge/", "cuda/kernels/merge", "cuda/append/", "cuda/kernels/append",
             "cuda/quantise/", "cuda/kernels/quantise"})) {
    return Group::gpu_caches;
  }
  if (is_in({"cuda/decode/", "cuda/kernels/decode"})) return Group::decode;
  if (is_in({"cuda/backward/", "cuda/kernels/portable_backward", "cuda/hopper/backward/",
             "cuda/kernels/hopper_backward"})) {
    return Group::gpu_backward;
  }
  if (is_in({"attention/merge", "attention/quantise", "attention/stored_number",
             "attention/dropout", "attention/philox"})) {
    return Group::cpu;
  }
  if (is_in({"interpretations/interval", "snippet/proved", "cpu/mask/prove"})) return Group::proofs;
  if (is_in({"cuda/mask/", "cuda/kernels/mask"})) return Group::gpu_mask;
  if (is_in({"cuda/hopper/", "cuda/kernels/hopper", "cuda/ptx/mbarrier", "cuda/ptx/tensor_copy",
             "cuda/ptx/warpgroup", "cuda/tile/panel", "snippet/loads_in_bounds"})) {
    return Group::hopper;
  }
  if (is_in({"cuda/"})) return Group::portable;
  if (is_in({"cpu/", "snippet/", "math/elementary"})) return Group::cpu;
  return std::nullopt;
}

// Per mille of the group's mutants that are tried.
unsigned share(Group group) {
  switch (group) {
    case Group::cpu:
      return 250;
    case Group::proofs:
      return 100;
    case Group::portable:
      return 80;
    case Group::gpu_mask:
      return 100;
    case Group::hopper:
      return 150;
    case Group::plan:
      return 300;
    case Group::gpu_caches:
      return 300;
    case Group::decode:
      return 150;
    case Group::gpu_backward:
      return 80;
  }
  return 0;
}

bool is_chosen(const Mutant& mutant) {
  const Operator kind = mutant.mutation.kind;
  if (kind == Operator::dropped_barrier || kind == Operator::dropped_rescale) return true;
  return std::stoul(mutant.mutation.id(), nullptr, 16) % 1000 < share(mutant.group);
}

class MutatedTemplates : public jinja::Loader {
 public:
  explicit MutatedTemplates(Mutation mutation) : mutation_(std::move(mutation)) {}

  std::optional<std::string> load(std::string_view name) const override {
    const std::optional<std::string> text = sound_->load(name);
    return text && name == mutation_.file ? mutation_.apply(*text) : text;
  }

  std::vector<std::string> names() const override { return sound_->names(); }

 private:
  Mutation mutation_;
  std::unique_ptr<jinja::Loader> sound_ = default_template_loader();
};

// Mutations are of the embedded templates; TILEWRIGHT_TEMPLATES may put others in their place.
bool is_in_use(const EmbeddedTemplate& file) {
  static const std::unique_ptr<jinja::Loader> used = default_template_loader();
  return used->load(file.name) == file.text;
}

}  // namespace

std::string_view to_string(Group group) {
  switch (group) {
    case Group::cpu:
      return "cpu";
    case Group::proofs:
      return "proofs";
    case Group::portable:
      return "portable";
    case Group::gpu_mask:
      return "mask";
    case Group::hopper:
      return "hopper";
    case Group::plan:
      return "plan";
    case Group::gpu_caches:
      return "caches";
    case Group::decode:
      return "decode";
    case Group::gpu_backward:
      return "backward";
  }
  return "";
}

bool runs_on_cpu(Group group) {
  return group == Group::cpu || group == Group::proofs;
}

std::vector<Mutant> all_mutants() {
  std::vector<Mutant> mutants;
  for (const EmbeddedTemplate& file : embedded_templates()) {
    const auto group = group_of(file.name);
    if (!group) continue;
    for (Mutation& mutation : mutations_of(std::string(file.name), file.text)) {
      mutants.push_back({*group, std::move(mutation)});
    }
  }
  std::stable_sort(mutants.begin(), mutants.end(),
                   [](const Mutant& a, const Mutant& b) { return a.group < b.group; });
  return mutants;
}

std::vector<Mutant> population() {
  std::vector<Mutant> mutants = all_mutants();
  std::erase_if(mutants, [](const Mutant& mutant) { return !is_chosen(mutant); });
  std::set<std::string_view> used;
  for (const EmbeddedTemplate& file : embedded_templates()) {
    if (is_in_use(file)) used.insert(file.name);
  }
  std::erase_if(mutants,
                [&](const Mutant& mutant) { return !used.contains(mutant.mutation.file); });
  return mutants;
}

Equivalents::Equivalents(const std::string& path, const std::vector<Mutant>& known) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_array()) throw Error(ErrorCode::file, path + " is not a JSON array");
  for (const auto& item : json) {
    Entry entry{item.at("file"), item.at("before"), item.at("after"), item.at("reason")};
    const bool exists = std::any_of(known.begin(), known.end(), [&](const Mutant& mutant) {
      return mutant.mutation.file == entry.file && mutant.mutation.before == entry.before &&
             mutant.mutation.after == entry.after;
    });
    if (!exists) {
      throw Error(ErrorCode::file,
                  fmt::format("{} lists a mutant that does not exist: {}: `{}` -> `{}`", path,
                              entry.file, entry.before, entry.after),
                  "the template has changed; take the entry out or adapt it");
    }
    entries_.push_back(std::move(entry));
  }
}

std::string Equivalents::reason(const Mutation& mutation) const {
  for (const Entry& entry : entries_) {
    if (entry.file == mutation.file && entry.before == mutation.before &&
        entry.after == mutation.after) {
      return entry.reason;
    }
  }
  return "";
}

Mutation comment_alone(bool on_cpu) {
  Mutation mutation;
  mutation.file = on_cpu ? "cpu/vector.hpp" : "cuda/language.hpp";
  mutation.inserted = "// The original.\n";
  return mutation;
}

std::shared_ptr<const jinja::Loader> mutated_templates(const Mutation& mutation) {
  return std::make_shared<MutatedTemplates>(mutation);
}

}  // namespace tilewright::mutants
