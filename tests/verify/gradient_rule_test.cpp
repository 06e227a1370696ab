#include "verify/gradient_rule.hpp"

#include <cstddef>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/limits.hpp"
#include "verify/gradient_sweep.hpp"

using namespace tilewright;
using namespace tilewright::verify;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::size_t kOdd = 2;  // of eight elements

// A gradient of ordinary numbers, which is right.
ComparedGradient sound() {
  ComparedGradient one{.name = "d_bias"};
  one.reference = {1, -2, 3, 0.5, -0.25, 1, 2, -1};
  one.got = one.reference;
  one.naive = {one.reference};
  one.terms = one.magnitudes = std::vector<double>(8, 1);
  one.own = std::vector<double>(8, 0x1p-22);
  one.ambiguous = one.spread = one.overflow = std::vector<double>(8);
  one.share_of_magnitudes = 0x1p-24;
  return one;
}

// One element is huge, in everything that a bound is made of.
ComparedGradient with_huge_element(double got) {
  ComparedGradient one = sound();
  one.got[kOdd] = got;
  one.reference[kOdd] = 3e37;
  one.naive[0][kOdd] = 2e37;
  one.terms[kOdd] = one.magnitudes[kOdd] = 1e38;
  one.own[kOdd] = 0x1p-22 * 1e38;
  return one;
}

void require_left_out(ComparedGradient one) {
  const GradientVerdict right = judge_gradient(one);
  CAPTURE(right.reasons);
  CHECK(right.ok);
  CHECK(right.spread + right.overflow == 1);
  const GradientVerdict usual = judge_gradient(sound());
  CHECK(right.naive_max == 0);
  CHECK(right.bound_max <= usual.bound_max);
  one.got[5] += 0.01;
  CHECK_FALSE(judge_gradient(one).ok);
}

}  // namespace

TEST_CASE("gradient rule: an element that is left out widens no bound") {
  for (const double odd : {kInf, -kInf, kNan}) {
    CAPTURE(odd);
    ComparedGradient overflowing = with_huge_element(odd);
    overflowing.overflow[kOdd] = GradientSizes::kMayBeInfinite;
    require_left_out(overflowing);
    ComparedGradient spread = with_huge_element(odd);
    spread.spread[kOdd] = 1;
    require_left_out(spread);
    CHECK_FALSE(judge_gradient(with_huge_element(odd)).ok);
  }
  for (const double any : {kNan, 0.0, 3e37}) {
    CAPTURE(any);
    ComparedGradient unknown = with_huge_element(any);
    unknown.overflow[kOdd] = GradientSizes::kUnknown;
    require_left_out(unknown);
  }
}

TEST_CASE("gradient rule: a finite element that may overflow is judged") {
  ComparedGradient one = with_huge_element(3e37);
  one.overflow[kOdd] = GradientSizes::kMayBeInfinite;
  CHECK(judge_gradient(one).ok);
  CHECK(judge_gradient(one).overflow == 0);
  one.got[kOdd] = 0;
  CHECK_FALSE(judge_gradient(one).ok);
}

TEST_CASE("gradient rule: a finite element that may overflow widens no bound of the others") {
  ComparedGradient one = with_huge_element(3e37);
  one.overflow[kOdd] = GradientSizes::kMayBeInfinite;
  one.got[5] += 0.01;
  CHECK_FALSE(judge_gradient(one).ok);
}

TEST_CASE("gradient rule: what an element may be off by for its rows' scores is its own") {
  ComparedGradient one = sound();
  one.own[kOdd] = 100;
  one.got[kOdd] += 90;
  CHECK(judge_gradient(one).ok);
  one.got[5] += 0.01;
  CHECK_FALSE(judge_gradient(one).ok);
}

TEST_CASE("gradient rule: an infinite reference widens no bound") {
  ComparedGradient one = with_huge_element(kInf);
  one.dtype = one.dtype_of_terms = f16;
  const GradientVerdict right = judge_gradient(one);
  CAPTURE(right.reasons);
  CHECK(right.ok);
  CHECK(right.bound_max < 0.1);
  one.got[5] += 0.1;
  CHECK_FALSE(judge_gradient(one).ok);
}

TEST_CASE("gradient rule: where all elements are left out it says so") {
  ComparedGradient one = sound();
  one.overflow.assign(8, GradientSizes::kUnknown);
  const GradientVerdict nothing = judge_gradient(one);
  CHECK(nothing.ok);
  CHECK(nothing.says_nothing());
  CHECK_FALSE(nothing.shows_right());
  CHECK(nothing.why_not_right("d_bias").size() == 1);
  one.overflow[kOdd] = 0;
  const GradientVerdict little = judge_gradient(one);
  CHECK(little.judged() == 1);
  CHECK(little.shows_right());
  CHECK(little.why_not_right("d_bias").empty());
}

TEST_CASE("gradient rule: an error that a kink allows is shown, with the bound that allows it") {
  ComparedGradient one = sound();
  one.ambiguous[kOdd] = 0.5;
  one.got[kOdd] += 0.25;
  const GradientVerdict right = judge_gradient(one);
  CHECK(right.ok);
  CHECK(right.error_max == 0.25);
  CHECK(right.bound_max > 0.5);
  CHECK(right.error_rms > 0.08);
  CHECK(right.bound_rms >= right.error_rms);
  one.got[kOdd] += 0.26;
  CHECK_FALSE(judge_gradient(one).ok);
}

TEST_CASE("gradient rule: zeros that no kept score reaches show nothing of the others") {
  ComparedGradient one = sound();
  for (std::size_t i = 0; i < 8; ++i) {
    if (i < 4) {
      one.overflow[i] = GradientSizes::kUnknown;
    } else {
      one.terms[i] = one.got[i] = one.reference[i] = one.naive[0][i] = 0;
    }
  }
  const GradientVerdict nothing = judge_gradient(one);
  CHECK(nothing.ok);
  CHECK(nothing.unreached == 4);
  CHECK(nothing.says_nothing());
  REQUIRE(nothing.why_not_right("dk").size() == 1);
  CHECK_THAT(nothing.why_not_right("dk")[0], ContainsSubstring("that a kept score reaches"));
  one.terms[7] = 1;
  CHECK(judge_gradient(one).shows_right());
  one.terms.assign(8, 0);  // a call that keeps nothing
  one.overflow.assign(8, 0);
  one.got = one.reference = one.naive[0] = std::vector<double>(8);
  CHECK(judge_gradient(one).shows_right());
}

TEST_CASE("gradient rule: a derivative that float32 does not hold is named") {
  ComparedGradient one = sound();
  one.got.assign(8, kNan);
  one.overflow.assign(8, GradientSizes::kMayBeInfinite);
  one.derivative_overflow.assign(8, 1);
  const GradientVerdict nothing = judge_gradient(one);
  CHECK(nothing.derivative_overflow == 8);
  REQUIRE(nothing.why_not_right("d_bias").size() == 1);
  CHECK_THAT(nothing.why_not_right("d_bias")[0], ContainsSubstring("derivative by bias is NaN"));
}

TEST_CASE("gradient rule: a reason that two judgements share is said once") {
  ComparedGradient one = sound();
  one.got[kOdd] = kNan;
  const GradientVerdict wrong = judge_gradient(one);
  REQUIRE(wrong.reasons.size() == 1);
  GradientVerdict both = wrong;
  take_nearer(wrong, both);
  CHECK(both.reasons == wrong.reasons);
  CHECK_FALSE(both.ok);
}

TEST_CASE("gradient rule: judged elements of a reference of NaN are counted") {
  ComparedGradient one = sound();
  one.got[kOdd] = one.reference[kOdd] = kNan;
  CHECK(judge_gradient(one).nan == 1);
  one.overflow[kOdd] = GradientSizes::kUnknown;
  CHECK(judge_gradient(one).nan == 0);
}
