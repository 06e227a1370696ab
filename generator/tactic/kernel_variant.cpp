#include "generator/tactic/kernel_variant.hpp"

#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"

namespace tilewright {
namespace {

struct RoleFacts {
  KernelRole role;
  std::string_view name;
  bool on_cpu;
  bool on_gpu;
};

constexpr std::array<RoleFacts, 16> kRoles = {
    {{KernelRole::forward, "forward", true, true},
     {KernelRole::backward, "backward", true, true},
     {KernelRole::weights, "weights", true, true},
     {KernelRole::mask_lists, "mask_lists", false, true},
     {KernelRole::mask_exact, "mask_exact", true, true},
     {KernelRole::mask_proved, "mask_proved", true, true},
     {KernelRole::plan_exact, "plan_exact", true, true},
     {KernelRole::plan_proved, "plan_proved", true, true},
     {KernelRole::merge, "merge", true, true},
     {KernelRole::append, "append", true, true},
     {KernelRole::quantise, "quantise", true, true},
     {KernelRole::evaluate_float, "evaluate_float", true, false},
     {KernelRole::evaluate_double, "evaluate_double", true, false},
     {KernelRole::evaluate_slopes_float, "evaluate_slopes_float", true, false},
     {KernelRole::evaluate_slopes_double, "evaluate_slopes_double", true, false},
     {KernelRole::evaluate_checked, "evaluate_checked", true, false}}};

const RoleFacts& facts_of(KernelRole role) {
  for (const RoleFacts& facts : kRoles) {
    if (facts.role == role) return facts;
  }
  throw Error(ErrorCode::internal, "a kernel's role has no name");
}

// A CPU has one kernel for all alignments and rows.
bool exists(const KernelVariant& variant, const Target& target) {
  const RoleFacts& facts = facts_of(variant.role);
  if (!target.is_cpu()) return facts.on_gpu;
  return facts.on_cpu && variant.aligned && !variant.split && !variant.resident &&
         !variant.deterministic && variant.rows == KernelRows::all;
}

std::string_view suffix_of(KernelRows rows) {
  switch (rows) {
    case KernelRows::all:
      break;
    case KernelRows::prefill:
      return "_prefill";
    case KernelRows::decode:
      return "_decode";
  }
  return "";
}

std::vector<KernelVariant> all_variants() {
  std::vector<KernelVariant> variants;
  for (const bool masked : {false, true}) {
    for (const bool lse : {false, true}) {
      for (const bool aligned : {true, false}) {
        variants.push_back({.masked = masked, .lse = lse, .aligned = aligned});
      }
    }
  }
  for (const KernelRows rows : {KernelRows::prefill, KernelRows::decode}) {
    for (const bool lse : {false, true}) {
      for (const bool aligned : {true, false}) {
        variants.push_back({.rows = rows, .lse = lse, .aligned = aligned});
      }
    }
  }
  for (const bool lse : {false, true}) {
    for (const bool aligned : {true, false}) {
      variants.push_back(
          {.masked = true, .rows = KernelRows::decode, .lse = lse, .aligned = aligned});
    }
  }
  for (const bool lse : {false, true}) {
    for (const bool masked : {false, true}) {
      variants.push_back({.masked = masked, .lse = lse, .split = true});
    }
    variants.push_back({.rows = KernelRows::prefill, .lse = lse, .split = true});
    variants.push_back({.rows = KernelRows::prefill, .lse = lse, .resident = true});
  }
  for (const KernelRole role : {KernelRole::backward, KernelRole::weights}) {
    for (const bool masked : {false, true}) {
      for (const bool aligned : {true, false}) {
        variants.push_back({.role = role, .masked = masked, .aligned = aligned});
      }
    }
  }
  for (const bool masked : {false, true}) {
    variants.push_back({.role = KernelRole::backward, .masked = masked, .deterministic = true});
  }
  for (const RoleFacts& facts : kRoles) {
    if (facts.role > KernelRole::weights) variants.push_back({.role = facts.role});
  }
  return variants;
}

}  // namespace

std::string KernelVariant::name() const {
  return fmt::format("{}{}{}{}{}{}{}{}", facts_of(role).name, masked ? "_masked" : "",
                     suffix_of(rows), split ? "_split" : "", resident ? "_resident" : "",
                     lse ? "_lse" : "", deterministic ? "_deterministic" : "",
                     aligned ? "" : "_unaligned");
}

std::optional<KernelVariant> KernelVariant::find(std::string_view name) {
  for (const KernelVariant& variant : all_variants()) {
    if (variant.name() == name) return variant;
  }
  return std::nullopt;
}

KernelVariant KernelVariant::parse(std::string_view name) {
  if (const std::optional<KernelVariant> variant = find(name)) return *variant;
  std::vector<std::string> names;
  for (const KernelVariant& variant : all_variants()) names.push_back(variant.name());
  throw Error({.code = ErrorCode::usage,
               .message = fmt::format("there is no kernel \"{}\"", name),
               .notes = {"kernels are " + one_of(names)},
               .hint = did_you_mean(name, names)});
}

std::vector<KernelVariant> kernel_variants(const Target& target) {
  std::vector<KernelVariant> variants = all_variants();
  std::erase_if(variants, [&](const KernelVariant& variant) { return !exists(variant, target); });
  return variants;
}

}  // namespace tilewright
