// The block masks of examples, battery variants and random specs, compared with mask_mod evaluated
// at every element. Exit status 1 where a tile is wrong, or where too little is proved.
//
//     mask_equality [--full] [--faults] [--show SEED]
//
// --full     20,000 random masks, not a few, and the battery's variants, which the battery checks
// too
// --faults   instead: a fault is planted in the interval interpretation, one after the other, and
// random
//            masks must show each
// --show     instead: prints a spec of random masks
//
// TILEWRIGHT_TEST_DEVICE   cpu (default), cuda, cuda:N
// TILEWRIGHT_TEST_FULL     all: as --full, then as --faults
//                          1: 2,500 masks, a quarter of the variants, a sixth of the faults
// TILEWRIGHT_TEST_SEED     which quarter, and which sixth
// TILEWRIGHT_TEST_BATCHES  compiles of random masks
// TILEWRIGHT_TEST_FIRST    the first one's number: others are other masks
// TILEWRIGHT_TEST_MASKS    masks in each

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/call/staged_call.hpp"
#include "tests/masks/random_masks.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/full_run.hpp"
#include "verify/mask_check.hpp"
#include "verify/random_inputs.hpp"

namespace {

using namespace tilewright;

constexpr int kMasksOfBatch = 100;
constexpr int kMasksOfAll = 20'000;
constexpr int kMasksOfDay = 2'500;
constexpr std::size_t kSharesOfVariants = 4;
constexpr std::size_t kSharesOfFaults = 6;
constexpr int kMasksOfSample = 40;
constexpr std::uint64_t kBatchesOfFault = 12;  // of so few masks, at most

int masks_of_batch(bool full) {
  const std::string given = environment("TILEWRIGHT_TEST_MASKS");
  if (!given.empty()) return std::atoi(given.c_str());
  return full ? kMasksOfBatch : kMasksOfSample;
}

struct Tally {
  std::int64_t masks = 0;
  std::int64_t tiles = 0;
  std::int64_t wrong = 0;
  std::int64_t uniform = 0;    // full and empty tiles of the lists
  std::int64_t partial = 0;    // partial ones
  std::int64_t evaluated = 0;  // of all
  std::string first_wrong;

  void add(const BlockMask& mask, const verify::MaskVerdict& verdict, const std::string& what) {
    ++masks;
    tiles += verdict.tiles;
    partial += mask.partial_tiles();
    uniform += mask.full_tiles() + mask.empty_tiles();
    evaluated += mask.tiles_evaluated();
    if (verdict.wrong_tiles > 0 && wrong == 0) first_wrong = what + ": " + verdict.first_wrong;
    wrong += verdict.wrong_tiles;
  }

  // Of the tiles that intervals could prove.
  double proved() const {
    return uniform == 0
               ? 1.0
               : 1.0 - static_cast<double>(evaluated - partial) / static_cast<double>(uniform);
  }
};

// A spec's masks and what they must be.
class Subject {
 public:
  Subject(const Spec& spec, const Device& device, const Toolchain& toolchain)
      : spec_(spec),
        attention_(spec, {.device = device, .kernels = toolchain, .masks_only = true}),
        interpretation_(spec, toolchain) {}

  void check(const Shape& shape, std::uint64_t seed, const std::map<std::string, double>& scalars,
             Tally& tally, const std::string& what) const {
    const verify::Inputs inputs =
        verify::random_inputs(spec_, shape, seed, {.broadcast_buffers = seed % 5 == 0});
    verify::Problem problem = inputs.problem();
    for (const auto& [name, value] : scalars) problem.snippet.scalars[name] = value;
    const StagedCall staged(attention_.device(), problem.snippet);
    const BlockMask mask = attention_.block_mask(shape, attention_.bind(staged.inputs()));
    path_ = std::string(mask.path());
    tally.add(mask,
              verify::check_block_mask(spec_, problem, mask, interpretation_, ThreadPool::shared()),
              fmt::format("{}, {}", what, shape.describe()));
  }

  const std::string& path() const { return path_; }

 private:
  Spec spec_;
  Attention attention_;
  verify::FloatInterpretation interpretation_;
  mutable std::string path_;
};

Shape shape_of(std::int64_t batch, std::int64_t heads, std::int64_t q_len, std::int64_t kv_len,
               std::int64_t q_offset, std::int64_t kv_offset) {
  return {.batch = batch,
          .num_q_heads = heads,
          .num_kv_heads = heads % 2 == 0 ? heads / 2 : heads,
          .q_len = q_len,
          .kv_len = kv_len,
          .q_offset = q_offset,
          .kv_offset = kv_offset};
}

// Odd lengths and offsets, about as many tiles for every block.
Shape random_shape(const Spec& spec, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::int64_t greatest) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(greatest));
  };
  const bool has_offsets = random() % 3 == 0;
  return shape_of(up_to(2), up_to(2), up_to(3 * spec.block[0] + 16), up_to(5 * spec.block[1] + 16),
                  has_offsets ? up_to(600) - 100 : 0, has_offsets ? up_to(400) - 100 : 0);
}

// The templates with another text for one of them. A hundred masks in one source take GCC 4 s to
// optimise and 0.6 s without, and need not be fast; those of examples/ and the battery are
// optimised.
std::shared_ptr<const jinja::Loader> with_template(const std::string& file = {},
                                                   const std::string& text = {}) {
  const std::shared_ptr<const jinja::Loader> templates = default_template_loader();
  std::map<std::string, std::string> files;
  for (const std::string& name : templates->names()) files[name] = *templates->load(name);
  if (!file.empty()) files[file] = text;
  files.at("cpu/kernels/mask.cpp.jinja").insert(0, "#pragma GCC optimize(\"O0\")\n");
  return std::make_shared<jinja::MapLoader>(std::move(files));
}

Tally check_random(const Device& device, const Toolchain& toolchain, std::uint64_t seed, int count,
                   int shapes) {
  Tally tally;
  const Spec spec = masks::random_masks(seed, count);
  const Subject subject(spec, device, toolchain);
  for (int which = 0; which < count; ++which) {
    for (int i = 0; i < shapes; ++i) {
      const std::uint64_t call =
          (seed * 1000 + static_cast<std::uint64_t>(which)) * 8 + static_cast<std::uint64_t>(i);
      subject.check(random_shape(spec, call), call, {{"which", which}}, tally,
                    fmt::format("random masks {}, {} of {}", seed, which, count));
    }
  }
  tally.masks = count;
  if (subject.path() != "proved") {
    tally.first_wrong = fmt::format("random masks {} do not compile for intervals", seed);
    tally.wrong += 1;
  }
  return tally;
}

std::vector<Spec> specs_in(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  const std::string other_root = environment("TILEWRIGHT_TEST_ROOT");
  const std::string root = other_root.empty() ? TILEWRIGHT_SOURCE_DIR : other_root;
  for (const auto& file : std::filesystem::directory_iterator(root + "/" + folder)) {
    if (file.path().extension() == ".json") paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Spec> specs;
  for (const auto& path : paths) {
    Spec spec = spec_from_file(path);
    if (!spec.mask_mod.empty()) specs.push_back(std::move(spec));
  }
  return specs;
}

// The masks of a folder over several calls, one of each `shares`.
bool check_folder(const std::string& folder, std::size_t shares, const Device& device,
                  const Toolchain& toolchain) {
  bool ok = true;
  int proved = 0, count = 0;
  std::size_t position = 0;
  for (const Spec& spec : specs_in(folder)) {
    if (!is_in_share(position++, shares)) continue;
    const Subject subject(spec, device, toolchain);
    Tally tally;
    const bool has_offsets = spec.name != "division_up_to_the_end";  // divides by kv_len - kv_idx
    const std::int64_t far = has_offsets ? 1000 : 0;
    subject.check(shape_of(1, 1, 2048, 2048, 0, 0), 1, {}, tally, spec.name);
    subject.check(shape_of(2, 4, 513, 1291, 0, 0), 2, {}, tally, spec.name);
    subject.check(shape_of(1, 2, 77, 1100, far, 0), 3, {}, tally, spec.name);
    subject.check(shape_of(2, 1, 300, 200, has_offsets ? -37 : 0, has_offsets ? 11 : 0), 5, {},
                  tally, spec.name);
    // Of what could be proved, all but the edge.
    const bool is_proved = subject.path() == "proved" && tally.proved() > 0.8;
    fmt::print("{:<32} {:>7} tiles, {} wrong, {} path, {:5.1f} % of the uniform ones proved\n",
               spec.name, tally.tiles, tally.wrong, subject.path(), 100 * tally.proved());
    if (tally.wrong > 0) fmt::print("WRONG {}\n", tally.first_wrong);
    ok = ok && tally.wrong == 0;
    proved += is_proved;
    ++count;
  }
  fmt::print("{}: {} of {} masks proved\n", folder, proved, count);
  return ok && (folder != "examples" || proved * 10 >= count * 9);
}

bool check_batches(const Device& device, const Toolchain& toolchain, int batches,
                   int masks_of_each) {
  Tally all;
  std::mutex mutex;
  const int first = std::atoi(environment("TILEWRIGHT_TEST_FIRST").c_str());
  std::atomic<int> next = first;
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kBetweenLines{10};
  const Clock::time_point start = Clock::now();
  Clock::time_point next_line = start + kBetweenLines;
  int ended = 0;
  const auto say_progress = [&] {
    ++ended;
    if (Clock::now() < next_line) return;
    next_line = Clock::now() + kBetweenLines;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fmt::print(stderr, "{} of {} compiles of random masks, {:.0f} s, about {:.0f} s left\n", ended,
               batches, seconds, seconds / ended * (batches - ended));
  };
  const auto work = [&] {
    for (int batch = next++; batch < first + batches; batch = next++) {
      const Tally tally =
          check_random(device, toolchain, static_cast<std::uint64_t>(batch), masks_of_each, 1);
      const std::lock_guard lock(mutex);
      if (tally.wrong > 0) fmt::print("WRONG {}\n", tally.first_wrong);
      all.masks += tally.masks;
      all.tiles += tally.tiles;
      all.wrong += tally.wrong;
      all.uniform += tally.uniform;
      all.partial += tally.partial;
      all.evaluated += tally.evaluated;
      say_progress();
    }
  };
  {
    std::vector<std::jthread> threads;  // compilers are waited for, each on one core
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < std::min(cores, static_cast<unsigned>(batches)); ++i) {
      threads.emplace_back(work);
    }
  }
  if (batches == 0) return true;
  fmt::print("{} random masks, {} tiles ({} partial), {} wrong; {:.1f} % of the uniform proved\n",
             all.masks, all.tiles, all.partial, all.wrong, 100 * all.proved());
  // Masks of every kind, and proofs that have something to say.
  return all.wrong == 0 && all.partial > 0 && all.uniform > 0 && all.proved() > 0.3;
}

// A change of a template that makes it prove what is not so.
struct Fault {
  const char* what;
  const char* file;
  const char* from;
  const char* to;
  const char* mask = nullptr;  // that shows it, where random ones hardly do
};

const std::vector<Fault>& faults() {
  static constexpr const char* kInterval = "interpretations/interval.hpp";
  static constexpr const char* kBuffer = "interpretations/interval_buffer.hpp";
  static const std::vector<Fault> all = {
      {"a sum's upper bound", kInterval, "Wide{a.hi} + b.hi", "Wide{a.hi} + b.lo"},
      {"a difference's bounds", kInterval, "Wide{a.lo} - b.hi, Wide{a.hi} - b.lo",
       "Wide{a.lo} - b.lo, Wide{a.hi} - b.hi"},
      {"a product of negative numbers", kInterval,
       "hull<T>(Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi,",
       "hull<T>(Wide{a.lo} * b.lo, Wide{a.lo} * b.lo, Wide{a.hi} * b.hi, Wide{a.hi} * b.hi,"},
      {"a remainder that wraps", kInterval, "a.lo / b.lo == a.hi / b.lo &&", ""},
      {"a remainder's greatest value", kInterval, "b.lo > 0 ? b.hi - 1 : -1 - b.lo;",
       "b.lo > 0 ? b.hi - 2 : -2 - b.lo;"},
      {"a strict comparison", kInterval, "!known || a.lo < b.hi, !known || a.hi >= b.lo",
       "!known || a.lo < b.hi, !known || a.hi > b.lo"},
      {"equality of what overlaps", kInterval, "a.lo <= b.hi && b.lo <= a.hi)",
       "a.lo < b.hi && b.lo < a.hi)"},
      {"the absolute value across 0", kInterval, "tw_greater(-a.lo, a.hi), true)", "a.hi, true)"},
      {"and of undecided truths", kInterval, "a.may_hold && b.may_hold, a.may_fail || b.may_fail",
       "a.may_hold && b.may_hold, a.may_fail && b.may_fail"},
      {"or of undecided truths", kInterval, "a.may_hold || b.may_hold, a.may_fail && b.may_fail",
       "a.may_hold && b.may_hold, a.may_fail && b.may_fail"},
      {"a condition that is not decided", kInterval, "is_decided() ? may_hold : tw_undecided()",
       "may_hold"},
      {"unknown bits", kInterval, "differ |= differ >> distance", "differ |= differ >> 1",
       "((kv_idx + 255) & 2) != 0"},
      {"both branches of select", kInterval,
       "if (condition.is_decided()) return condition.may_hold ? a : b;",
       "return condition.may_hold ? a : b;"},
      {"the last run of a table", kBuffer, "i <= last; ++i", "i < last; ++i"},
      {"the last of a few elements", kBuffer, "i <= hi; ++i", "i < hi; ++i",
       "levels[kv_idx / 128] > 0"},
      {"a range of a leading index", kBuffer, "if (lo != hi) return {};", "", "grid(q_idx, 0) > 2"},
      {"the clamp of an index", kBuffer, "tw_greater(0ll, tw_lesser(index, last_[dim]))",
       "tw_greater(0ll, tw_lesser(index + 1, last_[dim]))"},
  };
  return all;
}

// One mask over the buffers of the random ones.
std::int64_t wrong_tiles(const char* mask, const Device& device, const Toolchain& toolchain) {
  Spec spec = masks::random_masks(0, 1);
  spec.mask_mod = mask;
  spec.block = {256, 256};
  const Subject subject(spec, device, toolchain);
  Tally tally;
  for (const std::uint64_t seed : {1, 2, 3}) {
    subject.check(shape_of(1, 1, 300, 2048, 0, 0), seed, {}, tally, mask);
  }
  return tally.wrong;
}

bool check_faults(const Device& device, std::size_t shares, Toolchain toolchain) {
  const std::shared_ptr<const jinja::Loader> templates = default_template_loader();
  bool ok = true;
  std::size_t position = 0;
  for (const Fault& fault : faults()) {
    if (!is_in_share(position++, shares)) continue;
    const std::string sound = templates->load(fault.file).value_or("");
    const std::size_t at = sound.find(fault.from);
    std::string faulty = sound;
    if (at != std::string::npos) faulty.replace(at, std::string(fault.from).size(), fault.to);
    toolchain.templates = with_template(fault.file, faulty);
    if (fault.mask && wrong_tiles(fault.mask, device, {.templates = with_template()}) > 0) {
      fmt::print("WRONG without a fault: {}\n", fault.mask);
      ok = false;
    }
    std::int64_t wrong = fault.mask ? wrong_tiles(fault.mask, device, toolchain) : 0;
    for (std::uint64_t batch = 0; batch < kBatchesOfFault && wrong == 0; ++batch) {
      const Tally tally = check_random(device, toolchain, batch, masks_of_batch(false), 3);
      wrong += tally.wrong;
    }
    const bool is_seen = at != std::string::npos && wrong > 0;
    fmt::print("{}: {}, {} wrong tiles\n", is_seen ? "seen" : "NOT SEEN", fault.what, wrong);
    ok = ok && is_seen;
  }
  return ok;
}

int run(int argc, char** argv) {
  const std::string name = environment("TILEWRIGHT_TEST_DEVICE");
  const Device device = name.empty() ? Device::cpu() : Device::parse(name);
  bool whole = is_whole_run();
  const bool with_faults = is_full_run();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    whole = whole || argument == "--full";
    if (argument == "--faults") return check_faults(device, 1, {}) ? 0 : 1;
    if (argument == "--show" && i + 1 < argc) {
      const auto seed = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
      fmt::print("{}\n", to_json(masks::random_masks(seed, kMasksOfBatch)));
      return 0;
    }
  }
  const bool full = whole || is_full_run();
  int batches = full ? (whole ? kMasksOfAll : kMasksOfDay) / kMasksOfBatch : 1;
  if (const std::string given = environment("TILEWRIGHT_TEST_BATCHES"); !given.empty()) {
    batches = std::atoi(given.c_str());
  }
  bool ok = check_batches(device, {.templates = with_template()}, batches, masks_of_batch(full));
  ok = check_folder("examples", 1, device, {}) && ok;
  const auto shares = [whole](std::size_t of_day) { return whole ? 1 : of_day; };
  if (full) {
    ok = check_folder("tests/battery/variants", shares(kSharesOfVariants), device, {}) && ok;
  }
  if (with_faults) ok = check_faults(device, shares(kSharesOfFaults), {}) && ok;
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
