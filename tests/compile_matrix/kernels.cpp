#include "tests/compile_matrix/kernels.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/render/cuda_kernels.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"
#include "generator/tactic/tactic.hpp"
#include "tests/compile_matrix/operands.hpp"
#include "tests/compile_matrix/sass.hpp"

namespace tilewright::compile_matrix {
namespace {

// The version of ptxas in a cubin's notes: "Cuda compilation tools, release 13.0, V13.0.88".
// NVRTC's own interface tells no more than "13.0".
std::string ptxas_version(const std::vector<std::byte>& cubin) {
  const std::string_view text(reinterpret_cast<const char*>(cubin.data()), cubin.size());
  constexpr std::string_view kIntroduction = "Cuda compilation tools, release ";
  const std::size_t introduction = text.find(kIntroduction);
  if (introduction == std::string_view::npos) return {};
  const std::size_t begin = text.find('V', introduction + kIntroduction.size());
  const std::size_t end = text.find('\0', introduction);
  if (begin == std::string_view::npos || end == std::string_view::npos || begin > end) return {};
  return std::string(text.substr(begin, end - begin));
}

bool widens_bytes(const Spec& spec) {
  return size_of(spec.key_value_dtype()) == 1 && size_of(spec.dtype) == 2;
}

// Promised are head_dim 64 and 128 at the tactic that is chosen; a template for one architecture
// promises it for whatever it is chosen for, that of the backward pass for the gradient of one
// buffer at most, unless each element adds to memory by itself: 40 to 200 bytes spill then. With
// dropout and a score_mod 50 bytes may spill, which cost less than the portable kernel, and one
// register of a masked forward kernel that splits q tiles of head dims above 192. With more than
// 192 columns of v that were widened, kernels that split q tiles spill as they store a part. Other
// kernels of the backward pass promise nothing; kernels of block masks have no tactic that could be
// chosen otherwise, and run for tens of microseconds.
bool must_not_spill(const Wish& wish) {
  if (const auto tactic = hopper_backward_tactic(wish.spec, wish.target, wish.kernel)) {
    if (wish.spec.has_dropout() && !wish.spec.score_mod.empty()) return false;
    const std::size_t learnt = gradient_names(wish.spec).size();
    const bool sums_before_memory = tactic->diagonals + tactic->own_sums + tactic->row_reads > 0;
    return learnt == 0 || (learnt == 1 && sums_before_memory);
  }
  if (!wish.kernel.is_forward()) return false;
  if (wish.spec.has_dropout() && wish.kernel.split && wish.spec.head_dim > 192) return false;
  const bool has_wide_values = wish.spec.value_head_dim() > 192;
  if (wish.kernel.split && widens_bytes(wish.spec) && has_wide_values) return false;
  if (wish.spec.tactic && !wish.spec.tactic->parameters.empty()) return false;
  if (tactic_of(wish).name() != "portable") return true;
  return wish.spec.head_dim == 64 || wish.spec.head_dim == 128;
}

}  // namespace

Tactic tactic_of(const Wish& wish) {
  if (!wish.kernel.is_forward()) return choose_tactic(wish.spec, wish.target);
  return choose_tactic(wish.spec, wish.target, wish.kernel);
}

std::string Wish::describe() const {
  return fmt::format("{} {} {}: {} for {}", spec.name, to_string(spec.dtype), spec.head_dim,
                     kernel.name(), target.name());
}

std::vector<Kernel> distinct_kernels(const std::vector<Wish>& wishes) {
  const auto templates = default_template_loader();
  std::map<std::tuple<std::string, std::vector<std::string>, std::string>, std::size_t> places;
  std::vector<Kernel> kernels;
  for (const Wish& wish : wishes) {
    KernelSource source = render_kernel(wish.spec, wish.target, wish.kernel, *templates);
    const auto [place, is_new] = places.try_emplace(
        std::tuple(wish.target.name(), source.options, source.text), kernels.size());
    if (is_new) kernels.push_back({std::move(source), {}});
    kernels[place->second].wishes.push_back(wish);
  }
  return kernels;
}

Outcome compile(const Kernel& kernel) {
  try {
    const auto output =
        find_compiler(kernel.source.target)->compile(kernel.wishes.front().spec, kernel.source);
    const auto resources = gpu_resources(output.facts);
    if (!resources) return {.error = "its compiler did not say what it uses"};
    const std::string version = ptxas_version(output.binary);
    return {.error = {},
            .compiler = version.empty() ? output.facts.at("compiler") : version,
            .resources = *resources,
            .cubin_bytes = output.binary.size(),
            .instructions = count_instructions(output.binary),
            .products = count_products(output.binary)};
  } catch (const std::exception& error) {
    return {.error = error.what()};
  }
}

std::vector<std::string> problems(const Kernel& kernel, const Outcome& outcome) {
  if (!outcome.error.empty()) return {outcome.error};
  std::vector<std::string> found = outcome.resources.performance_warnings;
  if (found.empty() && outcome.products.are_serialised()) {
    found.push_back(fmt::format("ptxas serialises its {} products: {} waits",
                                outcome.products.products, outcome.products.waits));
  }
  const std::int64_t room = max_shared_bytes(kernel.source.target);
  if (outcome.resources.shared_bytes > room) {
    found.push_back(fmt::format("needs {} bytes of shared memory for a block of threads, of {}",
                                outcome.resources.shared_bytes, room));
  }
  const std::string operand = repeated_operand(kernel.source.text);
  if (!operand.empty()) found.push_back(operand);
  const auto strict = std::find_if(kernel.wishes.begin(), kernel.wishes.end(), must_not_spill);
  if (outcome.resources.spill_bytes > 0 && strict != kernel.wishes.end()) {
    found.push_back(fmt::format("spills {} bytes a thread with {} ({})",
                                outcome.resources.spill_bytes, tactic_of(*strict).describe(),
                                strict->describe()));
  }
  return found;
}

}  // namespace tilewright::compile_matrix
