#include "fuzz/random_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "fuzz/gradient_choice.hpp"
#include "fuzz/many_columns.hpp"
#include "fuzz/plan.hpp"
#include "fuzz/random_dropout.hpp"
#include "fuzz/random_packing.hpp"
#include "fuzz/random_scales.hpp"
#include "fuzz/random_snippet.hpp"
#include "fuzz/random_tactic.hpp"
#include "generator/render/cuda_kernels.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/spec/target.hpp"
#include "generator/tactic/tactic.hpp"
#include "runtime/call/few_rows.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr int kCandidates = 12;
constexpr int kLongLength = 4;  // of Factor::q_len and Factor::kv_len

std::uint16_t every_value(Factor factor) {
  return static_cast<std::uint16_t>((1u << names_of(factor).values.size()) - 1);
}

bool is_of_compile(Factor factor) {
  return factor == Factor::target || factor == Factor::kernel;
}

// ---- what cases of a source may show

void make_least_call(FuzzCase& fuzz_case) {
  fuzz_case.shape = {.q_len = 1, .kv_len = 1};
  if (fuzz_case.spec.is_packed()) fuzz_case.packing.sequences = {{.q_len = 1, .kv_len = 1}};
}

constexpr std::uint16_t kChosen = 1 << 0, kCpu = 1 << 1, kPortable = 1 << 2, kHopper = 1 << 3;

std::uint16_t run_tactics(const CaseSource& source) {
  if (source.device == "cpu") return kChosen | kCpu;
  return source.gpu_target == "sm_90a" ? kChosen | kPortable | kHopper : kChosen | kPortable;
}

constexpr std::uint16_t kPacked = 1 << 2;  // of the layouts

void allow_packed_alone(Features& allowed) {
  bits(allowed, Factor::layout) &= kPacked;
  bits(allowed, Factor::kv_layout) &= 1;
  bits(allowed, Factor::kv_sharing) &= 1 << 0 | 1 << 2;
  for (const Factor factor : {Factor::sequences, Factor::kv_rows}) {
    bits(allowed, factor) &= static_cast<std::uint16_t>(~1u);
  }
}

void allow_dense_alone(Features& allowed) {
  bits(allowed, Factor::layout) &= static_cast<std::uint16_t>(~kPacked);
  bits(allowed, Factor::batch) &= 3;
  for (const Factor factor : {Factor::tokens, Factor::sequences, Factor::kv_rows}) {
    bits(allowed, factor) &= 1;
  }
}

// A user's snippets show what they show; the rest is free. A tactic of theirs stays.
void fix_user_factors(const Spec& spec, Features& allowed) {
  FuzzCase fuzz_case;
  fuzz_case.spec = spec;
  make_least_call(fuzz_case);
  const Features shown = features_of(fuzz_case);
  for (const Factor factor :
       {Factor::score_mod, Factor::mask_mod, Factor::mask_scope, Factor::buffer, Factor::rank,
        Factor::bounds, Factor::scalar, Factor::functions, Factor::choice, Factor::local,
        Factor::integers, Factor::tokens, Factor::dropout}) {
    bits(allowed, factor) = bits(shown, factor);
  }
  if (!spec.gradients.empty()) bits(allowed, Factor::gradients) = bits(shown, Factor::gradients);
  if (spec.tactic) bits(allowed, Factor::tactic) = bits(shown, Factor::tactic);
  if (spec.buffers.empty()) bits(allowed, Factor::buffer_sharing) = 1;
  if (spec.mask_mod.empty()) bits(allowed, Factor::contents) = 3;
  if (spec.is_packed()) {
    allow_packed_alone(allowed);
  } else {
    allow_dense_alone(allowed);
  }
}

// A user's spec that names none gets some where they are asked for.
std::uint16_t allowed_gradients(const CaseSource& source) {
  constexpr std::uint16_t kNone = 1 << 0, kTensors = 1 << 1, kNamed = 1 << 2;
  if (!source.user_spec) return source.gradients ? kTensors | kNamed : kNone | kTensors | kNamed;
  if (!source.gradients) return kNone;
  const std::vector<std::string> names = possible_gradients(*source.user_spec);
  const bool has_named = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name != "q" && name != "k" && name != "v";
  });
  return has_named ? kTensors | kNamed : kTensors;
}

// Values that no case with gradients shows, where each case has some.
Features excluded_by_gradients(const Features& allowed) {
  Features excluded = {};
  if ((bits(allowed, Factor::gradients) & 1) != 0) return excluded;
  for (std::size_t f = 0; f < kFactors; ++f) {
    const auto factor = static_cast<Factor>(f);
    for (int value = 0; allowed[f] >> value != 0; ++value) {
      bool meets_some = factor == Factor::gradients;
      for (const int gradients : {1, 2}) {
        const bool is_allowed = (bits(allowed, Factor::gradients) >> gradients & 1) != 0;
        meets_some =
            meets_some || (is_allowed && can_meet({Factor::gradients, gradients}, {factor, value}));
      }
      if (!meets_some) excluded[f] |= static_cast<std::uint16_t>(allowed[f] & 1u << value);
    }
  }
  return excluded;
}

Features values_of_source(const CaseSource& source) {
  Features allowed = {};
  for (std::size_t f = 0; f < kFactors; ++f) {
    const auto factor = static_cast<Factor>(f);
    if (!is_of_compile(factor)) allowed[f] = every_value(factor);
  }
  bits(allowed, Factor::tactic) = run_tactics(source);
  if (!source.offsets) bits(allowed, Factor::offsets) = 1;
  if (source.self_attention) bits(allowed, Factor::kv_len) = 0;  // q_len says it
  // Positions of more rows than columns begin before 0.
  if (!source.offsets) bits(allowed, Factor::sequences) = source.self_attention ? 3 : 7;
  bits(allowed, Factor::gradients) = allowed_gradients(source);
  if (source.user_spec) fix_user_factors(*source.user_spec, allowed);
  return allowed;
}

Features allowed_runs(const CaseSource& source) {
  Features allowed = values_of_source(source);
  const Features excluded = excluded_by_gradients(allowed);
  for (std::size_t f = 0; f < kFactors; ++f) {
    allowed[f] &= static_cast<std::uint16_t>(~excluded[f]);
  }
  return allowed;
}

Features allowed_compiles(const CaseSource& source) {
  Features allowed = {};
  for (std::size_t f = 0; f < kFactors; ++f) {
    const auto factor = static_cast<Factor>(f);
    if (f < kSpecFactors || is_of_compile(factor)) allowed[f] = every_value(factor);
  }
  bits(allowed, Factor::tactic) = kChosen | kPortable | kHopper;
  bits(allowed, Factor::gradients) = 1;
  bits(allowed, Factor::target) = 0x1f;  // GPUs
  if (source.user_spec) {
    fix_user_factors(*source.user_spec, allowed);
    bits(allowed, Factor::buffer_sharing) = bits(allowed, Factor::contents) = 0;
  }
  return allowed;
}

// ---- a plan turned into a spec

class SpecMaker {
 public:
  SpecMaker(const Plan& plan, Random& random, const CaseSource& source)
      : plan_(plan), random_(random), source_(source) {}

  FuzzCase make(bool no_offsets, const Features& wishes) {
    FuzzCase fuzz_case;
    if (source_.user_spec) fuzz_case.spec = *source_.user_spec;
    Spec& spec = fuzz_case.spec;
    if (source_.user_spec) spec.name.clear();
    choose_dtypes(spec);
    choose_head_dims(spec);
    spec.layout = std::array{Layout::bhsd, Layout::bshd, Layout::packed}.at(
        static_cast<std::size_t>(value(Factor::layout)));
    spec.kv_layout.reset();
    spec.kv_new = false;  // relations put k and v into pages, and new rows outside of them
    if (value(Factor::kv_layout) == 1) {
      spec.kv_layout = spec.layout == Layout::bhsd ? Layout::bshd : Layout::bhsd;
    }
    spec.outputs.lse =
        value(Factor::outputs) == 1 || value(Factor::outputs) == 3 || !spec.gradients.empty();
    spec.outputs.max_scores = value(Factor::outputs) == 2;
    spec.outputs.weights = value(Factor::outputs) == 3;
    spec.precise_math.reset();
    if (value(Factor::math) > 0) spec.precise_math = value(Factor::math) == 1;
    spec.f32_products = value(Factor::products) == 1 ? F32Products::tf32 : F32Products::ieee;
    choose_block(spec);
    if (!source_.user_spec) make_snippets(fuzz_case, no_offsets, wishes);
    return fuzz_case;
  }

  // The plan's tactic with parameters that fit; none where it cannot serve.
  void force_tactic(Spec& spec, const Target& target, const KernelVariant& traits) {
    if (source_.user_spec && source_.user_spec->tactic) return;
    const std::string_view name =
        names_of(Factor::tactic).values[static_cast<std::size_t>(value(Factor::tactic))];
    if (name == "chosen") return;
    spec.tactic = random_tactic(std::string(name), spec, target, traits, random_);
  }

 private:
  int value(Factor factor) const { return at(plan_, factor); }
  std::int64_t below(std::int64_t count) { return random_.integer(0, count - 1); }
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

  DType other_dtype(DType dtype) {
    DType other = dtype;
    while (other == dtype)
      other = std::array{DType::f32, DType::f16, DType::bf16}[static_cast<std::size_t>(below(3))];
    return other;
  }

  // Random i8 are 32 times as large.
  void choose_one_byte(Spec& spec) {
    spec.kv_dtype =
        std::array{DType::f8e4m3, DType::f8e5m2, DType::i8}[static_cast<std::size_t>(below(3))];
    if (spec.k_scale.empty()) spec.k_scale = *spec.kv_dtype == DType::i8 ? "0.03f" : "0.75f";
    if (spec.v_scale.empty()) spec.v_scale = *spec.kv_dtype == DType::i8 ? "0.03f" : "1.25f";
  }

  // out, of one byte too, is clamped here and there.
  void choose_float8(Spec& spec) {
    spec.out_dtype = value(Factor::mixed) == 2 ? other_dtype(spec.dtype) : spec.dtype;
    if (spec.out_dtype == spec.dtype) spec.out_scale = below(2) == 0 ? "0.001f" : "0.25f";
    if (spec.q_scale.empty()) spec.q_scale = "0.75f";
    if (spec.k_scale.empty()) spec.k_scale = "0.75f";
    if (spec.v_scale.empty()) spec.v_scale = "1.25f";
  }

  void choose_dtypes(Spec& spec) {
    spec.dtype = std::array{DType::f32, DType::f16, DType::bf16,
                            DType::f8e4m3}[static_cast<std::size_t>(value(Factor::dtype))];
    spec.kv_dtype.reset();
    spec.out_dtype.reset();
    if (spec.dtype == DType::f8e4m3) return choose_float8(spec);
    if (value(Factor::mixed) == 1) spec.kv_dtype = other_dtype(spec.dtype);
    if (value(Factor::mixed) == 2) spec.out_dtype = other_dtype(spec.dtype);
    if (value(Factor::mixed) == 3) choose_one_byte(spec);
  }

  std::int64_t random_head_dim() {
    switch (value(Factor::head_dim)) {
      case 0:
        return 64;
      case 1:
        return 16;
      case 2:
        return 128;
      case 3:
        return one_of({24, 40, 56, 72, 88, 104, 120});
      case 4:
        return one_of({32, 48, 80, 96, 112});
      case 6:
        return one_of({9, 12, 17, 31, 50, 94, 121, 130, 203, 255});
      default:
        return one_of({136, 144, 160, 192, 200, 224, 256});
    }
  }

  void choose_head_dims(Spec& spec) {
    spec.head_dim = random_head_dim();
    spec.v_head_dim = 0;
    if (spec.pads_rows()) return choose_any_value_dim(spec);
    const std::int64_t steps = spec.head_dim / 8;
    if (value(Factor::v_head_dim) == 1) spec.v_head_dim = 8 * random_.integer(2, steps - 1);
    if (value(Factor::v_head_dim) == 2) {
      if (spec.head_dim == 256) spec.head_dim = 248;
      const std::int64_t most = std::min<std::int64_t>(32, spec.head_dim / 8 + 8);
      spec.v_head_dim = 8 * random_.integer(spec.head_dim / 8 + 1, most);
    }
  }

  void choose_any_value_dim(Spec& spec) {
    const std::int64_t most = std::min<std::int64_t>(256, spec.head_dim + 64);
    if (value(Factor::v_head_dim) == 1) spec.v_head_dim = random_.integer(8, spec.head_dim - 1);
    if (value(Factor::v_head_dim) == 2) spec.v_head_dim = random_.integer(spec.head_dim + 1, most);
  }

  void choose_block(Spec& spec) {
    switch (value(Factor::block)) {
      case 0:
        spec.block = {128, 128};
        break;
      case 1:
        spec.block = {16 * (1 + below(3)), 16 * (1 + below(3))};
        break;
      case 2:
        spec.block = {one_of({192, 256}), one_of({192, 224, 256})};
        break;
      default:
        spec.block = {one_of({64, 80, 112, 128, 192}), one_of({16, 48, 64, 96, 144, 176})};
    }
  }

  void make_snippets(FuzzCase& fuzz_case, bool no_offsets, const Features& wishes) {
    SnippetMaker maker(fuzz_case.spec, random_);
    const bool is_packed = fuzz_case.spec.is_packed();
    SnippetWish wish{
        .features = wishes, .no_offsets = no_offsets && !is_packed, .is_packed = is_packed};
    if (value(Factor::score_mod) > 0) {
      wish.is_body = value(Factor::score_mod) == 2;
      fuzz_case.score_mod = maker.score_mod(wish);
    }
    if (value(Factor::mask_mod) > 0) {
      wish.is_body = value(Factor::mask_mod) == 2;
      fuzz_case.mask_mod = maker.mask_mod(wish);
    }
    print_snippets(fuzz_case);
  }

  const Plan& plan_;
  Random& random_;
  const CaseSource& source_;
};

// A wish for everything that a plan names.
Features wishes_of(const Plan& plan) {
  Features wishes = {};
  for (std::size_t f = 0; f < kFactors; ++f) {
    if (plan[f] >= 0) wishes[f] = static_cast<std::uint16_t>(1u << plan[f]);
  }
  return wishes;
}

// ---- a plan turned into a call

class CallMaker {
 public:
  CallMaker(const Plan& plan, Random& random, const CaseSource& source)
      : plan_(plan), random_(random), source_(source), max_elements_(source.max_elements) {}

  void make(FuzzCase& c, bool no_offsets) {
    // Their reference sweeps the scores six times.
    if (!c.spec.gradients.empty()) max_elements_ = source_.max_elements / 3;
    c.target = source_.device;
    choose_heads(c.shape);
    c.shape.batch = value(Factor::batch) == 0 ? 1 : random_.integer(2, 3);
    c.shape.q_len = length(Factor::q_len, c.spec.block[0]);
    c.shape.kv_len =
        source_.self_attention ? c.shape.q_len : length(Factor::kv_len, c.spec.block[1]);
    if (c.spec.is_packed()) {
      pack(c, no_offsets);
    } else {
      make_smaller(c.shape);
      if (source_.self_attention)
        c.shape.q_len = c.shape.kv_len = std::min(c.shape.q_len, c.shape.kv_len);
      if (!no_offsets) choose_offsets(c.shape.q_offset, c.shape.kv_offset);
    }
    c.broadcast_kv = value(Factor::kv_sharing) == 1;
    c.one_kv_head_for_all = value(Factor::kv_sharing) == 2;
    c.broadcast_buffers = value(Factor::buffer_sharing) == 1;
    const std::int64_t free_dim = random_.integer(1, 100);
    if (!source_.user_spec) c.free_dim = free_dim;
    c.null_extents = source_.null_extents;
    choose_placements(c);
    if (value(Factor::scale) == 1) c.scale = round_to(DType::f32, 0.05 + 0.25 * random_.uniform());
    if (value(Factor::scale) == 2) c.scale = random_.integer(0, 1) == 0 ? 0.0 : -0.125;
    c.q_factor = value(Factor::contents) == 1 ? 4 : 1;
    c.nan_in_dropped = value(Factor::contents) == 2;
    choose_scalars(c);
    c.seed = random_.next() >> 11;
    const bool has_many_columns = !source_.self_attention && give_some_many_columns(c);
    const bool may_split = has_many_columns && !c.spec.is_packed();
    c.decode = c.seed % 4 != 0 && (may_split || has_few_rows(c.spec, c.shape));
    c.split = c.decode && (may_split || c.seed % 4 != 1);
    constexpr std::array<std::int64_t, 6> kSplits = {0, 0, 1, 2, 16, 64};
    if (c.split || c.spec.is_packed()) c.splits = kSplits.at(c.seed / 32 % kSplits.size());
    c.batch_invariant = c.spec.is_packed() && c.seed / 256 % 4 == 0;
    c.dlse = !c.spec.gradients.empty() && c.seed / 8 % 2 == 0;
    c.deterministic = !c.spec.gradients.empty() && c.seed / 16 % 2 == 0;
  }

 private:
  int value(Factor factor) const { return at(plan_, factor); }

  void choose_heads(Shape& shape) {
    const std::int64_t few = random_.integer(2, 3);
    switch (value(Factor::heads)) {
      case 0:
        shape.num_q_heads = shape.num_kv_heads = 1;
        break;
      case 1:
        shape.num_q_heads = shape.num_kv_heads = few;
        break;
      case 2:
        shape.num_kv_heads = 2;
        shape.num_q_heads = 2 * few;
        break;
      default:
        shape.num_kv_heads = 1;
        shape.num_q_heads = random_.integer(2, 5);
    }
  }

  std::int64_t length(Factor factor, std::int64_t block) {
    const std::int64_t most = source_.max_length;
    switch (value(factor)) {
      case 0:
        return 1;
      case 1:
        return random_.integer(2, 15);
      case 2: {
        // One more or less than a multiple of a tile.
        const std::int64_t step = random_.integer(0, 1) == 0 ? 16 : block;
        const std::int64_t tiles = std::max<std::int64_t>(1, 256 / step);
        const std::int64_t edge = step * random_.integer(1, tiles) + random_.integer(-1, 1);
        return std::clamp<std::int64_t>(edge, 15, 256);
      }
      case 3: {
        std::int64_t odd = 0;
        while (odd % 16 <= 1 || odd % 16 == 15) odd = random_.integer(16, 250);
        return odd;
      }
      default:
        return random_.integer(257, std::max<std::int64_t>(257, most));
    }
  }

  // Inside the values of the plan.
  void make_smaller(Shape& shape) const {
    const auto is_too_large = [&] {
      return shape.batch * shape.num_q_heads * shape.q_len * shape.kv_len > max_elements_;
    };
    if (is_too_large()) shape.batch = std::min<std::int64_t>(shape.batch, 2);
    if (is_too_large() && value(Factor::heads) == 3) shape.num_q_heads = 2;
    if (is_too_large() && value(Factor::heads) == 1) shape.num_q_heads = shape.num_kv_heads = 2;
    if (is_too_large() && value(Factor::heads) == 2) shape.num_q_heads = 4;
    for (std::int64_t* length : {&shape.q_len, &shape.kv_len}) {
      if (is_too_large() && *length > 257) *length = std::max<std::int64_t>(257, *length / 2);
    }
  }

  // With their own dice. A GPU's kernels cut the columns of such a call; a CPU's do not, and its
  // calls keep the planned class of lengths.
  bool give_some_many_columns(FuzzCase& c) const {
    const bool on_gpu = source_.device == "cuda";
    Random random(c.seed, "many columns");
    if (random.integer(0, on_gpu ? 2 : 3) != 0) return false;
    if (!on_gpu && value(Factor::kv_len) != kLongLength) return false;
    return give_many_columns(c, (on_gpu ? 4 : 1) * max_elements_, random);
  }

  // The first sequence takes the shape's lengths.
  void pack(FuzzCase& c, bool no_offsets) {
    c.shape.batch = 1;
    make_smaller(c.shape);
    PackingMaker maker({.batch = value(Factor::batch),
                        .sequences = value(Factor::sequences),
                        .kv_rows = value(Factor::kv_rows),
                        .block = c.spec.block,
                        .least_position_is_0 = !source_.offsets,
                        .self_attention = source_.self_attention,
                        .max_length = source_.max_length,
                        .max_elements = max_elements_ / c.shape.num_q_heads},
                       random_);
    c.packing = maker.make({.q_len = c.shape.q_len, .kv_len = c.shape.kv_len});
    if (!no_offsets) choose_offsets_of_sequences(c.packing);
    set_totals(c.shape, c.packing);
  }

  // Those of all sequences have the planned sign.
  void choose_offsets_of_sequences(FuzzPacking& packing) {
    if (value(Factor::offsets) == 0) return;
    const int kind = static_cast<int>(random_.integer(0, 2));
    packing.has_q_offset = kind != 1;
    packing.has_kv_offset = kind != 0;
    const std::int64_t sign = value(Factor::offsets) == 1 ? 1 : -1;
    for (FuzzSequence& sequence : packing.sequences) {
      const std::int64_t distance = sign * random_.integer(1, 700);
      if (packing.has_q_offset) sequence.q_offset = distance;
      if (packing.has_kv_offset) sequence.kv_offset = distance + sign * random_.integer(0, 40);
    }
  }

  void choose_offsets(std::int64_t& q_offset, std::int64_t& kv_offset) {
    const int kind = value(Factor::offsets);
    if (kind == 0) return;
    const std::int64_t sign = kind == 1 ? 1 : -1;
    const std::int64_t distance = sign * random_.integer(1, 700);
    switch (random_.integer(0, 2)) {
      case 0:
        q_offset = distance;
        break;
      case 1:
        kv_offset = distance;
        break;
      default:
        q_offset = distance;
        kv_offset = distance + sign * random_.integer(0, 40);
    }
  }

  Placement placement(DType dtype) {
    const auto step = static_cast<std::int64_t>(16 / size_of(dtype));
    if (value(Factor::placement) == 0) return {};
    if (value(Factor::placement) == 1) return {.row_padding = step * random_.integer(1, 3)};
    return {.row_padding = random_.integer(0, 5), .offset = random_.integer(0, 3)};
  }

  void choose_placements(FuzzCase& c) {
    c.q = placement(c.spec.dtype);
    c.k = placement(c.spec.key_value_dtype());
    c.v = placement(c.spec.key_value_dtype());
    c.out = placement(c.spec.output_dtype());
    c.buffers = placement(DType::f32);
    if (value(Factor::placement) == 2) c.k.offset = 1;
  }

  void choose_scalars(FuzzCase& c) {
    for (const auto& [name, scalar] : c.spec.scalars) {
      if (source_.user_spec) {
        choose_user_scalar(name, scalar, c);
      } else if (choose_dropout_scalar(name, c, random_)) {
        continue;
      } else if (scalar.dtype == DType::i32) {
        c.scalars[name] = static_cast<double>(random_.integer(1, kMaxIntegerScalar));
      } else {
        c.scalars[name] = round_to(DType::f32, 0.5 + 1.5 * random_.uniform());
      }
    }
  }

  // A default means something; without one any int may come, and mostly what random_inputs.hpp
  // gives does.
  void choose_user_scalar(const std::string& name, const ScalarSpec& scalar, FuzzCase& c) {
    if (!scalar.default_value && scalar.dtype != DType::i32) return;
    if (random_.integer(0, 3) != 0) return;
    if (scalar.default_value) {
      c.scalars[name] = *scalar.default_value;
    } else {
      c.scalars[name] = static_cast<double>(std::min<std::int64_t>(0, random_.integer(-20, 20)));
    }
  }

  const Plan& plan_;
  Random& random_;
  const CaseSource& source_;
  std::int64_t max_elements_;
};

// The plan's values of the spec, and what its snippets came to show, for the calls of the spec.
Features fixed_by_spec(const FuzzCase& fuzz_case, const Features& allowed, bool no_offsets) {
  Features fixed = features_of(fuzz_case);
  for (std::size_t f = kSpecFactors; f < kFactors; ++f) fixed[f] = allowed[f];
  if (no_offsets) bits(fixed, Factor::offsets) = 1;
  return fixed;
}

// With its own dice, so that what else is drawn does not depend on it.
void add_scales_to_some(Spec& spec, bool has_gradients, std::uint64_t seed, std::int64_t number) {
  Random random(seed, fmt::format("scales {}", number));
  if (random.integer(0, 3) != 0) return;
  if (has_gradients) {
    add_random_sink(spec, random);
  } else {
    add_random_scales(spec, random);
  }
}

// What the plan asks for; a user's spec has its own.
void add_dropout(const Plan& plan, const CaseSource& source, Spec& spec, std::uint64_t seed,
                 std::int64_t number) {
  const int wanted = at(plan, Factor::dropout);
  if (wanted <= 0 || source.user_spec) return;
  Random random(seed, fmt::format("dropout {}", number));
  add_random_dropout(spec, wanted == 2, random);
}

// What the plan asks for; a user's stay.
void add_gradients(const Plan& plan, Spec& spec, std::uint64_t seed, std::int64_t number) {
  const int wanted = at(plan, Factor::gradients);
  if (wanted <= 0 || !spec.gradients.empty()) return;
  Random random(seed, fmt::format("gradients {}", number));
  choose_gradients(spec, wanted == 2, random);
}

std::string target_name(int target_class, Random& random) {
  static const std::array<std::vector<const char*>, 5> kTargetNames = {
      {{"sm_80"}, {"sm_86", "sm_89"}, {"sm_90a"}, {"sm_100a", "sm_103a"}, {"sm_120", "sm_121a"}}};
  const auto& names = kTargetNames[static_cast<std::size_t>(target_class)];
  return names[static_cast<std::size_t>(
      random.integer(0, static_cast<std::int64_t>(names.size()) - 1))];
}

// The values of Factor::kernel, in their order.
KernelVariant planned_kernel(const Plan& plan, const Spec& spec) {
  const bool lse = spec.outputs.lse;
  const KernelRows rows = spec.is_packed() ? KernelRows::prefill : KernelRows::all;
  const bool is_masked = !spec.mask_mod.empty() && !spec.is_packed();
  const std::array<KernelVariant, 8> kernels = {
      {{.rows = rows, .lse = lse},
       {.masked = true, .lse = lse},
       {.masked = is_masked, .rows = rows, .lse = lse, .aligned = false},
       {.role = KernelRole::mask_exact},
       {.role = KernelRole::mask_proved},
       {.role = KernelRole::mask_lists},
       {.role = KernelRole::plan_exact},
       {.role = KernelRole::plan_proved}}};
  return kernels.at(static_cast<std::size_t>(at(plan, Factor::kernel)));
}

}  // namespace

std::vector<std::string> dropped_for_gradients(const CaseSource& source) {
  const Features excluded = excluded_by_gradients(values_of_source(source));
  std::vector<std::string> dropped;
  for (std::size_t f = 0; f < kFactors; ++f) {
    const FactorNames& names = names_of(static_cast<Factor>(f));
    for (std::size_t value = 0; value < names.values.size(); ++value) {
      if ((excluded[f] >> value & 1) == 0) continue;
      dropped.push_back(fmt::format("{}={}", names.name, names.values[value]));
    }
  }
  return dropped;
}

CaseMaker::CaseMaker(CaseSource source, std::uint64_t seed)
    : source_(std::move(source)),
      seed_(seed),
      random_(seed, "cases"),
      coverage_(allowed_runs(source_)),
      compile_coverage_(allowed_compiles(source_)) {}

std::vector<FuzzCase> CaseMaker::next_group(int calls) {
  const auto wanted = coverage_.missing(random_);
  std::optional<Plan> plan = random_plan(coverage_.allowed(), random_, wanted);
  if (!plan) plan = random_plan(coverage_.allowed(), random_);
  if (!plan) throw Error(ErrorCode::internal, "no plan of a case is consistent");
  const bool no_offsets = at(*plan, Factor::offsets) == 0;

  SpecMaker spec_maker(*plan, random_, source_);
  FuzzCase base = spec_maker.make(no_offsets, wishes_of(*plan));
  const bool has_gradients = at(*plan, Factor::gradients) > 0;
  if (!source_.user_spec) add_scales_to_some(base.spec, has_gradients, seed_, number_);
  add_dropout(*plan, source_, base.spec, seed_, number_);
  add_gradients(*plan, base.spec, seed_, number_);
  const Target target = source_.device == "cpu"      ? Target::host_cpu()
                        : source_.gpu_target.empty() ? Target::parse("sm_80")
                                                     : Target::parse(source_.gpu_target);
  spec_maker.force_tactic(base.spec, target, {.masked = !base.spec.mask_mod.empty()});
  make_least_call(base);
  base.run_seed = seed_;
  const Features fixed = fixed_by_spec(base, coverage_.allowed(), no_offsets);

  std::vector<FuzzCase> cases;
  for (int i = 0; i < calls; ++i) {
    FuzzCase best;
    std::int64_t best_gain = -1;
    for (int candidate = 0; candidate < kCandidates; ++candidate) {
      // The first call is the plan's own, the others look for pairs with what the spec shows.
      std::optional<Plan> call_plan = plan;
      if (i > 0 || candidate > 0) {
        Features free = fixed;
        for (std::size_t f = 0; f < kSpecFactors; ++f) free[f] = wishes_of(*plan)[f];
        auto pair = coverage_.missing(random_, fixed);
        // What the spec shows is there already.
        if (pair && pair->first.factor < Factor::batch) pair->first = pair->second;
        if (pair && pair->second.factor < Factor::batch) pair.reset();
        call_plan = random_plan(free, random_, pair);
        if (!call_plan) call_plan = random_plan(free, random_);
      }
      if (!call_plan) continue;
      FuzzCase next = base;
      CallMaker(*call_plan, random_, source_).make(next, no_offsets);
      const std::int64_t gain = coverage_.gain(features_of(next));
      if (gain <= best_gain) continue;
      best_gain = gain;
      best = std::move(next);
    }
    if (best_gain < 0) throw Error(ErrorCode::internal, "no plan of a call is consistent");
    best.number = number_++;
    coverage_.add(features_of(best));
    cases.push_back(std::move(best));
  }
  const bool is_packed = base.spec.is_packed();
  ++(is_packed ? packed_groups_ : groups_);
  const std::int64_t group = packed_groups_ + groups_;
  const auto is_turn = [](std::int64_t number, std::int64_t every) {
    return every > 0 && number % every == 0;
  };
  const std::int64_t every = source_.relation_every;
  if (is_packed ? is_turn(packed_groups_, (every + 1) / 2) : is_turn(groups_, every)) {
    relations_.ask(cases.back());
  } else if (every > 0) {
    relations_.ask_for_rare(cases.back());
  }
  const bool sanitized =
      source_.device == "cpu" && has_all_trees(base) && is_turn(group, source_.sanitize_every);
  for (FuzzCase& fuzz_case : cases) fuzz_case.sanitized = sanitized;
  return cases;
}

FuzzCase CaseMaker::next_compile() {
  const auto wanted = compile_coverage_.missing(random_);
  std::optional<Plan> plan = random_plan(compile_coverage_.allowed(), random_, wanted);
  if (!plan) plan = random_plan(compile_coverage_.allowed(), random_);
  if (!plan) throw Error(ErrorCode::internal, "no plan of a kernel is consistent");
  SpecMaker spec_maker(*plan, random_, source_);
  FuzzCase fuzz_case = spec_maker.make(random_.integer(0, 1) == 0, wishes_of(*plan));
  if (!source_.user_spec) add_scales_to_some(fuzz_case.spec, false, seed_, number_);
  add_dropout(*plan, source_, fuzz_case.spec, seed_, number_);
  fuzz_case.target = target_name(at(*plan, Factor::target), random_);
  fuzz_case.kernel = planned_kernel(*plan, fuzz_case.spec);
  const KernelVariant traits =
      fuzz_case.kernel->is_forward() ? *fuzz_case.kernel : KernelVariant{.masked = true};
  spec_maker.force_tactic(fuzz_case.spec, Target::parse(fuzz_case.target), traits);
  fuzz_case.run_seed = seed_;
  fuzz_case.number = number_++;
  compile_coverage_.add(features_of(fuzz_case));
  return fuzz_case;
}

}  // namespace tilewright::verify::fuzz
