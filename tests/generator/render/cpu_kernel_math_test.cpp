// The errors that docs/math.md states, measured by a sweep over floats.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/generator/cpu_kernel.hpp"
#include "tests/generator/overlaid_templates.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

using Function = void (*)(const float* x, float* y, int count);

// The functions of templates/math/elementary.hpp in loops, compiled as kernels are.
const CompiledText& functions() {
  static const CompiledText compiled = [] {
    const OverlaidTemplates loader("functions.cpp.jinja",
                                   "{% set device = \"cpu\" %}\n"
                                   "namespace tw_kernel { constexpr int kVectorBytes = 32; }\n"
                                   "#include \"cpu/vector.hpp\"\n"
                                   "#include \"math/elementary.hpp\"\n");
    std::string text = jinja::render(loader, "functions.cpp.jinja", {}).text;
    for (const std::string name : {"exp", "exp2", "log", "log2", "tanh", "sin", "cos", "tan", "erf",
                                   "erfc", "log1p", "expm1"}) {
      text += "extern \"C\" TW_EXPORT void test_" + name +
              "(const float* x, float* y, int count) {\n"
              "  for (int i = 0; i < count; ++i) y[i] = tw_math::" +
              name + "(x[i]);\n}\n";
    }
    text +=
        "extern \"C\" TW_EXPORT void test_exp_not_positive(const float* x, float* y, int count) {\n"
        "  for (int i = 0; i < count; ++i) y[i] = tw_kernel::exp_not_positive("
        "tw_kernel::broadcast(x[i]))[0];\n}\n";
    Spec spec{.dtype = f32, .head_dim = 16};
    return CompiledText(
        text,
        render_kernel(spec, Target::host_cpu(), KernelVariant::parse("forward"), loader).options);
  }();
  return compiled;
}

std::vector<float> call(const std::string& name, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  functions().symbol<Function>(("test_" + name).c_str())(x.data(), y.data(),
                                                         static_cast<int>(x.size()));
  return y;
}

float call(const std::string& name, float x) {
  return call(name, std::vector<float>{x})[0];
}

// Every `step`-th float between two, both of one sign.
std::vector<float> floats(float low, float high, std::uint32_t step) {
  std::uint32_t first = std::bit_cast<std::uint32_t>(low),
                last = std::bit_cast<std::uint32_t>(high);
  if (first > last) std::swap(first, last);
  std::vector<float> values;
  for (std::uint64_t bits = first; bits <= last; bits += step) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  return values;
}

double unit_in_last_place(double x) {
  const int exponent = x == 0 ? -126 : std::max(std::ilogb(x), -126);
  return std::ldexp(1.0, exponent - 23);
}

// Greatest error in units in the last place of the exact value.
double worst(const std::string& name, double (*exact)(double), const std::vector<float>& x) {
  const std::vector<float> y = call(name, x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = exact(x[i]);
    if (std::fabs(expected) > std::numeric_limits<float>::max()) continue;
    const double error = std::fabs(y[i] - expected) / unit_in_last_place(expected);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

constexpr std::uint32_t kStep = 251;

}  // namespace

TEST_CASE("cpu math: exp and exp2 within 2 ulp, subnormal results included") {
  double error = 0;
  for (const float end : {88.7f, -103.9f}) {
    error = std::max(error, worst("exp", std::exp, floats(std::copysign(1e-30f, end), end, kStep)));
  }
  CAPTURE(error);
  CHECK(error < 1.5);
  error = 0;
  for (const float end : {127.99f, -148.9f}) {
    error =
        std::max(error, worst("exp2", std::exp2, floats(std::copysign(1e-30f, end), end, kStep)));
  }
  CAPTURE(error);
  CHECK(error < 1.5);
}

TEST_CASE("cpu math: the softmax's exp within 2 ulp while it matters, 0 below") {
  CHECK(worst("exp_not_positive", std::exp, floats(-1e-30f, -10.0f, kStep)) < 3);
  CHECK(worst("exp_not_positive", std::exp, floats(-10.0f, -86.9f, kStep)) < 6);
  CHECK(call("exp_not_positive", 0.0f) == 1.0f);
  for (float x = -86.5f; x > -90.0f; x -= 0.001f) {
    const float p = call("exp_not_positive", x);
    CHECK((p == 0.0f || std::isnormal(p)));
  }
  CHECK(call("exp_not_positive", -88.0f) == 0.0f);
  CHECK(call("exp_not_positive", -INFINITY) == 0.0f);
  CHECK(std::isnan(call("exp_not_positive", NAN)));
}

TEST_CASE("cpu math: log and log2 within 2 ulp, subnormal arguments included") {
  const std::vector<float> all = floats(1e-45f, std::numeric_limits<float>::max(), kStep);
  CHECK(worst("log", std::log, all) < 2);
  CHECK(worst("log2", std::log2, all) < 2);
  CHECK(worst("log", std::log, floats(0.9f, 1.1f, 1)) < 2);
  CHECK(worst("log2", std::log2, floats(0.9f, 1.1f, 1)) < 2);
}

TEST_CASE("cpu math: tanh within 4 ulp") {
  CHECK(worst("tanh", std::tanh, floats(1e-38f, 20.0f, kStep)) < 4);
  CHECK(worst("tanh", std::tanh, floats(-1e-38f, -20.0f, kStep)) < 4);
}

TEST_CASE("cpu math: sin and cos to 2e-7 up to 1e5") {
  for (const std::string name : {"sin", "cos"}) {
    const std::vector<float> x = floats(1e-6f, 1e5f, kStep);
    const std::vector<float> y = call(name, x);
    double error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = name == "sin" ? std::sin(double{x[i]}) : std::cos(double{x[i]});
      error = std::max(error, std::fabs(y[i] - exact));
    }
    CAPTURE(name, error);
    CHECK(error < 2e-7);
  }
  CHECK(worst("tan", std::tan, floats(1e-6f, 1.5f, kStep)) < 5);
}

TEST_CASE("cpu math: erf within 2 ulp and erfc within 6, subnormal results included") {
  for (const float end : {1e38f, -1e38f}) {
    const std::vector<float> x = floats(std::copysign(1e-45f, end), end, kStep);
    CHECK(worst("erf", std::erf, x) < 1.5);
    CHECK(worst("erfc", std::erfc, x) < 6);
  }
  CHECK(call("erfc", 10.0f) > 0);
  CHECK(call("erfc", 10.1f) == 0);
}

TEST_CASE("cpu math: log1p and expm1 within 2 ulp, next to 0 too") {
  for (const float end : {std::numeric_limits<float>::max(), -0.99999994f}) {
    CHECK(worst("log1p", std::log1p, floats(std::copysign(1e-45f, end), end, kStep)) < 2);
  }
  for (const float end : {88.72f, -200.0f}) {
    CHECK(worst("expm1", std::expm1, floats(std::copysign(1e-45f, end), end, kStep)) < 2);
  }
}

TEST_CASE("cpu math: infinities, NaN, zeros and overflow") {
  const float infinity = INFINITY;
  for (const std::string name : {"exp", "exp2", "log", "log2", "tanh", "sin", "cos", "tan", "erf",
                                 "erfc", "log1p", "expm1"}) {
    CAPTURE(name);
    CHECK(std::isnan(call(name, NAN)));
  }
  for (const std::string name : {"exp", "exp2"}) {
    CHECK(call(name, infinity) == infinity);
    CHECK(call(name, -infinity) == 0.0f);
    CHECK(call(name, 0.0f) == 1.0f);
    CHECK(call(name, -0.0f) == 1.0f);
    CHECK(call(name, 130.0f) == infinity);
    CHECK(call(name, 3e38f) == infinity);
    CHECK(call(name, -3e38f) == 0.0f);
  }
  for (const std::string name : {"log", "log2"}) {
    CHECK(call(name, 0.0f) == -infinity);
    CHECK(call(name, -0.0f) == -infinity);
    CHECK(call(name, infinity) == infinity);
    CHECK(std::isnan(call(name, -1.0f)));
    CHECK(std::isnan(call(name, -infinity)));
    CHECK(call(name, 1.0f) == 0.0f);
  }
  for (const std::string name : {"erf", "log1p", "expm1"}) {
    CHECK(call(name, 0.0f) == 0.0f);
    CHECK(std::signbit(call(name, -0.0f)));
  }
  CHECK(call("erf", infinity) == 1.0f);
  CHECK(call("erf", -infinity) == -1.0f);
  CHECK(call("erfc", infinity) == 0.0f);
  CHECK(call("erfc", -infinity) == 2.0f);
  CHECK(call("erfc", 0.0f) == 1.0f);
  CHECK(call("log1p", infinity) == infinity);
  CHECK(call("log1p", -1.0f) == -infinity);
  CHECK(std::isnan(call("log1p", -1.5f)));
  CHECK(call("expm1", infinity) == infinity);
  CHECK(call("expm1", 88.73f) == infinity);
  CHECK(call("expm1", -infinity) == -1.0f);
  CHECK(call("exp2", 10.0f) == 1024.0f);
  CHECK(call("log2", 1024.0f) == 10.0f);
  CHECK(call("tanh", infinity) == 1.0f);
  CHECK(call("tanh", -infinity) == -1.0f);
  CHECK(std::signbit(call("tanh", -0.0f)));
  CHECK(call("tanh", 1e-40f) == 1e-40f);
  CHECK(std::isnan(call("sin", infinity)));
  CHECK(std::isnan(call("cos", -infinity)));
}
