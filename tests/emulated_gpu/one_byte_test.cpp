// Calls whose k and v have elements of one byte on the emulated GPU: the portable kernel on tensor
// cores and in float32, and the decode kernel.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/io/float16.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/one_byte_cases.hpp"
#include "tests/support/scaled_rows.hpp"
#include "verify/check.hpp"

namespace tilewright {
using namespace verify;

namespace {

template <typename Inputs>
void require_right(const Spec& spec, const Inputs& inputs) {
  CAPTURE(to_string(spec.dtype), to_string(spec.key_value_dtype()), spec.head_dim);
  CheckOptions options;
  options.attention.device = Device::parse("cuda");
  const Report report = check(spec, inputs.problem(), options);
  std::string reasons;
  for (const std::string& reason : report.reasons()) reasons += reason + "\n";
  INFO(reasons);
  REQUIRE(report.ok);
}

bool is_right_with(const test::Fault& fault, const one_byte::PackedCase& one) {
  CheckOptions options;
  options.attention.device = Device::parse("cuda");
  options.attention.kernels.templates = std::make_shared<test::FaultyTemplates>(fault);
  try {
    return check(one.spec, random_packed_inputs(one.spec, one.lengths, 5).problem(), options).ok;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device) throw;
    return false;  // the emulator ended the kernel
  }
}

}  // namespace

TEST_CASE("one byte on a GPU: planted faults are seen") {
  const std::string products = "cuda/decode/one_byte_products.hpp";
  const std::string turned = "cuda/hopper/turned_values.hpp";
  const std::string widened = "cuda/hopper/widened_tiles.hpp";
  const std::string widened_rows = "cuda/hopper/widened_rows.hpp";
  const std::string pages = "cuda/hopper/page_loader.hpp";
  const std::string tensor = "cuda/hopper/tensor_producer.hpp";
  const std::vector<test::Fault> faults = {
      {"columns of q in another order than k's", products, "half * 2 + quad * 4",
       "half * 8 + quad * 2"},
      {"columns of v in the order of bytes", products, "__byte_perm(v[2 * n], 0, 0x3120)",
       "v[2 * n]"},
      {"columns of out in the order of 16-bit operands", products, "j / 4 * 16", "j / 4 * 8"},
      {"the second step of k is the first's", products, "widen<QElement, KvElement>(k[step])",
       "widen<QElement, KvElement>(k[0])"},
      {"i8 without its bias", "cuda/one_byte.hpp", "four ^ 0x80808080u", "four"},
      {"i8 that is not negative twice as far", "cuda/one_byte.hpp", ", 0xc300c300u)",
       ", 0xc380c380u)"},
      {"weights of bf16 beside values of f16", products, "make_weights<WeightElement>(p_tile, p)",
       "make_weights<QElement>(p_tile, p)"},
      {"e4m3 without its factor", "cuda/one_byte.hpp", "0x5c005c00u", "0x3c003c00u"},
      {"rows of the second half of a thread's chunks", "cuda/portable/widened_kv.hpp",
       "KvElement>(words[i])", "KvElement>(words[0])"},
      {"V turned by pairs of one row", turned, "pairs[1], 0x6420)", "pairs[1], 0x5410)"},
      {"the next 16 rows of V stored over the first", turned, "(lane() / 16 ^ column % 8)",
       "(lane() / 32 ^ column % 8)"},
      {"V turned and not fenced", turned, "fence_for_copies();", ""},
      {"the second half of a chunk over the first", widened_rows, "(to_ ^ 16)", "to_"},
      {"bytes widened and not fenced", widened, "fence_for_copies();", ""},
      {"weights stay bf16 where V is f16", "cuda/hopper/softmax_step.hpp",
       "pack_word<WeightElement>", "pack_word<QElement>"},
      {"a tile of bytes is brought before its place is empty", tensor, "tile_place_.parity() ^ 1",
       "tile_place_.parity() ^ 0 * 1"},
      {"V's rows are those of K's pool", tensor, ": loader_.v_page_rows()",
       ": loader_.k_page_rows() + 8"},
      {"one tensor's warp alone asks for plans", tensor, "ask_for_plan();",
       "{ if (kIsK) ask_for_plan(); }"},
      {"the planner's warp brings pages", pages,
       "if (kProducersWiden) return threadIdx.x / 32 == 0",
       "if (kProducersWiden) return threadIdx.x / 64 == 0"},
      {"two warps bring K", pages, "!kSplitsTensors || threadIdx.x / 32 == 0", "true"},
      {"new rows taken for pages", "cuda/portable/widened_kv.hpp", "if (!is_new) return",
       "return"}};
  const std::vector<one_byte::PackedCase> cases = one_byte::packed_cases();
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    // Cases of other kernels would only take time.
    const auto meets = [&](const one_byte::PackedCase& one) {
      return fault.file != turned || one.spec.dtype == f8e4m3;
    };
    CHECK_FALSE(std::all_of(cases.begin(), cases.end(), [&](const one_byte::PackedCase& one) {
      return !meets(one) || is_right_with(fault, one);
    }));
  }
}

TEST_CASE("one byte on a GPU: dense calls", "[every-kind]") {
  for (const one_byte::DenseCase& one : one_byte::dense_cases()) {
    require_right(one.spec, random_inputs(one.spec, one.shape, 5));
  }
}

// Warps of the producer's warpgroup widen tiles, with more registers where tiles are shorter.
TEST_CASE("one byte on a GPU: q tiles of 192 rows", "[every-kind]") {
  const auto check = [](Spec spec, std::map<std::string, std::int64_t> tactic) {
    tactic["q_tile"] = 192;
    spec.tactic = TacticSpec{"hopper", std::move(tactic)};
    const Shape shape{.num_q_heads = 2, .num_kv_heads = 1, .q_len = 400, .kv_len = 430};
    require_right(spec, random_inputs(spec, shape, 5));
  };
  Spec causal = one_byte::spec_of(bf16, i8, 64);
  causal.mask_mod = "q_idx >= kv_idx";
  check(causal, {});
  check(one_byte::spec_of(bf16, f8e4m3, 64), {});
  check(one_byte::spec_of(f16, f8e5m2, 64), {{"stages", 3}, {"out_over_q", 1}});
  check(one_byte::spec_of(bf16, f8e4m3, 48), {{"kv_tile", 112}});
  check(one_byte::spec_of(bf16, f8e4m3, 64), {{"kv_tile", 96}});
  check(one_byte::spec_of(bf16, f8e4m3, 64), {{"kv_tile", 80}});
  check(one_byte::spec_of(bf16, f8e4m3, 128), {});
}

TEST_CASE("one byte on a GPU: packed and paged calls, decoded and not", "[every-kind]") {
  for (const one_byte::PackedCase& one : one_byte::packed_cases()) {
    require_right(one.spec, random_packed_inputs(one.spec, one.lengths, 5));
  }
}

TEST_CASE("one byte on a GPU: append divides by scales, rounds and clamps", "[every-kind]") {
  const auto check = [](const Spec& spec, std::int64_t page_size, scaled_rows::TableForm form) {
    scaled_rows::check_scaled_append(
        Attention(spec, {.device = Device::parse("cuda"), .append = true}), page_size, form);
  };
  check(scaled_rows::scaled_spec(f16, f8e4m3), 16, scaled_rows::TableForm::rows);
  check(scaled_rows::scaled_spec(f32, i8, true), 140, scaled_rows::TableForm::none);
}

// Each finite number of the type is a value of v that one column alone has.
TEST_CASE("one byte on a GPU: every number of a type reaches out", "[every-kind]") {
  for (const DType kv_dtype : {f8e4m3, f8e5m2, i8}) {
    Spec spec = one_byte::spec_of(bf16, kv_dtype, 64);
    spec.v_scale = "1.0f";
    spec.mask_mod = "q_idx == kv_idx";
    Inputs inputs = random_inputs(spec, {.q_len = 256, .kv_len = 256}, 5);
    for (int row = 0; row < 256; ++row) {
      const auto code = static_cast<unsigned char>(row);
      const bool is_finite = std::isfinite(read_element(&code, kv_dtype, 0));
      std::memset(static_cast<char*>(inputs.v.data()) + row * 64, is_finite ? row : 0, 64);
    }
    require_right(spec, inputs);
  }
}

}  // namespace tilewright
