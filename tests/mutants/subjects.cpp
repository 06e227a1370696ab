#include "tests/mutants/subjects.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "generator/spec/spec_json.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "tests/mutants/emulated.hpp"
#include "tests/mutants/special_calls.hpp"
#include "tests/support/source_root.hpp"

namespace tilewright::mutants {
namespace {

// For GPUs alone: tactics of Hopper's kernel and what only it does with a score_mod, each with more
// q tiles than blocks of threads run at once; masks with more tiles in a row, and more rows, than a
// block of threads takes at once; scores that float32 holds coarsely once they are scaled; and a
// tactic of the portable kernel that nothing has by default.
constexpr std::array kGpuSpecs = {"hopper_turns",  "hopper_two_turns", "hopper_wide",
                                  "hopper_listed", "hopper_reads",     "steep",
                                  "stripes",       "levels",           "two_stages_f32"};

// What kills most comes first.
constexpr std::array kSpecs = {"examples/alibi",
                               "tests/battery/variants/dense_f16",
                               "tests/battery/variants/empty_rows_f32",
                               "tests/battery/variants/causal_alibi_softcap",
                               "tests/battery/variants/integer_buffers",
                               "tests/battery/variants/per_kv_head",
                               "tests/battery/variants/out_of_bounds",
                               "examples/alibi_documents",
                               "tests/battery/variants/minus_infinity",
                               "tests/battery/variants/many_functions",
                               "tests/battery/variants/layout_bshd",
                               "tests/battery/variants/lambda_and_loop",
                               "tests/battery/variants/block_48_80",
                               "examples/natten_2d",
                               "tests/battery/variants/locals_and_branches",
                               "tests/battery/variants/sizes_of_the_call",
                               "examples/t5_bias",
                               "examples/shared_prefix",
                               "tests/battery/variants/large_scores",
                               "tests/battery/variants/padded_both_ways",
                               "tests/battery/variants/mixed_dtypes",
                               "tests/battery/variants/division_up_to_the_end",
                               "tests/battery/variants/free_dimensions",
                               "examples/dilated",
                               "tests/mutants/specs/causal_in_float",
                               "tests/mutants/specs/buffers_in_mask",
                               "tests/mutants/specs/table_in_mask",
                               "tests/mutants/specs/many_tiles",
                               "tests/mutants/specs/product_in_mask",
                               "tests/mutants/specs/unknown_in_mask",
                               "tests/mutants/specs/remainder_in_mask",
                               "tests/mutants/specs/floor_in_mask",
                               "tests/mutants/specs/one_byte_keys",
                               "tests/mutants/specs/one_byte_integers",
                               "tests/mutants/specs/one_byte_out",
                               "tests/battery/variants/tf32",
                               "tests/battery/variants/scales_by_row",
                               "tests/battery/variants/sinks_of_rows",
                               "tests/mutants/specs/fewer_columns",
                               "tests/battery/variants/promised_order"};

// A spec with a single call of two heads.
struct LastSubject {
  const char* spec;
  std::int64_t q_len;
  std::int64_t kv_len;
};

// For GPUs alone. They come last, as the calls that a subject has depend on its number.
constexpr std::array kLastGpuSubjects = {
    // Blocks of a mask of several kv tiles, under q tiles over rows of two blocks.
    LastSubject{"tests/battery/variants/block_64_256", 300, 700},
    // Rows of blocks without a key, with a table that ends inside kv_len.
    LastSubject{"tests/mutants/specs/hopper_gaps", 300, 700},
    // P overflows f16 where a row's maximum rises by less than 8 in the scores' own units.
    LastSubject{"tests/mutants/specs/sharp", 300, 700},
    // Scores, all alike, that float32 holds coarsely only once they are exponents of 2.
    LastSubject{"tests/mutants/specs/far_from_zero", 300, 700},
    // The last q tile reaches past the mask's rows, of which the last alone has a tile. A kernel
    // that reads on takes what an earlier mask left there, the number of a late q tile, for the end
    // of a list.
    LastSubject{"tests/mutants/specs/late_rows", 3'265, 100},
    // Q tiles over rows of two blocks, some of them without a tile, others with holes.
    LastSubject{"tests/mutants/specs/hopper_holes", 900, 700},
    // V of 8 bits, turned, and k and v of one byte, widened, in more tiles than there are places.
    LastSubject{"tests/mutants/specs/hopper_float8", 300, 700},
    LastSubject{"tests/mutants/specs/hopper_widened", 300, 700}};

battery::Case long_call(std::int64_t heads, std::int64_t kv_heads, std::int64_t q_len,
                        std::int64_t kv_len) {
  return {.name = fmt::format("{} rows, {} keys", q_len, kv_len),
          .shape = {.batch = 2,
                    .num_q_heads = heads,
                    .num_kv_heads = kv_heads,
                    .q_len = q_len,
                    .kv_len = kv_len}};
}

// Every subject has some calls, all of them together each call several times.
std::vector<battery::Case> some_calls(const Spec& spec, std::size_t subject, std::size_t count) {
  std::vector<battery::Case> all = battery::all_cases(false);
  std::vector<battery::Case> calls;
  // 4 and the number of calls have no common divisor.
  for (std::size_t i = 0; i < all.size() && calls.size() < count; ++i) {
    const battery::Case& call = all[(subject + 1 + 4 * i) % all.size()];
    if (!call.masked_only || !spec.mask_mod.empty()) calls.push_back(call);
  }
  return calls;
}

// The spec as each of the GPU's templates serves it.
std::vector<Spec> by_template(const Spec& spec) {
  std::vector<Spec> specs;
  const Target hopper = Target::parse("sm_90a");
  if (choose_cuda_tactic(spec, hopper, {.masked = !spec.mask_mod.empty()}).name() == "hopper") {
    specs.push_back(spec);
    specs.back().tactic = TacticSpec{.name = "hopper", .parameters = {}};
  }
  specs.push_back(spec);
  specs.back().tactic = TacticSpec{.name = "portable", .parameters = {}};
  return specs;
}

Subject gpu_subject(const Spec& spec, std::size_t number) {
  // More tiles than a chunk of a row of tiles has.
  constexpr std::int64_t kLongRow = 140'000;
  if (!spec.tactic) return {spec, {long_call(1, 1, 20, kLongRow), long_call(1, 1, 16'384, 40)}};
  Subject subject{spec, some_calls(spec, number, 2)};
  // More q tiles than run at once: 384 and more, on the emulated GPU 9.
  subject.calls.push_back(is_emulated() ? long_call(1, 1, 1'100, 300)
                                        : long_call(24, 6, 1'100, 300));
  // The last block of 128 keys has one whole tile of 64.
  subject.calls.push_back(long_call(1, 1, 600, 320));
  return subject;
}

// What the special calls leave to subjects.
std::size_t most_calls(Device::Kind device) {
  int launches = 0;
  for (const SpecialCall& call : special_calls(device)) launches += call.launches;
  const bool on_gpu = device == Device::Kind::cuda;
  return static_cast<std::size_t>((on_gpu ? kMostCallsOnGpu : kMostCalls) - launches);
}

}  // namespace

std::vector<Subject> subjects(Device::Kind device) {
  const bool on_gpu = device == Device::Kind::cuda;
  const std::filesystem::path root = source_root(TILEWRIGHT_SOURCE_DIR);
  std::vector<Subject> subjects;
  const std::size_t most = most_calls(device);
  std::size_t calls = on_gpu ? kLastGpuSubjects.size() : 0;  // one of each
  for (std::size_t i = 0; on_gpu && i < kGpuSpecs.size(); ++i) {
    const Spec spec =
        spec_from_file(root / fmt::format("tests/mutants/specs/{}.json", kGpuSpecs[i]));
    subjects.push_back(gpu_subject(spec, i));
    calls += subjects.back().calls.size();
  }
  for (const char* name : kSpecs) {
    const Spec spec = spec_from_file(root / fmt::format("{}.json", name));
    for (const Spec& variant : on_gpu ? by_template(spec) : std::vector<Spec>{spec}) {
      const bool has_small_tiles = spec.block[0] == 16;
      // With the long ones below, subjects with small tiles have as many as the others. Where
      // Hopper's kernel has served the spec already there is one less: the portable one has many.
      const bool comes_again =
          on_gpu && !subjects.empty() && subjects.back().spec.name == spec.name;
      const std::size_t count = (on_gpu ? 3 : 6) - (has_small_tiles || comes_again ? 1 : 0);
      Subject subject{variant, some_calls(variant, subjects.size(), count)};
      if (has_small_tiles) {
        subject.calls.push_back(long_call(2, 1, 300, 700));
      } else if (on_gpu) {
        subject.calls.push_back(long_call(8, 2, 777, 1500));
      }
      const std::size_t left = most - calls;
      if (subject.calls.size() > left) subject.calls.resize(left);
      calls += subject.calls.size();
      if (!subject.calls.empty()) subjects.push_back(std::move(subject));
    }
  }
  for (const LastSubject& last : kLastGpuSubjects) {
    if (!on_gpu) break;
    const Spec spec = spec_from_file(root / fmt::format("{}.json", last.spec));
    subjects.push_back({spec, {long_call(2, 1, last.q_len, last.kv_len)}});
  }
  return subjects;
}

}  // namespace tilewright::mutants
