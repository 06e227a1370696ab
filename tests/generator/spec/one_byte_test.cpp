#include <functional>
#include <string>

#include "base/error.hpp"
#include "generator/spec/spec.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

// What is wrong with a spec, or "accepted".
std::string fault(const std::function<void(Spec&)>& change) {
  Spec spec{.dtype = bf16, .head_dim = 64, .k_scale = "0.5f", .v_scale = "1.0f"};
  change(spec);
  try {
    validate(spec);
  } catch (const Error& error) {
    return error.message() + " / " + error.hint();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("spec: k and v of one byte have scales") {
  for (const DType dtype : {f8e4m3, f8e5m2, i8}) {
    CHECK(fault([&](Spec& s) { s.kv_dtype = dtype; }) == "accepted");
    CHECK(fault([&](Spec& s) {
            s.kv_dtype = dtype;
            s.dtype = f32;
          }) == "accepted");
  }
  CHECK(fault([](Spec& s) {
          s.kv_dtype = f8e4m3;
          s.k_scale = "";
        }) ==
        "kv_dtype is \"f8e4m3\", and k_scale is missing / add \"k_scale\": \"1.0f\" if the "
        "values are stored as they are");
  CHECK(fault([](Spec& s) {
          s.kv_dtype = i8;
          s.v_scale = "";
        }) ==
        "kv_dtype is \"i8\", and v_scale is missing / add \"v_scale\": \"1.0f\" if the "
        "values are stored as they are");
}

TEST_CASE("spec: q of f8e4m3 has k and v of f8e4m3, a scale and an out_dtype") {
  const auto f8 = [](Spec& s) {
    s.dtype = f8e4m3;
    s.out_dtype = bf16;
    s.q_scale = "1.0f";
  };
  CHECK(fault(f8) == "accepted");
  CHECK(fault([&](Spec& s) {
          f8(s);
          s.out_dtype.reset();
        }) ==
        "dtype is \"f8e4m3\", and out_dtype is missing / add \"out_dtype\": \"f32\", \"f16\", "
        "\"bf16\" or \"f8e4m3\"");
  CHECK(fault([&](Spec& s) {
          f8(s);
          s.kv_dtype = f8e5m2;
        }) ==
        "kv_dtype is \"f8e5m2\", but q is \"f8e4m3\" / with dtype \"f8e4m3\" k and v are "
        "f8e4m3 too: leave kv_dtype out");
  CHECK(fault([&](Spec& s) {
          f8(s);
          s.q_scale = "";
        }) ==
        "dtype is \"f8e4m3\", and q_scale is missing / add \"q_scale\": \"1.0f\" if the "
        "values are stored as they are");
  CHECK(fault([](Spec& s) { s.dtype = f8e5m2; }) ==
        "dtype is \"f8e5m2\", but must be \"f32\", \"f16\", \"bf16\" or \"f8e4m3\" / ");
}

TEST_CASE("spec: an f8 out has out_scale, and no other out has") {
  CHECK(fault([](Spec& s) { s.out_dtype = f8e4m3; }) ==
        "out_dtype is \"f8e4m3\", and out_scale is missing / add \"out_scale\": \"1.0f\" if the "
        "values are stored as they are");
  CHECK(fault([](Spec& s) {
          s.out_dtype = f8e4m3;
          s.out_scale = "0.5f";
        }) == "accepted");
  CHECK(fault([](Spec& s) { s.out_scale = "0.5f"; }) ==
        "the spec has out_scale, but out is bf16, which is stored without one / leave out_scale "
        "out: it goes with an f8 out_dtype");
}

TEST_CASE("spec: buffers have no elements of float8") {
  for (const DType dtype : {f8e4m3, f8e5m2}) {
    const std::string found = fault([&](Spec& s) {
      s.buffers = {{"x", {.dtype = dtype, .shape = {1}}}};
    });
    CHECK(found.starts_with("buffers.x.dtype is \"" + std::string(to_string(dtype)) +
                            "\", but must be \"f32\", \"f16\""));
  }
}
