#include "runtime/api/backward.hpp"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;

// A tensor with its values; in f16 and bf16 they are rounded.
struct Values {
  Values(DType type, std::vector<std::int64_t> extents, const std::string& stream) {
    tensor = Tensor::zeros(type, extents);
    data.resize(static_cast<std::size_t>(tensor.view().numel()));
    std::seed_seq seed(stream.begin(), stream.end());
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < data.size(); ++i) set(i, normal(random));
  }

  void set(std::size_t i, double value) {
    write_element(tensor.data(), tensor.view().dtype, static_cast<std::int64_t>(i), value);
    data[i] = read_element(tensor.data(), tensor.view().dtype, static_cast<std::int64_t>(i));
  }

  double got(std::size_t i) const {
    return read_element(tensor.data(), tensor.view().dtype, static_cast<std::int64_t>(i));
  }

  Tensor tensor;
  std::vector<double> data;
};

struct Element {
  std::int64_t b, h, q_idx, kv_idx;
};

// A variant in words of C++, and as a spec.
struct Variant {
  std::string score_mod, mask_mod;
  std::function<double(double score, const Element&,
                       const std::map<std::string, std::vector<double>>&)>
      mod = [](double score, const Element&, const auto&) { return score; };
  std::function<bool(const Element&)> keep = [](const Element&) { return true; };
  std::map<std::string, std::vector<std::int64_t>> buffers = {};  // f32
  double cap = 0;                                                 // 0: no scalar
  bool has_dlse = false;
  DType dtype = f32;
  Layout layout = Layout::bhsd;
  std::int64_t kv_batch = 2, kv_heads = 1, q_len = 45, kv_len = 70;
  std::int64_t q_offset = 0, kv_offset = 0;
  double scale = 0.25;
  std::int64_t head_dim = 16, value_dim = 24;
};

// One call of a variant: batch 2, 2 heads. Gradients against central differences of a loss in
// double,
//   loss = sum of out * dout + lse * dlse
class Call {
 public:
  explicit Call(const Variant& variant) : variant_(variant) {
    const auto shape = [&](std::int64_t batch, std::int64_t heads, std::int64_t rows,
                           std::int64_t width) {
      return variant.layout == Layout::bhsd ? std::vector<std::int64_t>{batch, heads, rows, width}
                                            : std::vector<std::int64_t>{batch, rows, heads, width};
    };
    add("q", shape(2, 2, variant.q_len, variant.head_dim), variant.dtype);
    add("k", shape(variant.kv_batch, variant.kv_heads, variant.kv_len, variant.head_dim),
        variant.dtype);
    add("v", shape(variant.kv_batch, variant.kv_heads, variant.kv_len, variant.value_dim),
        variant.dtype);
    add("dout", shape(2, 2, variant.q_len, variant.value_dim), variant.dtype);
    add("out", shape(2, 2, variant.q_len, variant.value_dim), variant.dtype);
    add("dlse", {2, 2, variant.q_len}, f32);
    add("lse", {2, 2, variant.q_len}, f32);
    spec_ = {.dtype = variant.dtype,
             .head_dim = variant.head_dim,
             .v_head_dim = variant.value_dim,
             .layout = variant.layout,
             .score_mod = variant.score_mod,
             .mask_mod = variant.mask_mod,
             .block = {32, 48},
             .outputs = {.lse = true},
             .gradients = {"q", "k", "v"}};
    for (const auto& [name, extents] : variant.buffers) {
      add(name, extents, f32);
      std::vector<BufferDim> dims(extents.begin(), extents.end());
      spec_.buffers[name] = {.dtype = f32, .shape = dims};
      spec_.gradients.push_back(name);
      inputs_.buffers.emplace(name, tensor(name).tensor);
    }
    if (variant.cap != 0) {
      spec_.scalars["cap"] = {.dtype = f32};
      spec_.gradients.push_back("cap");
      inputs_.scalars["cap"] = variant.cap;
    }
  }

  Values& tensor(const std::string& name) { return tensors_.at(name); }
  Spec& spec() { return spec_; }

  void run() {
    const Attention attention(spec_, {.device = Device::cpu()});
    const Bindings bindings = attention.bind(inputs_);
    const Shape shape{.batch = 2,
                      .num_q_heads = 2,
                      .num_kv_heads = variant_.kv_heads,
                      .q_len = variant_.q_len,
                      .kv_len = variant_.kv_len,
                      .q_offset = variant_.q_offset,
                      .kv_offset = variant_.kv_offset};
    for (const char* const name : {"q", "k", "v"}) {
      grads_.emplace(name, Values(variant_.dtype, extents(name), "poison"));
    }
    GradientBuffers buffers;
    for (const auto& [name, dims] : variant_.buffers) {
      grads_.emplace(name, Values(f32, dims, "poison"));
      buffers.emplace(name, grads_.at(name).tensor);
    }
    if (variant_.cap != 0) {
      grads_.emplace("cap", Values(f32, {}, "poison"));
      buffers.emplace("cap", grads_.at("cap").tensor);
    }
    const ForwardTensors forward{.q = tensor("q").tensor,
                                 .k = tensor("k").tensor,
                                 .v = tensor("v").tensor,
                                 .out = tensor("out").tensor,
                                 .lse = tensor("lse").tensor};
    const ForwardOptions options{
        .q_offset = variant_.q_offset, .kv_offset = variant_.kv_offset, .scale = variant_.scale};
    BackwardTensors tensors{.q = forward.q,
                            .k = forward.k,
                            .v = forward.v,
                            .out = forward.out,
                            .lse = *forward.lse,
                            .dout = tensor("dout").tensor,
                            .dq = grads_.at("q").tensor,
                            .dk = grads_.at("k").tensor,
                            .dv = grads_.at("v").tensor};
    if (variant_.has_dlse) tensors.dlse = tensor("dlse").tensor;
    const BackwardOptions backward{
        .q_offset = variant_.q_offset, .kv_offset = variant_.kv_offset, .scale = variant_.scale};
    if (variant_.mask_mod.empty()) {
      attention.forward(forward, bindings, options);
      attention.backward(tensors, bindings, buffers, backward);
    } else {
      const BlockMask mask = attention.block_mask(shape, bindings, {.transposed = true});
      attention.forward(forward, mask, bindings, options);
      attention.backward(tensors, mask, bindings, buffers, backward);
    }
  }

  // Of a sample of elements of each gradient.
  void check(double tolerance) {
    for (const auto& [name, gradient] : grads_) {
      const std::size_t count = gradient.data.size();
      for (std::size_t i = 0; i < count; i += 1 + count / 4) {
        INFO(name << "[" << i << "]");
        const double wanted = difference(name, i);
        CHECK(std::fabs(gradient.got(i) - wanted) <= tolerance * (1 + std::fabs(wanted)));
      }
    }
  }

  const Values& gradient(const std::string& name) const { return grads_.at(name); }

 private:
  void add(const std::string& name, const std::vector<std::int64_t>& extents, DType dtype) {
    tensors_.emplace(name, Values(dtype, extents, name));
  }

  std::vector<std::int64_t> extents(const std::string& name) {
    const auto given = tensor(name).tensor.view().extents();
    return {given.begin(), given.end()};
  }

  double difference(const std::string& name, std::size_t i) {
    const double h = 1e-4;
    double& value = name == "cap" ? variant_.cap : tensor(name).data[i];
    const double kept = value;
    value = kept + h;
    const double more = loss();
    value = kept - h;
    const double less = loss();
    value = kept;
    return (more - less) / (2 * h);
  }

  const double* row(const std::string& name, std::int64_t b, std::int64_t h, std::int64_t r) {
    const TensorView view = tensor(name).tensor.view();
    if (view.shape[0] == 1) b = 0;
    const bool is_bhsd = variant_.layout == Layout::bhsd;
    return tensor(name).data.data() + b * view.strides[0] + h * view.strides[is_bhsd ? 1 : 2] +
           r * view.strides[is_bhsd ? 2 : 1];
  }

  double loss() {
    std::map<std::string, std::vector<double>> values;
    for (const auto& [name, dims] : variant_.buffers) values[name] = tensor(name).data;
    values["cap"] = {variant_.cap};
    double loss = 0;
    for (std::int64_t item = 0; item < 4 * variant_.q_len; ++item) {
      const std::int64_t r = item % variant_.q_len, h = item / variant_.q_len % 2;
      const std::int64_t b = item / variant_.q_len / 2;
      const std::int64_t h_kv = h / (2 / variant_.kv_heads);
      std::vector<double> scores(static_cast<std::size_t>(variant_.kv_len),
                                 -std::numeric_limits<double>::infinity());
      double greatest = -std::numeric_limits<double>::infinity();
      for (std::int64_t c = 0; c < variant_.kv_len; ++c) {
        const Element at{b, h, r + variant_.q_offset, c + variant_.kv_offset};
        if (!variant_.keep(at)) continue;
        double score = 0;
        for (std::int64_t d = 0; d < variant_.head_dim; ++d)
          score += row("q", b, h, r)[d] * row("k", b, h_kv, c)[d];
        score = variant_.mod(score * variant_.scale, at, values);
        scores[static_cast<std::size_t>(c)] = score;
        greatest = std::max(greatest, score);
      }
      if (std::isinf(greatest)) continue;
      double sum = 0, row_loss = 0;
      for (std::int64_t c = 0; c < variant_.kv_len; ++c) {
        const double weight = std::exp(scores[static_cast<std::size_t>(c)] - greatest);
        sum += weight;
        for (std::int64_t d = 0; weight > 0 && d < variant_.value_dim; ++d)
          row_loss += weight * row("v", b, h_kv, c)[d] * row("dout", b, h, r)[d];
      }
      loss += row_loss / sum;
      if (variant_.has_dlse)
        loss += (greatest + std::log(sum)) * tensor("dlse").data[static_cast<std::size_t>(item)];
    }
    return loss;
  }

  Variant variant_;
  Spec spec_;
  SnippetInputs inputs_;
  std::map<std::string, Values> tensors_, grads_;
};

TEST_CASE("backward: plain attention, with the gradient of lse") {
  Variant variant{.has_dlse = true, .kv_heads = 2};
  Call call(variant);
  call.run();
  call.check(1e-4);
}

TEST_CASE(
    "backward: softcap by a scalar, a causal mask with offsets, one head of k and v for two") {
  Variant variant{.score_mod = "cap * tanh(score / cap)", .mask_mod = "q_idx >= kv_idx"};
  variant.mod = [](double score, const Element&, const auto& values) {
    const double cap = values.at("cap")[0];
    return cap * std::tanh(score / cap);
  };
  // The first rows keep nothing, and the last columns are kept by no row.
  variant.keep = [](const Element& at) { return at.q_idx >= at.kv_idx; };
  variant.cap = 2;
  variant.has_dlse = true;
  variant.q_offset = 3;
  variant.kv_offset = 8;
  variant.layout = Layout::bshd;
  Call call(variant);
  call.run();
  call.check(1e-4);
  for (std::size_t i = 0; i < 5 * 2 * 16; ++i) CHECK(call.gradient("q").got(i) == 0);
  const std::size_t last = call.gradient("v").data.size();
  for (std::size_t i = last - 24; i < last; ++i) CHECK(call.gradient("v").got(i) == 0);
}

TEST_CASE("backward: buffers by several reads, branches and clamped indices; k of all batches") {
  Variant variant{
      .score_mod =
          "float t = score + bias(h, kv_idx - q_idx + 20); if (kv_idx > q_idx) { t = t * "
          "slopes[h] + slopes[1 - h]; } return t + max(score, 0) * row(b, q_idx);",
      .buffers = {{"bias", {2, 40}}, {"slopes", {2}}, {"row", {1, 45}}},
      .kv_batch = 1};
  variant.mod = [](double score, const Element& at, const auto& values) {
    const auto& slopes = values.at("slopes");
    const std::int64_t cell = std::clamp<std::int64_t>(at.kv_idx - at.q_idx + 20, 0, 39);
    double t = score + values.at("bias")[static_cast<std::size_t>(at.h * 40 + cell)];
    if (at.kv_idx > at.q_idx) {
      t = t * slopes[static_cast<std::size_t>(at.h)] + slopes[static_cast<std::size_t>(1 - at.h)];
    }
    return t + std::max(score, 0.0) * values.at("row")[static_cast<std::size_t>(at.q_idx)];
  };
  Call call(variant);
  call.run();
  call.check(2e-4);
}

TEST_CASE("backward: equal bits over runs, and 16 bits") {
  for (const DType dtype : {f16, bf16}) {
    Variant variant{
        .score_mod = "score + bias[kv_idx]", .buffers = {{"bias", {70}}}, .dtype = dtype};
    variant.mod = [](double score, const Element& at, const auto& values) {
      return score + values.at("bias")[static_cast<std::size_t>(at.kv_idx)];
    };
    Call first(variant), second(variant);
    first.run();
    second.run();
    first.check(dtype == f16 ? 4e-3 : 3e-2);
    for (const char* const name : {"q", "k", "v", "bias"}) {
      const TensorView a = first.gradient(name).tensor.view(),
                       b = second.gradient(name).tensor.view();
      CHECK(std::memcmp(a.data, b.data, static_cast<std::size_t>(a.numel()) * size_of(a.dtype)) ==
            0);
    }
  }
}

TEST_CASE("backward: dout and dlse of rows with nothing kept count as 0") {
  Variant variant{.mask_mod = "kv_idx < 30 && q_idx != 3"};
  variant.keep = [](const Element& at) { return at.kv_idx < 30 && at.q_idx != 3; };
  Call call(variant);
  for (std::size_t d = 0; d < 24; ++d) {
    call.tensor("dout").set(3 * 24 + d, std::numeric_limits<double>::quiet_NaN());
  }
  call.run();
  for (const char* const name : {"q", "k", "v"}) {
    for (std::size_t i = 0; i < call.gradient(name).data.size(); ++i) {
      REQUIRE(std::isfinite(call.gradient(name).got(i)));
    }
  }
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "nothing";
}

TEST_CASE("backward: a spec that also names max_scores or weights gives the same gradients") {
  Spec spec{.dtype = f32,
            .head_dim = 16,
            .mask_mod = "q_idx >= kv_idx",
            .outputs = {.lse = true},
            .gradients = {"q", "k", "v"}};
  const std::vector<std::int64_t> extents = {1, 2, 30, 16};
  Values q(f32, extents, "q"), k(f32, extents, "k"), v(f32, extents, "v"),
      dout(f32, extents, "dout");
  std::vector<std::vector<double>> results;
  for (const std::string other : {"none", "max_scores", "weights"}) {
    spec.outputs.max_scores = other == "max_scores";
    spec.outputs.weights = other == "weights";
    const Attention attention(spec, {.device = Device::cpu()});
    const Shape shape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .q_len = 30, .kv_len = 30};
    const BlockMask mask = attention.block_mask(shape, {}, {.transposed = true});
    Values out(f32, extents, "out"), dq(f32, extents, "a"), dk(f32, extents, "b"),
        dv(f32, extents, "c");
    Values lse(f32, {1, 2, 30}, "lse"), max_scores(f32, {1, 2, 30}, "max"),
        weights(f32, {1, 2, 30, 30}, "weights");
    ForwardTensors forward{
        .q = q.tensor, .k = k.tensor, .v = v.tensor, .out = out.tensor, .lse = lse.tensor.view()};
    if (spec.outputs.max_scores) forward.max_scores = max_scores.tensor.view();
    if (spec.outputs.weights) forward.weights = weights.tensor.view();
    attention.forward(forward, mask);
    attention.backward({.q = q.tensor,
                        .k = k.tensor,
                        .v = v.tensor,
                        .out = out.tensor,
                        .lse = lse.tensor,
                        .dout = dout.tensor,
                        .dq = dq.tensor.view(),
                        .dk = dk.tensor.view(),
                        .dv = dv.tensor.view()},
                       mask);
    std::vector<double> all;
    for (const Values* one : {&dq, &dk, &dv}) {
      for (std::size_t i = 0; i < one->data.size(); ++i) all.push_back(one->got(i));
    }
    results.push_back(std::move(all));
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}

TEST_CASE("backward: calls that do not fit are refused by the name of the tensor") {
  using Catch::Matchers::Contains;
  const Attention attention(
      {.dtype = f32,
       .head_dim = 16,
       .score_mod = "score + slopes[h]",
       .mask_mod = "q_idx >= kv_idx",
       .buffers = {{"slopes", {.dtype = f64, .shape = {NamedDim::num_q_heads}}}},
       .outputs = {.lse = true},
       .gradients = {"q", "slopes"}},
      {.device = Device::cpu()});
  const auto zeros = [] { return Tensor::zeros(f32, {1, 1, 4, 16}); };
  Tensor x = zeros(), out = zeros(), dout = zeros(), dq = zeros(), dk = zeros();
  Tensor lse = Tensor::zeros(f32, {1, 1, 4}), slopes = Tensor::zeros(f64, {1});
  Tensor d_slopes = Tensor::zeros(f32, {1});
  const Bindings bindings = attention.bind({.buffers = {{"slopes", slopes}}});
  const BlockMask plain = attention.block_mask({.q_len = 4, .kv_len = 4}, bindings);
  BackwardTensors tensors{.q = x, .k = x, .v = x, .out = out, .lse = lse, .dout = dout, .dq = dq};
  const GradientBuffers buffers = {{"slopes", d_slopes}};
  const auto run = [&](const BackwardTensors& given, const GradientBuffers& gradients) {
    return message_of([&] { attention.backward(given, plain, bindings, gradients); });
  };
  CHECK_THAT(run(tensors, buffers), Contains("no lists by columns"));
  static_cast<void>(plain.transposed());
  CHECK(run(tensors, buffers) == "nothing");
  CHECK_THAT(run(tensors, {}), Contains("d_slopes is missing"));
  CHECK_THAT(run(tensors, {{"slopes", d_slopes}, {"slope", d_slopes}}), Contains("\"slope\""));
  CHECK_THAT(run(tensors, {{"slopes", lse}}), Contains("d_slopes does not have the shape"));
  Tensor wide = Tensor::zeros(f64, {1});
  CHECK_THAT(run(tensors, {{"slopes", wide}}), Contains("d_slopes is f64, but f32 is wanted"));
  BackwardTensors wrong = tensors;
  wrong.dq.reset();
  CHECK_THAT(run(wrong, buffers), Contains("dq is missing"));
  wrong = tensors;
  wrong.dk = dk;
  CHECK_THAT(run(wrong, buffers), Contains("dk was given"));
  wrong = tensors;
  wrong.dout = {};
  CHECK_THAT(run(wrong, buffers), Contains("dout has no data"));
  wrong = tensors;
  wrong.dlse = d_slopes;
  CHECK_THAT(run(wrong, buffers), Contains("dlse does not have the shape of lse"));
  wrong = tensors;
  wrong.dq = wrong.q;
  CHECK_THAT(run(wrong, buffers), Contains("dq overlaps q"));
  CHECK_THAT(message_of([&] { attention.backward(tensors, bindings, buffers); }),
             Contains("has no block mask"));
  CHECK(attention.workspace_size({.q_len = 4, .kv_len = 4}, Pass::backward) == 0);
}

}  // namespace
