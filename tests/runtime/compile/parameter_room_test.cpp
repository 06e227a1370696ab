// How many buffers the parameters of a GPU's launch have room for.
#include "runtime/compile/parameter_room.hpp"

#include <optional>
#include <string>

#include "base/error.hpp"
#include "runtime/api/toolchain.hpp"
#include "runtime/library/kernel_library.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec with_buffers(Spec spec, int count) {
  for (int i = 0; i < count; ++i) {
    spec.buffers["x" + std::to_string(100 + i)] = {.dtype = f32,
                                                   .shape = {NamedDim::num_q_heads, FreeDim{}}};
  }
  return spec;
}

const Spec kDense = {.dtype = f16, .head_dim = 64, .score_mod = "score"};

Spec paged(bool kv_new) {
  Spec spec = kDense;
  spec.layout = Layout::packed;
  spec.kv_layout = Layout::paged;
  spec.kv_new = kv_new;
  return spec;
}

// What the error says where one buffer more than `fitting` is refused; nothing where it is not, or
// where `fitting` are refused too.
std::optional<Error> refusal_beyond(const Spec& spec, int fitting) {
  require_parameter_room(with_buffers(spec, fitting));
  try {
    require_parameter_room(with_buffers(spec, fitting + 1));
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("parameter room: one buffer too many is refused with the number that fits") {
  struct Limit {
    Spec spec;
    int buffers;
    int room;  // bytes: 4,096 less the tensor maps and the other arguments of a call that is split
  };
  Spec packed = kDense, deep = kDense, maxima = paged(true);
  packed.layout = Layout::packed;
  deep.buffers["deep"] = {.dtype = f32, .shape = {1, 1, 1, 1, 1}};
  maxima.outputs.max_scores = true;
  for (const Limit& limit :
       {Limit{kDense, 58, 3328}, Limit{packed, 56, 3200}, Limit{paged(false), 53, 3040},
        Limit{paged(true), 31, 1824}, Limit{maxima, 31, 1824}, Limit{deep, 44, 3328}}) {
    CAPTURE(limit.buffers);
    const std::optional<Error> refusal = refusal_beyond(limit.spec, limit.buffers);
    REQUIRE(refusal);
    CHECK(refusal->code() == ErrorCode::spec);
    const auto all = limit.buffers + limit.spec.buffers.size();
    CHECK_THAT(refusal->message(), ContainsSubstring(std::to_string(all + 1) + " buffers") &&
                                       ContainsSubstring(std::to_string(all) + " buffers fit"));
    CHECK_THAT(refusal->message(),
               ContainsSubstring("room for " + std::to_string(limit.room) + ":"));
    CHECK_THAT(refusal->hint(), ContainsSubstring("one buffer"));
  }
}

TEST_CASE(
    "parameter room: a kernel for a GPU is refused before it is compiled, one for a CPU not") {
  const Spec spec = with_buffers(paged(true), 32);
  const KernelVariant kernel = {.rows = KernelRows::prefill};
  for (const char* const target : {"sm_80", "sm_90a"}) {
    CHECK_THROWS_WITH(build_kernel(SpecFacts(spec), Target::parse(target), kernel, {}),
                      ContainsSubstring("31 buffers fit"));
  }
  CHECK_NOTHROW(build_kernel(SpecFacts(spec), Target::host_cpu(),
                             forward_kernel(spec, Target::host_cpu()), {}));
}
