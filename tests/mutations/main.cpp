// Mutates one token of an example's snippet and builds a kernel from it. Each mutation either
// compiles or ends in an error that points into the snippet; none crashes or hangs.
//
// TILEWRIGHT_TEST_FULL   all: each of the 1,000 mutations; 1: a quarter of them; else an eighth
// TILEWRIGHT_TEST_SEED   which half, or which eighth

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/library/kernel_library.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/snippet_mutations.hpp"

namespace {

using namespace tilewright;

struct Mutation {
  Spec spec;
  SnippetKind kind;
  std::string original;
  std::string text;
};

enum class Outcome { compiled, refused_by_checker, refused_by_compiler, wrong };

std::vector<Spec> example_specs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(TILEWRIGHT_SOURCE_DIR "/examples")) {
    if (file.path().extension() == ".json") paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Spec> specs;
  for (const auto& path : paths) specs.push_back(spec_from_file(path));
  return specs;
}

// The seed chooses example, snippet and mutation.
Mutation mutation_of(const std::vector<Spec>& specs, std::uint64_t seed) {
  Spec spec = specs[seed % specs.size()];
  const bool has_score = !spec.score_mod.empty(), has_mask = !spec.mask_mod.empty();
  const bool take_score = has_score && (!has_mask || seed / specs.size() % 2 == 0);
  const SnippetKind kind = take_score ? SnippetKind::score_mod : SnippetKind::mask_mod;
  std::string& snippet = take_score ? spec.score_mod : spec.mask_mod;
  const std::string original = snippet;
  snippet = testing::mutate_snippet(original, kind, seed);
  return {spec, kind, original, snippet};
}

bool points_into(const Error& error, const Mutation& mutation) {
  const auto& place = error.place();
  if (error.code() != ErrorCode::snippet || !place || place->file != to_string(mutation.kind)) {
    return false;
  }
  std::vector<std::string> lines = {""};
  for (const char c : mutation.text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  if (place->line < 1 || place->line > static_cast<int>(lines.size())) return false;
  // One past the end is where something is missing.
  const std::size_t length = lines[static_cast<std::size_t>(place->line - 1)].size();
  return place->column >= 1 && place->column <= static_cast<int>(length) + 1;
}

Outcome try_mutation(const Mutation& mutation, const Toolchain& toolchain, std::string& report) {
  bool passed_checks = false;
  try {
    validate(mutation.spec);
    passed_checks = true;
    build_kernel(mutation.spec, Target::host_cpu(), KernelVariant::parse("evaluate_float"),
                 toolchain);
    return Outcome::compiled;
  } catch (const Error& error) {
    if (points_into(error, mutation)) {
      return passed_checks ? Outcome::refused_by_compiler : Outcome::refused_by_checker;
    }
    report = error.what();
  } catch (const std::exception& error) {
    report = error.what();
  }
  return Outcome::wrong;
}

}  // namespace

int main() {
  constexpr std::uint64_t kMutations = 1000;
  const std::size_t shares = is_whole_run() ? 1 : is_full_run() ? 4 : 8;
  const std::uint64_t count = kMutations / shares;
  const std::vector<Spec> specs = example_specs();
  Toolchain toolchain;
  toolchain.store = std::make_shared<cache::Store>(cache::Store::Options{});

  std::atomic<std::uint64_t> next = 0;
  std::atomic<int> outcomes[4] = {};
  std::mutex printing;
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&] {
    for (std::uint64_t index = next++; index < count; index = next++) {
      const std::uint64_t seed = index * shares + share_of_the_day(shares);
      const Mutation mutation = mutation_of(specs, seed);
      std::string report;
      const Outcome outcome = try_mutation(mutation, toolchain, report);
      ++outcomes[static_cast<int>(outcome)];
      if (outcome != Outcome::wrong) continue;
      const std::lock_guard lock(printing);
      fmt::print("WRONG seed {}: {}\n--- original\n{}\n--- mutated\n{}\n--- report\n{}\n", seed,
                 mutation.spec.name, mutation.original, mutation.text, report);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
      threads.emplace_back(work);
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto of = [&](Outcome outcome) { return outcomes[static_cast<int>(outcome)].load(); };
  fmt::print(
      "{} mutations of {} examples in {:.1f} s: {} compiled, {} refused by the checker, {} by the "
      "compiler, {} without a place in the snippet\n",
      count, specs.size(), seconds, of(Outcome::compiled), of(Outcome::refused_by_checker),
      of(Outcome::refused_by_compiler), of(Outcome::wrong));
  // The mix shows that the mutations bite: some of each kind.
  const bool bites = of(Outcome::compiled) > 0 && of(Outcome::refused_by_checker) > 0 &&
                     of(Outcome::refused_by_compiler) > 0;
  return of(Outcome::wrong) == 0 && bites ? 0 : 1;
}
