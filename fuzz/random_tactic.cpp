#include "fuzz/random_tactic.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/error.hpp"
#include "fuzz/snippet_dice.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr int kMostTries = 24;

// The tactic with its open parameters filled in; nothing where it does not fit.
std::optional<Tactic> chosen(const TacticSpec& tactic, Spec spec, const Target& target,
                             const KernelVariant& traits) {
  spec.tactic = tactic;
  try {
    return choose_tactic(spec, target, traits);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Multiples of 16 up to `most` that divide a side of the block mask's tiles.
std::vector<std::int64_t> tiles_of(std::int64_t side, std::int64_t most) {
  std::vector<std::int64_t> tiles;
  for (std::int64_t tile = 16; tile <= std::min(side, most); tile += 16) {
    if (side % tile == 0) tiles.push_back(tile);
  }
  return tiles;
}

// Parameters of a tactic, each drawn or left open. Not all that is drawn fits together.
class TacticDice : private SnippetDice {
 public:
  TacticDice(const Spec& spec, Random& random) : SnippetDice(random), spec_(spec) {}

  TacticSpec throw_for(const std::string& name) {
    TacticSpec tactic{.name = name};
    std::map<std::string, std::int64_t>& parameters = tactic.parameters;
    if (!one_in(3)) parameters["q_tile"] = one_of(tiles_of(spec_.block[0], 256));
    if (!one_in(3)) parameters["kv_tile"] = one_of(tiles_of(spec_.block[1], 256));
    if (name == "cpu") return tactic;
    if (one_in(2)) parameters["stages"] = 1 + below(3);
    if (one_in(3)) parameters["mask_unroll"] = one_of<std::int64_t>({1, 4, 8, 16});
    if (name == "portable") throw_for_portable(parameters);
    if (name == "hopper") throw_for_hopper(parameters);
    return tactic;
  }

 private:
  void throw_for_portable(std::map<std::string, std::int64_t>& parameters) {
    if (one_in(3)) parameters["q_in_registers"] = below(2);
    if (one_in(3)) parameters["blocks_per_sm"] = 1 + below(3);
    // Of tiles of 16 rows a warp owns one to four.
    if (parameters.contains("q_tile") && one_in(2)) {
      parameters["warps"] = std::max<std::int64_t>(1, parameters["q_tile"] / 16 / (1 + below(4)));
    }
  }

  // Its tiles of q are those of one to three warpgroups, and need divide a block only where a mask
  // is followed.
  void throw_for_hopper(std::map<std::string, std::int64_t>& parameters) {
    if (one_in(2)) parameters["q_tile"] = one_of<std::int64_t>({64, 128, 192});
    if (one_in(4)) parameters["kv_tile"] = 16 * (1 + below(8));
    if (one_in(2)) parameters["q_stages"] = 1 + below(2);
    if (one_in(2)) parameters["take_turns"] = below(2);
    if (one_in(2)) parameters["persistent"] = below(3);
    if (one_in(2)) parameters["out_over_q"] = below(2);
  }

  const Spec& spec_;
};

// How much two tactics differ: in tiles, stages and warps.
int difference(const Tactic& a, const Tactic& b) {
  int count = 0;
  const std::map<std::string, std::int64_t> of_a = a.parameters(), of_b = b.parameters();
  for (const char* name : {"q_tile", "kv_tile", "stages", "warps"}) {
    const auto first = of_a.find(name), second = of_b.find(name);
    if (first == of_a.end() || second == of_b.end()) continue;
    count += first->second != second->second ? 1 : 0;
  }
  return count;
}

}  // namespace

std::optional<TacticSpec> random_tactic(const std::string& name, const Spec& spec,
                                        const Target& target, const KernelVariant& traits,
                                        Random& random) {
  TacticDice dice(spec, random);
  for (int i = 0; i < kMostTries; ++i) {
    TacticSpec tactic = dice.throw_for(name);
    if (chosen(tactic, spec, target, traits)) return tactic;
  }
  const TacticSpec open{.name = name};
  if (chosen(open, spec, target, traits)) return open;
  return std::nullopt;
}

std::vector<TacticSpec> different_tactics(const Spec& spec, const Target& target,
                                          const KernelVariant& traits) {
  std::vector<TacticSpec> tactics;
  const std::vector<std::string> names = target.is_cpu()
                                             ? std::vector<std::string>{"cpu"}
                                             : std::vector<std::string>{"portable", "hopper"};
  Random random(1, "different tactics");
  for (const std::string& name : names) {
    const TacticSpec open{.name = name};
    const std::optional<Tactic> usual = chosen(open, spec, target, traits);
    if (!usual) continue;
    TacticSpec furthest = open;
    int most = 0;
    for (int i = 0; i < kMostTries; ++i) {
      const auto tactic = random_tactic(name, spec, target, traits, random);
      const int distance = tactic ? difference(*chosen(*tactic, spec, target, traits), *usual) : 0;
      if (distance <= most) continue;
      furthest = *tactic;
      most = distance;
    }
    tactics.push_back(open);
    if (most > 0) tactics.push_back(furthest);
  }
  return tactics;
}

Spec with_bounded_waits(Spec spec, const Target& target) {
  if (choose_tactic(spec, target).name() != "hopper") return spec;
  if (!spec.tactic) spec.tactic = TacticSpec{.name = "hopper"};
  spec.tactic->parameters["bounded_waits"] = 1;
  return spec;
}

}  // namespace tilewright::verify::fuzz
