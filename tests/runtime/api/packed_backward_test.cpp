// Gradients of packed sequences on a CPU, against those of dense calls.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "tests/support/packed_gradients.hpp"

using namespace tilewright;
using namespace tilewright::packed_calls;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec gradient_spec(const std::string& score_mod, const std::string& mask_mod,
                   std::vector<std::string> gradients) {
  return {.dtype = f32,
          .head_dim = 24,
          .layout = Layout::packed,
          .score_mod = score_mod,
          .mask_mod = mask_mod,
          .block = {32, 48},
          .outputs = {.lse = true},
          .gradients = std::move(gradients)};
}

Batch batch_of(std::vector<Lengths> lengths) {
  Batch batch{.lengths = std::move(lengths), .heads = 4, .kv_heads = 2, .dim = 24};
  batch.make();
  return batch;
}

void check(GradientCase one) {
  PackedGradients calls(one);
  const Gradients first = calls.run();
  calls.compare(first, calls.dense(), 2e-5f);
  const Gradients again = calls.run();
  for (const auto of : {&Gradients::dq, &Gradients::dk, &Gradients::dv}) {
    CHECK(std::memcmp((first.*of).data(), (again.*of).data(),
                      static_cast<std::size_t>((first.*of).view().bytes())) == 0);
  }
}

const std::vector<Lengths> kLengths = {{1, 133}, {70, 70}, {0, 9}, {65, 18}, {7, 0}, {40, 201}};

}  // namespace

TEST_CASE("packed backward: gradients are those of dense calls", "[packed_backward]") {
  check({.spec = gradient_spec("", "", {"q", "k", "v"}), .batch = batch_of(kLengths)});
  check({.spec = gradient_spec("", "q_idx >= kv_idx", {"q", "k", "v"}),
         .batch = batch_of(kLengths),
         .has_dlse = false});
  check(
      {.spec = gradient_spec("", "q_idx >= kv_idx && h != 1", {"k"}), .batch = batch_of(kLengths)});
}

TEST_CASE("packed backward: gradients of buffers and scalars", "[packed_backward]") {
  Spec spec = gradient_spec(
      "cap * tanh(score / cap) * gain[h] + bias[kv_idx - q_idx + 210] + column[kv_idx] * "
      "row[q_idx + 70] + own[b * 3 + q_idx + kv_idx]",
      "q_idx >= kv_idx || kv_idx > 100",
      {"q", "k", "v", "gain", "bias", "column", "row", "own", "cap"});
  spec.buffers = {{"gain", {.dtype = f32, .shape = {std::int64_t{4}}}},
                  {"bias", {.dtype = f32, .shape = {std::int64_t{290}}}},
                  {"column", {.dtype = f32, .shape = {std::int64_t{210}}}},
                  {"row", {.dtype = f32, .shape = {std::int64_t{280}}}},
                  {"own", {.dtype = f32, .shape = {std::int64_t{400}}}}};
  spec.score_mod = spec.score_mod.replace(spec.score_mod.find("b * 3 + "), 8, "");
  spec.scalars = {{"cap", {.dtype = f32}}};
  check({.spec = spec, .batch = batch_of(kLengths)});
}

TEST_CASE("packed backward: sequences that share rows of K add up", "[packed_backward]") {
  GradientCase one{.spec = gradient_spec("", "q_idx >= kv_idx", {"q", "k", "v"}),
                   .batch = batch_of({{50, 133}, {70, 70}, {20, 90}, {33, 201}})};
  one.batch.kv_begins[2] = one.batch.kv_begins[0] + 5;
  one.batch.kv_begins[1] = one.batch.kv_begins[0] + 60;
  check(std::move(one));
}

TEST_CASE("packed backward: lists over positions", "[packed_backward]") {
  const Spec spec = gradient_spec("", "q_idx >= kv_idx && kv_idx % 7 != 3", {"q", "k", "v"});
  const BlockMask positions = lists_of_mask(spec, 256);
  check({.spec = spec,
         .batch = batch_of({{1, 133}, {70, 70}, {33, 66}, {40, 201}}),
         .positions = &positions});
}

TEST_CASE("packed backward: rows of no sequence", "[packed_backward]") {
  GradientCase one{.spec = gradient_spec("", "", {"q", "k", "v"}),
                   .batch = batch_of({{0, 9}, {4, 0}})};
  PackedGradients calls(one);
  const Gradients got = calls.run();
  for (const Tensor* tensor : {&got.dk, &got.dv}) {
    const auto* const values = static_cast<const float*>(tensor->data());
    CHECK(std::all_of(values, values + tensor->numel(), [](float x) { return x == 0; }));
  }
  const auto* const dq = static_cast<const float*>(got.dq.data());
  CHECK(dq[0] == PackedGradients::kUnwritten);
  CHECK(dq[std::int64_t{one.batch.q_begins[1]} * 4 * 24] == 0);
}

TEST_CASE("packed backward: NaN of a sequence stays in it", "[packed_backward]") {
  const std::vector<Lengths> lengths = {{10, 10}, {9, 13}, {3, 9}};
  GradientCase sound{.spec = gradient_spec("", "", {"q", "k", "v"}), .batch = batch_of(lengths)};
  GradientCase spoilt{.spec = sound.spec, .batch = batch_of(lengths), .spoilt = 1};
  const Gradients one = PackedGradients(sound).run(), other = PackedGradients(spoilt).run();
  const Batch& batch = sound.batch;
  const int begin = batch.kv_begins[1], end = begin + lengths[1].kv;
  const int total = static_cast<int>(batch.k.shape()[0]);
  for (const auto of : {&Gradients::dk, &Gradients::dv}) {
    CHECK(PackedGradients::have_equal_rows(one.*of, other.*of, 0, begin));
    CHECK(PackedGradients::have_equal_rows(one.*of, other.*of, end, total - end));
    CHECK_FALSE(PackedGradients::have_equal_rows(one.*of, other.*of, begin, lengths[1].kv));
  }
}

TEST_CASE("packed backward: what is refused", "[packed_backward]") {
  const Spec spec = gradient_spec("", "q_idx >= kv_idx", {"k"});
  const Attention attention(spec, {.device = Device::cpu()});
  Batch batch = batch_of({{5, 9}});
  const BatchTensors staged(batch, f32);
  Workspace memory(attention.workspace_size(batch.shape()));
  const auto plan_for = [&](bool backward) {
    return attention.plan(batch.shape(), staged.sequences(), {},
                          {.workspace = memory.view(), .backward = backward});
  };
  Tensor dk = Tensor::zeros(f32, batch.k.shape()), out = Tensor::zeros(f32, batch.q.shape());
  BackwardTensors tensors{.q = staged.q,
                          .k = staged.k,
                          .v = staged.v,
                          .out = out,
                          .lse = batch.lse,
                          .dout = out,
                          .dk = dk.view()};
  CHECK_THROWS_WITH(attention.backward(tensors, plan_for(false)),
                    ContainsSubstring("the plan was made for forward alone"));
  CHECK_THROWS_WITH(attention.backward(tensors),
                    ContainsSubstring("the spec is packed, and the call has no plan"));
  CHECK_NOTHROW(attention.backward(tensors, plan_for(true)));
  CHECK_THROWS_WITH(attention.backward(tensors, plan_for(true), {}, {}, {.q_offset = 1}),
                    ContainsSubstring("a packed call takes no offsets"));
  const PackedShape shape = batch.shape();
  CHECK(attention.workspace_size(shape, Pass::backward) == 0);
  CHECK_THROWS_WITH(attention.workspace_size(Shape{}, Pass::backward),
                    ContainsSubstring("the spec is packed, and the shape is one of dense calls"));
  tensors.dk = TensorView::contiguous(memory.view().data, f32, batch.k.shape());
  CHECK_THROWS_AS(attention.backward(tensors, plan_for(true)), Error);
  tensors.dk = TensorView::contiguous(dk.data(), f32, {batch.k.shape()[0] - 1, 2, 24});
  CHECK_THROWS_WITH(attention.backward(tensors, plan_for(true)),
                    ContainsSubstring("dk does not have the shape of k"));
  Spec forward_alone = spec;
  forward_alone.gradients.clear();
  const Attention other(forward_alone, {.device = Device::cpu()});
  CHECK_THROWS_WITH(other.plan(batch.shape(), staged.sequences(), {},
                               {.workspace = memory.view(), .backward = true}),
                    ContainsSubstring("the spec names no gradients, so it has no backward pass"));
}
