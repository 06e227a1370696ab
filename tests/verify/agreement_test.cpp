#include "verify/agreement.hpp"

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/limits.hpp"

using namespace tilewright;
using namespace tilewright::verify;

namespace {

// Two devices whose out may be 0.1 and 0.2 off; lse in float32, so about 4e-5 each.
struct Two {
  Two() {
    reference.out = Values::zeros(1, 2, 4, 8);
    reference.lse = Values::zeros(1, 2, 4, 1);
    first = second = reference;
    set_bounds(0.1, 0.2);
  }

  void set_bounds(double of_first, double of_second) {
    first_verdict.out_bounds = second_verdict.out_bounds = reference.out;
    for (double& bound : first_verdict.out_bounds.data) bound = of_first;
    for (double& bound : second_verdict.out_bounds.data) bound = of_second;
  }

  Agreement compared() const {
    const Rule rule{.dtype = f32, .out_dtype = f32};
    return compare({first, reference, first_verdict, rule},
                   {second, reference, second_verdict, rule});
  }

  AttentionValues reference, first, second;
  Verdict first_verdict, second_verdict;
};

}  // namespace

TEST_CASE("agreement: two devices may be apart by both bounds together, and no more") {
  Two two;
  two.first.out.data[5] = 0.14;
  two.second.out.data[5] = -0.15;
  const Agreement near = two.compared();
  REQUIRE(near.ok);
  REQUIRE_THAT(near.difference, Catch::Matchers::WithinAbs(0.29, 1e-12));
  REQUIRE_THAT(near.bound, Catch::Matchers::WithinAbs(0.3, 1e-12));

  two.second.out.data[5] = -0.17;
  REQUIRE_FALSE(two.compared().ok);
  REQUIRE(two.compared().reasons.size() == 1);
}

TEST_CASE("agreement: lse is compared row by row") {
  Two two;
  two.reference.lse.data[3] = two.first.lse.data[3] = 1000;  // a bound of 0.04 for each device
  two.second.lse.data[3] = 1000.079;
  REQUIRE(two.compared().ok);
  REQUIRE_THAT(two.compared().lse_bound, Catch::Matchers::WithinAbs(0.08, 1e-12));
  two.second.lse.data[2] = 0.001;
  REQUIRE_FALSE(two.compared().ok);
}

TEST_CASE("agreement: one device may overflow where the other is just below") {
  Two two;
  const Rule rule{.dtype = f16, .out_dtype = f16};
  const auto agree = [&](double first, double second, double reference) {
    two.reference.out.data[5] = reference;
    two.first.out.data[5] = first;
    two.second.out.data[5] = second;
    two.set_bounds(100, 100);
    return compare({two.first, two.reference, two.first_verdict, rule},
                   {two.second, two.reference, two.second_verdict, rule})
        .ok;
  };
  CHECK(agree(kInf, 65504, 65519));
  CHECK(agree(-65504, -kInf, -65519));
  CHECK_FALSE(agree(-kInf, 65504, 65519));
  CHECK_FALSE(agree(kInf, 65000, 65000));
}

TEST_CASE("agreement: no number agrees with nothing where the reference is finite") {
  Two two;
  two.second.out.data[0] = kNan;
  REQUIRE_FALSE(two.compared().ok);
  two.first.out.data[0] = kNan;
  REQUIRE_FALSE(two.compared().ok);
  two.reference.out.data[0] = kNan;  // there each is judged by its pattern
  REQUIRE(two.compared().ok);
  two.second.lse.data[1] = kInf;
  REQUIRE_FALSE(two.compared().ok);
}

TEST_CASE("agreement: what either device leaves out is not compared, and all else is") {
  Two two;
  AttentionValues of_first = two.reference, of_second = two.reference;
  two.first.out.data[0] = of_first.out.data[0] = kNan;
  two.second.out.data[1] = of_second.out.data[1] = kNan;
  two.first.lse.data[0] = of_first.lse.data[0] = kNan;
  two.second.lse.data[1] = of_second.lse.data[1] = kNan;
  two.second.out.data[0] = two.first.out.data[1] = 1e36;
  two.second.lse.data[0] = two.first.lse.data[1] = 1e36;
  const auto compared = [&] {
    const Rule rule{.dtype = f32, .out_dtype = f32};
    return compare({two.first, of_first, two.first_verdict, rule},
                   {two.second, of_second, two.second_verdict, rule});
  };
  CHECK(compared().ok);
  CHECK(compared().difference == 0);
  two.second.out.data[2] = 0.4;
  two.first.lse.data[2] = 0.4;
  CHECK(compared().reasons.size() == 2);
}

TEST_CASE("agreement: results of other sizes are refused") {
  Two two;
  two.second.out = Values::zeros(1, 2, 4, 4);
  REQUIRE_THROWS_AS(two.compared(), Error);
  two.second.out = two.reference.out;
  const AttentionValues shorter{.out = Values::zeros(1, 2, 3, 8)};
  const Rule rule{.dtype = f32, .out_dtype = f32};
  REQUIRE_THROWS_AS(compare({two.first, two.reference, two.first_verdict, rule},
                            {two.second, shorter, two.second_verdict, rule}),
                    Error);
}
