#include "fuzz/gradient_choice.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "generator/snippet/gradient_terms.hpp"
#include "generator/snippet/spec_facts.hpp"

namespace tilewright::verify::fuzz {
namespace {

void require_legal(Spec spec, const std::string& name) {
  spec.gradients = {name};
  spec.outputs.lse = true;
  spec.f32_products = F32Products::ieee;
  tilewright::validate(spec);
  require_known_derivative(SpecFacts(spec));
}

bool is_legal(const Spec& spec, const std::string& name) {
  try {
    require_legal(spec, name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_tensor(const std::string& name) {
  return name == "q" || name == "k" || name == "v";
}

// Three of four, and at least one.
void take_some(const std::vector<std::string>& names, Random& random,
               std::vector<std::string>& to) {
  if (names.empty()) return;
  const auto sure =
      static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(names.size()) - 1));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == sure || random.integer(0, 3) != 0) to.push_back(names[i]);
  }
}

}  // namespace

std::vector<std::string> possible_gradients(const Spec& spec) {
  std::vector<std::string> names = {"q", "k", "v"};
  for (const auto& [name, buffer] : spec.buffers) names.push_back(name);
  for (const auto& [name, scalar] : spec.scalars) names.push_back(name);
  std::erase_if(names, [&](const std::string& name) { return !is_legal(spec, name); });
  return names;
}

void require_possible_gradients(const Spec& spec) {
  if (spec.gradients.empty()) return require_legal(spec, "q");
  require_known_derivative(SpecFacts(spec));
}

void choose_gradients(Spec& spec, bool named, Random& random) {
  std::vector<std::string> tensors = possible_gradients(spec);
  const auto end_of_tensors = std::stable_partition(tensors.begin(), tensors.end(), is_tensor);
  const std::vector<std::string> others(end_of_tensors, tensors.end());
  tensors.erase(end_of_tensors, tensors.end());
  if (tensors.empty()) return;
  spec.gradients.clear();
  if (named) take_some(others, random, spec.gradients);
  // Buffers alone in one spec of eight, and half of the others name all of q, k and v.
  const std::int64_t kind = random.integer(0, 7);
  if (kind == 0 && !spec.gradients.empty()) {
    tensors.clear();
  } else if (kind < 4) {
    std::vector<std::string> some;
    take_some(tensors, random, some);
    tensors = std::move(some);
  }
  spec.gradients.insert(spec.gradients.begin(), tensors.begin(), tensors.end());
  spec.outputs.lse = true;
}

}  // namespace tilewright::verify::fuzz
