#include "fuzz/random_dropout.hpp"

#include <array>
#include <iterator>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "fuzz/rewrite.hpp"
#include "generator/spec/number_range.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

template <typename T, std::size_t kCount>
T one_of(const T (&values)[kCount], Random& random) {
  return values[random.integer(0, static_cast<std::int64_t>(kCount) - 1)];
}

std::string random_text(Spec& spec, Random& random) {
  constexpr const char* kUsual[] = {"0.25", "0.5", "h % 2 == 0 ? 0.0 : 0.75",
                                    "h_kv == 0 ? 0.125 : 0.5"};
  constexpr const char* kOutside[] = {"-0.5", "0.0", "1.0", "1.5", "log2(-1.0)"};
  switch (random.integer(0, 7)) {
    case 0:
      return one_of(kOutside, random);
    case 1:
    case 2:
      return one_of(kUsual, random);
    case 3:
    case 4: {
      const std::string name = unused_name(spec, "p");
      spec.scalars[name] = {.dtype = DType::f32};
      return name;
    }
    default: {
      const bool by_kv_head = random.integer(0, 2) == 0;
      const std::string name = unused_name(spec, "probabilities");
      spec.buffers[name] = {.dtype = random.integer(0, 3) == 0 ? DType::f16 : DType::f32,
                            .shape = {by_kv_head ? NamedDim::num_kv_heads : NamedDim::num_q_heads},
                            .range = {{-0.25, 1.25}}};
      return fmt::format("{}[{}]", name, by_kv_head ? "h_kv" : "h");
    }
  }
}

double random_probability(Random& random) {
  constexpr double kProbabilities[] = {0.1, 0.1,  0.25,   0.5,
                                       0.5, 0.75, 0.9375, 0,
                                       1,   -0.5, 2,      std::numeric_limits<double>::quiet_NaN()};
  return round_to(DType::f32, one_of(kProbabilities, random));
}

double random_seed(Random& random) {
  constexpr auto kMost = static_cast<std::int64_t>(kMostExactWhole);
  constexpr double kEnds[] = {0, 1, -1, kMostExactWhole, -kMostExactWhole, 0x1p32};
  if (random.integer(0, 3) == 0) return one_of(kEnds, random);
  return static_cast<double>(random.integer(-kMost, kMost));
}

}  // namespace

void add_random_dropout(Spec& spec, bool seed_in_buffer, Random& random) {
  spec.dropout = random_text(spec, random);
  if (seed_in_buffer) {
    spec.buffers["seed"] = {.dtype = DType::i64, .range = {{-kMostExactWhole, kMostExactWhole}}};
  } else {
    spec.scalars["seed"] = {.dtype = DType::i64};
  }
}

bool choose_dropout_scalar(const std::string& name, FuzzCase& fuzz_case, Random& random) {
  const Spec& spec = fuzz_case.spec;
  if (!spec.has_dropout()) return false;
  if (name == "seed") {
    fuzz_case.scalars[name] = random_seed(random);
  } else if (name == spec.dropout) {
    fuzz_case.scalars[name] = random_probability(random);
  } else {
    return false;
  }
  return true;
}

}  // namespace tilewright::verify::fuzz
