// The key dropout: what it may say, its seed, and which kernels serve it.
#include <string>

#include "base/error.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/spec/spec.hpp"
#include "generator/spec/spec_json.hpp"
#include "generator/spec/target.hpp"
#include "generator/tactic/fast_paths.hpp"
#include "generator/tactic/tactic.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string with(const std::string& fields) {
  return R"({"dtype": "bf16", "head_dim": 64, )" + fields + "}";
}

constexpr const char* kSeed = R"("scalars": {"seed": {"dtype": "i64"}}, )";

void check_refused(const std::string& fields, const char* message, const char* hint) {
  CAPTURE(fields);
  try {
    spec_from_json(with(fields));
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK_THAT(error.message(), ContainsSubstring(message));
    CHECK_THAT(error.hint(), ContainsSubstring(hint));
    CHECK(error.place());
  }
}

Spec dropping(const std::string& fields = "") {
  return spec_from_json(with(kSeed + fields + R"("dropout": "0.5f")"));
}

}  // namespace

TEST_CASE("dropout: the key is read, and written back") {
  const Spec spec = spec_from_json(
      with(R"("dropout": "h == 0 ? 0.1f : p", "scalars": {"p": {"dtype": "f32", "default": 0.5},
              "seed": {"dtype": "i64", "default": -9007199254740991}})"));
  CHECK(spec.has_dropout());
  CHECK_FALSE(spec.has_seed_buffer());
  CHECK(spec.scalar_entries() == 3);
  CHECK(spec_from_json(to_json(spec)) == spec);
  const Spec buffer = spec_from_json(
      with(R"("dropout": "0.5", "buffers": {"seed": {"dtype": "i64", "shape": []}})"));
  CHECK(buffer.has_seed_buffer());
  CHECK(buffer.scalar_entries() == 0);
}

TEST_CASE("dropout: a seed is one i64, of dropout alone") {
  check_refused(R"("dropout": "0.5f")", "its seed is missing", R"("seed": {"dtype": "i64"})");
  check_refused(R"("dropout": "0.5f", "scalars": {"seed": {"dtype": "i32"}})",
                R"(scalars.seed.dtype is "i32", but must be "i64")", "rename the scalar");
  check_refused(R"("dropout": "0.5f", "buffers": {"seed": {"dtype": "i64", "shape": [1]}})",
                "no single i64", "\"shape\": []");
  check_refused(R"("dropout": "0.5f", "buffers": {"seed": {"dtype": "i32", "shape": []}})",
                "no single i64", "rename the buffer");
  check_refused(R"("scalars": {"seed": {"dtype": "i64"}})", "only dropout's seed", "add");
  check_refused(R"("scalars": {"x": {"dtype": "i64"}})", R"(must be "f32" or "i32")", "");
  check_refused(std::string(kSeed) + R"("dropout": "seed * 0.1f")", "no snippet reads it",
                "declare it as a buffer");
  check_refused(std::string(kSeed) + R"("dropout": "0.1f", "mask_mod": "kv_idx != seed")",
                "no snippet reads it", "declare it as a buffer");
}

TEST_CASE("dropout: a seed is a whole number that a double holds") {
  const auto seed = [](const std::string& value) {
    return R"("dropout": "0.5f", "scalars": {"seed": {"default": )" + value +
           R"(, "dtype": "i64"}})";
  };
  for (const char* const held : {"9007199254740992", "-9007199254740992", "9007199254740992.0",
                                 "90071992547409.92e2", "0.0e-5", "7e0", "1500e-2"}) {
    const Spec spec = spec_from_json(with(seed(held)));
    CHECK(*spec.scalars.at("seed").default_value == std::stod(held));
    CHECK(spec_from_json(to_json(spec)) == spec);
  }
  for (const char* const rounded :
       {"9007199254740993", "-9007199254740993", "9007199254740994", "9223372036854775807",
        "18446744073709551615", "1e300", "9007199254740993.5", "9007199254740992.5",
        "9007199254740993.0", "4503599627370496.25", "1.5", "-0.5", "15e-1", "1e-300"}) {
    check_refused(seed(rounded), "but must be a whole number from -9007199254740992 to",
                  R"("buffers": {"seed": {"dtype": "i64", "shape": []}})");
  }
  check_refused(seed("9007199254740993"), "scalars.seed.default is 9007199254740993,", "2^53");
  check_refused(seed("1.5"), "scalars.seed.default is 1.5,",
                "a seed as a scalar is a whole number");
  check_refused(
      R"("buffers": {"x": {"range": [0, 9007199254740993], "dtype": "i64", "shape": [1]}})",
      "buffers.x.range[1] is 9007199254740993,", "");
}

TEST_CASE("dropout: the scalar seed is no name that a snippet may read") {
  const Spec spec = dropping();
  CHECK(names_available(spec, SnippetKind::dropout).find("seed") == std::string::npos);
  const Spec buffer = spec_from_json(
      with(R"("dropout": "0.5", "buffers": {"seed": {"dtype": "i64", "shape": []}})"));
  CHECK_THAT(names_available(buffer, SnippetKind::dropout), ContainsSubstring("seed (i64)"));
}

TEST_CASE("dropout: it sees the head") {
  check_refused(std::string(kSeed) + R"("dropout": "q_idx * 0.1f")", "dropout does not see q_idx",
                "it sees h, h_kv, num_q_heads, num_kv_heads");
  check_refused(std::string(kSeed) + R"("dropout": "b")", "dropout does not see b", "");
}

TEST_CASE("dropout: Hopper's kernel serves, the decode kernel does not, and explain says so") {
  const Target target = Target::parse("sm_90a");
  const Spec dense = dropping(), packed = dropping(R"("layout": "packed", )");
  for (const Spec& spec : {dense, packed}) {
    CHECK(choose_tactic(spec, target).hopper() != nullptr);
    for (const FastPath& path : fast_paths(spec, target)) {
      if (path.name != "decode") continue;
      CHECK_FALSE(path.used);
      CHECK_THAT(path.why_not, ContainsSubstring("kernel has no dropout"));
    }
  }
  for (const KernelVariant& kernel : kernel_set(packed, target)) {
    CHECK(kernel.rows != KernelRows::decode);
  }
}
