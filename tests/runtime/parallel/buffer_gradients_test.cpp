// Context parallel: gradients of buffers and scalars on a CPU, with ranks that are threads, against
// the undivided call.
#include <algorithm>
#include <map>
#include <string>

#include "tests/support/divided_gradients.hpp"

namespace tilewright {
namespace {

using test::Rank;
using test::RankGradients;
using test::RankTensors;
using test::WholeCall;
using test::WholeGradients;

// Each P is off by at most 400 * 2^-24 in either call (divided_gradients.hpp), and sums of many
// terms cancel. The share of one rank is far more.
constexpr double kShareOfGreatest = 0x1p-10;

const Shape kShape = {.batch = 1, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 203, .kv_len = 203};

Spec many_buffers() {
  return {.dtype = f32,
          .head_dim = 16,
          .score_mod = R"(
            float s = cap * tanh(score / cap) + slopes[h] * 0.01f * (kv_idx - q_idx);
            return s + bias[kv_idx - q_idx + 203] + column[kv_idx] * row[q_idx] + one(0, h);)",
          .mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 150",
          .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                      {"bias", {.dtype = f32, .shape = {FreeDim{}}}},
                      {"column", {.dtype = f32, .shape = {NamedDim::kv_len}}},
                      {"row", {.dtype = f16, .shape = {NamedDim::q_len}}},
                      {"one", {.dtype = f32, .shape = {NamedDim::batch, NamedDim::num_q_heads}}}},
          .scalars = {{"cap", {.dtype = f32, .default_value = 5}}},
          .block = {16, 16},
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v", "slopes", "bias", "column", "row", "one", "cap"}};
}

// Tensors of the names, and of their gradients.
struct Named {
  std::map<std::string, Tensor> tensors;

  static Named inputs() {
    Named made;
    Tensor row = packed_calls::random_tensor({203}, 14);
    made.tensors["slopes"] = packed_calls::random_tensor({4}, 11);
    made.tensors["bias"] = packed_calls::random_tensor({406}, 12);
    made.tensors["column"] = packed_calls::random_tensor({203}, 13);
    made.tensors["row"] = packed_calls::in_dtype(row, f16);
    made.tensors["one"] = packed_calls::random_tensor({1, 1}, 15);
    return made;
  }

  static Named gradients() {
    Named made;
    for (const auto& [name, tensor] : inputs().tensors) {
      made.tensors[name] = Tensor::zeros(f32, tensor.shape());
    }
    made.tensors["cap"] = Tensor::zeros(f32, {1});
    for (auto& [name, tensor] : made.tensors) packed_calls::fill(tensor, packed_calls::kPoison);
    return made;
  }

  std::map<std::string, TensorView> views() const { return {tensors.begin(), tensors.end()}; }
};

struct Undivided {
  WholeCall call;
  Named named = Named::gradients();

  explicit Undivided(const Spec& spec) : call(spec, kShape) {
    const Attention attention(spec, {.device = Device::cpu()});
    const Named inputs = Named::inputs();
    const Bindings bindings = attention.bind({.buffers = inputs.views()});
    const BlockMask mask = attention.block_mask(kShape, bindings, {.transposed = true});
    attention.forward(call.tensors(), mask, bindings);
    const WholeGradients gradients(call);
    attention.backward(gradients.tensors(call), mask, bindings, named.views());
  }
};

// Backward of a rank, with the whole's out and lse.
void run_rank(const ContextParallel& context, const ContextPlan& plan, const Bindings& bindings,
              const WholeCall& call, const GradientBuffers& named) {
  RankTensors own(call, plan);
  const RankGradients gradients(call, WholeGradients(call), own, plan);
  packed_calls::Workspace forward(context.workspace_size(plan));
  context.forward(own.tensors(), plan, bindings, {.workspace = forward.view()});
  packed_calls::Workspace memory(context.workspace_size(plan, Pass::backward));
  std::memset(memory.view().data, 0xff, static_cast<std::size_t>(memory.view().bytes()));
  context.backward(gradients.tensors(own), plan, bindings, named, {.workspace = memory.view()});
}

double greatest_magnitude(const Tensor& tensor) {
  return test::distance(tensor, Tensor::zeros(f32, tensor.shape()));
}

bool has_equal_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

}  // namespace

TEST_CASE("context parallel: gradients of buffers and scalars over 1, 2, 3, 4 and 8 ranks") {
  const int size = GENERATE(1, 2, 3, 4, 8);
  const Spec spec = many_buffers();
  const Undivided wanted(spec);
  for (const Sharding sharding : {Sharding::zigzag, Sharding::contiguous}) {
    std::vector<Named> got;
    for (int rank = 0; rank < size; ++rank) got.push_back(Named::gradients());
    for (const std::string& error : test::run_ranks(size, [&](Rank& rank) {
           const ContextParallel context = rank.context(spec);
           const Named inputs = Named::inputs();
           const Bindings bindings = context.bind(kShape, {.buffers = inputs.views()});
           const ContextPlan plan = context.plan(kShape, bindings, {.sharding = sharding});
           const std::int64_t before = rank.loopback->sent();
           run_rank(context, plan, bindings, wanted.call,
                    got[static_cast<std::size_t>(rank.rank)].views());
           const ContextTraffic traffic = plan.traffic();
           if (rank.loopback->sent() - before != traffic.bytes_sent + traffic.backward_bytes_sent) {
             throw std::runtime_error("the plan counts other bytes than were sent");
           }
         })) {
      REQUIRE(error == "");
    }
    for (const auto& [name, tensor] : wanted.named.tensors) {
      CAPTURE(size, name, to_string(sharding));
      CHECK(test::distance(got[0].tensors.at(name), tensor) <=
            kShareOfGreatest * greatest_magnitude(tensor));
      for (const Named& rank : got) {
        CHECK(has_equal_bits(rank.tensors.at(name), got[0].tensors.at(name)));
      }
    }
  }
}

TEST_CASE("context parallel: a gradient of 16 bits goes into a tensor of any strides") {
  Spec spec = {.dtype = f32,
               .head_dim = 16,
               .score_mod = "score + x(b, h, q_idx, kv_idx, 0)",
               .buffers = {{"x",
                            {.dtype = bf16,
                             .shape = {NamedDim::batch, NamedDim::num_q_heads, NamedDim::q_len,
                                       NamedDim::kv_len, std::int64_t{2}}}}},
               .outputs = {.lse = true},
               .gradients = {"x"}};
  const Shape shape = {.batch = 2, .num_q_heads = 3, .num_kv_heads = 1, .q_len = 20, .kv_len = 12};
  const WholeCall call(spec, shape);
  Tensor numbers = packed_calls::random_tensor({2, 3, 20, 12, 2}, 3);
  const Tensor x = packed_calls::in_dtype(numbers, bf16);
  const Attention attention(spec, {.device = Device::cpu()});
  const Bindings bindings = attention.bind({.buffers = {{"x", x}}});
  attention.forward(call.tensors(), bindings);
  const WholeGradients whole(call);
  BackwardTensors tensors = whole.tensors(call);
  tensors.dq.reset(), tensors.dk.reset(), tensors.dv.reset();
  Tensor wanted = Tensor::zeros(f32, x.shape());
  attention.backward(tensors, bindings, {{"x", wanted}});

  const std::vector<std::size_t> order =
      GENERATE(std::vector<std::size_t>{0, 1, 2, 3, 4}, std::vector<std::size_t>{4, 3, 2, 1, 0},
               std::vector<std::size_t>{2, 0, 4, 1, 3}, std::vector<std::size_t>{1, 0, 3, 2, 4});
  std::vector<Tensor> memory;
  std::vector<TensorView> got;
  for (int rank = 0; rank < 3; ++rank) {
    memory.push_back(Tensor::zeros(bf16, {2 * x.numel()}));
    TensorView view = x;
    view.data = memory.back().data();
    std::int64_t stride = 1;
    for (const std::size_t d : order) {
      view.strides[d] = stride;
      stride *= view.shape[d] + (d == order.front() ? 1 : 0);
    }
    got.push_back(view);
  }
  for (const std::string& error : test::run_ranks(3, [&](Rank& rank) {
         const ContextParallel context = rank.context(spec);
         const Bindings own_bindings = context.bind(shape, {.buffers = {{"x", x}}});
         const ContextPlan plan = context.plan(shape, own_bindings);
         const RankTensors own(call, plan);
         const RankGradients gradients(call, whole, own, plan);
         packed_calls::Workspace forward(context.workspace_size(plan));
         context.forward(own.tensors(), plan, own_bindings, {.workspace = forward.view()});
         BackwardTensors own_tensors = gradients.tensors(own);
         own_tensors.dq.reset(), own_tensors.dk.reset(), own_tensors.dv.reset();
         packed_calls::Workspace more(context.workspace_size(plan, Pass::backward));
         context.backward(own_tensors, plan, own_bindings,
                          {{"x", got[static_cast<std::size_t>(rank.rank)]}},
                          {.workspace = more.view()});
       })) {
    REQUIRE(error == "");
  }
  const double bound = kShareOfGreatest * greatest_magnitude(wanted) + 0x1p-8;
  for (const TensorView& view : got) {
    CHECK(test::distance(Tensor::copy_of(view), wanted) <= bound * greatest_magnitude(wanted));
  }
}

TEST_CASE("context parallel: gradients of buffers that are refused name the rank") {
  const Spec spec = many_buffers();
  const WholeCall call(spec, kShape);
  const std::vector<std::string> errors = test::run_ranks(4, [&](Rank& rank) {
    const ContextParallel context = rank.context(spec);
    const Named inputs = Named::inputs();
    Named gradients = Named::gradients();
    const Bindings bindings = context.bind(kShape, {.buffers = inputs.views()});
    const ContextPlan plan = context.plan(kShape, bindings);
    Bindings given = bindings;
    if (rank.rank == 0) gradients.tensors.erase("bias");
    if (rank.rank == 1) gradients.tensors["slopes"] = Tensor::zeros(f32, {5});
    const Tensor shorter = packed_calls::random_tensor({300}, 12);
    if (rank.rank == 2) {
      std::map<std::string, TensorView> other = inputs.views();
      other["bias"] = shorter;
      given = context.bind(kShape, {.buffers = other});
    }
    GradientBuffers views = gradients.views();
    if (rank.rank == 3) views["bias"] = inputs.tensors.at("bias");
    const RankTensors own(call, plan);
    const RankGradients rows(call, WholeGradients(call), own, plan);
    packed_calls::Workspace memory(context.workspace_size(plan, Pass::backward));
    context.backward(rows.tensors(own), plan, given, views, {.workspace = memory.view()});
  });
  CHECK_THAT(errors[0], Catch::Contains("error[tensor]: rank 0: d_bias is missing"));
  CHECK_THAT(errors[1], Catch::Contains("rank 1: d_slopes does not have the shape of buffer"));
  CHECK_THAT(errors[2], Catch::Contains("rank 2: buffer \"bias\" is f32 [300], and the plan was "
                                        "made with one of [406]"));
  CHECK_THAT(errors[3], Catch::Contains("rank 3: d_bias overlaps buffer \"bias\" in memory"));
}

}  // namespace tilewright
