// Packed calls against a dense call for each of their sequences, on the CPU.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"

namespace tilewright {
namespace {

struct Lengths {
  int q, kv;
};

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

// Numbers that look random and are the same in each run.
float number(std::int64_t i) {
  return std::sin(static_cast<float>(i) * 12.9898f + 4.1414f) * 1.5f;
}

Tensor random_tensor(std::initializer_list<std::int64_t> shape, int seed) {
  Tensor tensor = Tensor::zeros(f32, shape);
  auto* values = static_cast<float*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = number(i * 7 + seed);
  return tensor;
}

Tensor int_tensor(const std::vector<int>& values) {
  Tensor tensor = Tensor::zeros(i32, {static_cast<std::int64_t>(values.size())});
  if (!values.empty()) std::memcpy(tensor.data(), values.data(), values.size() * sizeof(int));
  return tensor;
}

void fill(Tensor& tensor, float value) {
  auto* values = static_cast<float*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = value;
}

float* floats(Tensor& tensor) {
  return static_cast<float*>(tensor.data());
}

// Memory at a multiple of 256 bytes, full of garbage.
class Workspace {
 public:
  explicit Workspace(std::int64_t bytes)
      : memory_(static_cast<std::size_t>(bytes) + 256, std::byte{0xAB}), bytes_(bytes) {}

  TensorView view() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return TensorView::contiguous(memory_.data() + (256 - address % 256) % 256, u8, {bytes_});
  }

 private:
  std::vector<std::byte> memory_;
  std::int64_t bytes_;
};

// A packed batch with rows that belong to no sequence in front, between and at the end.
struct Batch {
  std::vector<Lengths> lengths;
  int heads, kv_heads, dim;
  int gap =
      3;  // rows of q in front of the first sequence and behind the last, and of k between all
  std::vector<int> q_begins = {}, kv_begins = {}, kv_lens = {};
  Tensor q = {}, k = {}, v = {}, out = {}, lse = {};

  void make() {
    int q_end = gap, kv_end = gap;
    for (const Lengths& length : lengths) {
      q_begins.push_back(q_end);
      kv_begins.push_back(kv_end);
      kv_lens.push_back(length.kv);
      q_end += length.q;
      kv_end += length.kv + gap;
    }
    q_begins.push_back(q_end);
    q = random_tensor({q_end + gap, heads, dim}, 1);
    k = random_tensor({kv_end, kv_heads, dim}, 2);
    v = random_tensor({kv_end, kv_heads, dim}, 3);
    out = Tensor::zeros(f32, {q_end + gap, heads, dim});
    lse = Tensor::zeros(f32, {heads, q_end + gap});
    poison_gaps();
  }

  PackedShape shape() const {
    return {.batch = static_cast<std::int64_t>(lengths.size()),
            .num_q_heads = heads,
            .num_kv_heads = kv_heads,
            .total_q = q.shape()[0],
            .total_kv = k.shape()[0]};
  }

 private:
  void poison_gaps() {
    const auto poison = [&](Tensor& tensor, std::int64_t row, int count) {
      const std::int64_t width = tensor.numel() / tensor.shape()[0];
      for (std::int64_t i = row * width; i < (row + count) * width; ++i)
        floats(tensor)[i] = kPoison;
    };
    poison(q, 0, gap);
    poison(q, q.shape()[0] - gap, gap);
    for (Tensor* tensor : {&k, &v}) {
      poison(*tensor, 0, gap);
      for (std::size_t b = 0; b < lengths.size(); ++b) {
        poison(*tensor, kv_begins[b] + lengths[b].kv, gap);
      }
    }
  }
};

Spec dense_of(Spec spec) {
  spec.layout = Layout::bshd;
  return spec;
}

TensorView rows_of(const Tensor& tensor, int begin, int count) {
  TensorView view = tensor.view();
  const std::int64_t heads = view.shape[1], dim = view.shape[2];
  const std::array<std::int64_t, 4> shape = {1, count, heads, dim};
  return TensorView::contiguous(static_cast<float*>(view.data) + begin * heads * dim, f32, shape);
}

// The greatest difference between the packed call and dense ones, over out and lse.
void check_against_dense(const Spec& spec, Batch& batch, float tolerance) {
  const Attention packed(spec, {.device = Device::cpu()});
  const Attention dense(dense_of(spec), {.device = Device::cpu()});
  Workspace workspace(packed.workspace_size(batch.shape()));
  const Tensor q_begin = int_tensor(batch.q_begins), kv_begin = int_tensor(batch.kv_begins);
  const Tensor kv_len = int_tensor(batch.kv_lens);
  Plan plan = packed.plan(
      batch.shape(), {.q_begin = q_begin, .kv_begin = kv_begin.view(), .kv_len = kv_len.view()}, {},
      {.workspace = workspace.view()});
  const PlanReport report = plan.report();
  CHECK(report.count == 0);
  CHECK(report.text().empty());
  CHECK(report.unplanned_rows == batch.gap);
  fill(batch.out, -7.0f);
  fill(batch.lse, -9.0f);
  const bool has_lse = spec.outputs.lse;
  const std::optional<TensorView> lse = has_lse ? std::optional(batch.lse.view()) : std::nullopt;
  packed.forward({.q = batch.q, .k = batch.k, .v = batch.v, .out = batch.out, .lse = lse}, plan);

  const std::int64_t total = batch.q.shape()[0], row_size = std::int64_t{batch.heads} * batch.dim;
  std::vector<bool> written(static_cast<std::size_t>(total), false);
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const auto [q_len, kv_len_b] = batch.lengths[b];
    if (q_len == 0) continue;
    for (int i = 0; i < q_len; ++i) written[static_cast<std::size_t>(batch.q_begins[b] + i)] = true;
    Tensor out = Tensor::zeros(f32, {1, q_len, batch.heads, batch.dim});
    Tensor dense_lse = Tensor::zeros(f32, {1, batch.heads, q_len});
    if (kv_len_b == 0) {
      fill(dense_lse, -std::numeric_limits<float>::infinity());
    } else {
      const Shape shape{.batch = 1,
                        .num_q_heads = batch.heads,
                        .num_kv_heads = batch.kv_heads,
                        .q_len = q_len,
                        .kv_len = kv_len_b,
                        .q_offset = kv_len_b - q_len};
      const ForwardTensors tensors = {
          .q = rows_of(batch.q, batch.q_begins[b], q_len),
          .k = rows_of(batch.k, batch.kv_begins[b], kv_len_b),
          .v = rows_of(batch.v, batch.kv_begins[b], kv_len_b),
          .out = out,
          .lse = has_lse ? std::optional(dense_lse.view()) : std::nullopt};
      const ForwardOptions options = {.q_offset = kv_len_b - q_len};
      if (spec.mask_mod.empty()) {
        dense.forward(tensors, {}, options);
      } else {
        dense.forward(tensors, dense.block_mask(shape), {}, options);
      }
    }
    float greatest = 0;
    const float* const ours = floats(batch.out) + batch.q_begins[b] * row_size;
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      greatest = std::fmax(greatest, std::fabs(ours[i] - floats(out)[i]));
      if (std::isnan(ours[i])) greatest = std::numeric_limits<float>::infinity();
    }
    INFO("sequence " << b);
    CHECK(greatest <= tolerance);
    for (std::int64_t h = 0; has_lse && h < batch.heads; ++h) {
      for (int i = 0; i < q_len; ++i) {
        const float given = floats(batch.lse)[h * total + batch.q_begins[b] + i];
        const float wanted = floats(dense_lse)[h * q_len + i];
        if (std::isinf(wanted)) {
          CHECK(given == wanted);
        } else {
          CHECK(std::fabs(given - wanted) <= 4e-5f);
        }
      }
    }
  }
  for (std::int64_t row = 0; row < total; ++row) {
    if (written[static_cast<std::size_t>(row)]) continue;
    for (std::int64_t i = 0; i < row_size; ++i)
      REQUIRE(floats(batch.out)[row * row_size + i] == -7.0f);
    for (int h = 0; h < batch.heads; ++h) REQUIRE(floats(batch.lse)[h * total + row] == -9.0f);
  }
}

Spec packed_spec(int dim, const std::string& mask_mod, bool lse) {
  return {.dtype = f32,
          .head_dim = dim,
          .layout = Layout::packed,
          .mask_mod = mask_mod,
          .outputs = {.lse = lse}};
}

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("packed: without snippets it has the bits of a dense call per sequence") {
  Batch batch{
      .lengths = {{128, 128}, {57, 57}, {1, 1}, {300, 300}}, .heads = 4, .kv_heads = 4, .dim = 64};
  batch.make();
  check_against_dense(packed_spec(64, "", false), batch, 0.0f);
}

TEST_CASE("packed: causal, bottom right, with lse and shared kv heads") {
  Batch batch{.lengths = {{1, 332}, {5, 18}, {129, 463}}, .heads = 4, .kv_heads = 2, .dim = 64};
  batch.make();
  check_against_dense(packed_spec(64, "q_idx >= kv_idx", true), batch, 4e-6f);
}

TEST_CASE("packed: rows without columns, sequences without columns or rows") {
  Batch batch{.lengths = {{300, 100}, {7, 3}, {64, 0}, {0, 9}, {129, 1}},
              .heads = 2,
              .kv_heads = 2,
              .dim = 32};
  batch.make();
  check_against_dense(packed_spec(32, "q_idx >= kv_idx", true), batch, 4e-6f);
}

TEST_CASE("packed: masks that tell heads and sequences apart") {
  Batch batch{.lengths = {{200, 300}, {33, 700}}, .heads = 2, .kv_heads = 1, .dim = 32};
  batch.make();
  check_against_dense(packed_spec(32, "q_idx >= kv_idx && (q_idx - kv_idx) < 100 + 64 * h", true),
                      batch, 4e-6f);
}

TEST_CASE("packed: q_token and kv_token are rows of the packed tensors") {
  Spec spec = packed_spec(32, "doc[q_token] == doc[kv_token]", false);
  spec.buffers = {{"doc", {.dtype = i32, .shape = {NamedDim::total_kv}}}};
  const int rows = 160;
  Tensor doc = Tensor::zeros(i32, {rows});
  for (int i = 0; i < rows; ++i) static_cast<int*>(doc.data())[i] = i / 37;
  const Tensor q = random_tensor({rows, 1, 32}, 1), k = random_tensor({rows, 1, 32}, 2);
  const Tensor v = random_tensor({rows, 1, 32}, 3);
  const Tensor begins = int_tensor({0, 100, rows});
  const PackedShape shape = {.batch = 2, .total_q = rows, .total_kv = rows};

  const Attention attention(spec, {.device = Device::cpu()});
  const Bindings bindings = attention.bind({.buffers = {{"doc", doc}}});
  Workspace workspace(attention.workspace_size(shape));
  const Plan plan = attention.plan(shape, {.q_begin = begins, .kv_begin = begins.view()}, bindings,
                                   {.workspace = workspace.view()});
  Tensor out = Tensor::zeros(f32, {rows, 1, 32});
  attention.forward({.q = q, .k = k, .v = v, .out = out}, plan, bindings);

  // Each document of each sequence is a sequence of its own.
  const Attention plain(packed_spec(32, "", false), {.device = Device::cpu()});
  const Tensor cuts = int_tensor({0, 37, 74, 100, 111, 148, rows});
  const PackedShape cut_shape = {.batch = 6, .total_q = rows, .total_kv = rows};
  Workspace cut_workspace(plain.workspace_size(cut_shape));
  const Plan cut = plain.plan(cut_shape, {.q_begin = cuts, .kv_begin = cuts.view()}, {},
                              {.workspace = cut_workspace.view()});
  Tensor wanted = Tensor::zeros(f32, {rows, 1, 32});
  plain.forward({.q = q, .k = k, .v = v, .out = wanted}, cut);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    REQUIRE(std::fabs(floats(out)[i] - floats(wanted)[i]) <= 4e-6f);
  }
}

TEST_CASE("packed: lengths that lie are clamped and reported, and nothing else is written") {
  const Attention attention(packed_spec(32, "q_idx >= kv_idx", false), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 3, .total_q = 40, .total_kv = 50};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q = random_tensor({40, 1, 32}, 1), k = random_tensor({50, 1, 32}, 2);
  Tensor out = Tensor::zeros(f32, {40, 1, 32});
  Tensor q_begin = int_tensor({0, 20, 17, 40}), kv_begin = int_tensor({0, 10, 20});
  Tensor kv_len = int_tensor({10, 10, 10});
  Plan plan = attention.plan(
      shape, {.q_begin = q_begin, .kv_begin = kv_begin.view(), .kv_len = kv_len.view()}, {},
      {.workspace = workspace.view()});
  const auto text_of = [&](std::initializer_list<int> begins, std::initializer_list<int> lens) {
    std::copy(begins.begin(), begins.end(), static_cast<int*>(q_begin.data()));
    std::copy(lens.begin(), lens.end(), static_cast<int*>(kv_len.data()));
    attention.rebuild(plan);
    attention.forward({.q = q, .k = k, .v = k, .out = out}, plan);
    return plan.report().text();
  };
  CHECK(plan.report().text() == "q_begin[2] is 17 after 20");
  CHECK(text_of({0, 20, 30, 40}, {10, 10, 10}).empty());
  CHECK(text_of({0, 20, 30, 41}, {10, 10, 10}) == "q_begin[3] is 41, but q has 40 rows");
  CHECK(text_of({-3, 20, 30, 40}, {10, 10, 10}) == "q_begin[0] is -3");
  CHECK(text_of({0, 20, 30, 40}, {10, -1, 10}) == "kv_len[1] is -1");
  CHECK(text_of({0, 20, 30, 40}, {10, 10, 31}) == "kv_len[2] is 31, but there is room for 30");
  CHECK(text_of({2147483647, -2147483647, 2147483647, -5}, {2147483647, -2147483647, 77}) ==
        "q_begin[0] is 2147483647, but q has 40 rows (7 values were clamped)");
  CHECK(text_of({0, 40, 0, 40}, {10, 10, 10}) == "q_begin[2] is 0 after 40");
}

TEST_CASE("packed: what the host can see is refused before anything is launched") {
  const Attention attention(packed_spec(32, "", false), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 8, .total_kv = 8};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor begins = int_tensor({0, 8});
  const auto plan_of = [&](const Sequences& sequences, TensorView memory) {
    return attention.plan(shape, sequences, {}, {.workspace = memory});
  };
  const Sequences sequences = {.q_begin = begins, .kv_begin = begins.view()};
  CHECK(message_of([&] { plan_of({.q_begin = begins}, workspace.view()); }) ==
        "kv_layout is \"packed\", and the sequences have no kv_begin");
  TensorView small = workspace.view();
  small.shape[0] -= 1;
  CHECK(message_of([&] { plan_of(sequences, small); }).find("bytes; this plan needs") !=
        std::string::npos);
  TensorView crooked = TensorView::contiguous(static_cast<std::byte*>(workspace.view().data) + 16,
                                              u8, {workspace.view().shape[0]});
  CHECK(message_of([&] { plan_of(sequences, crooked); }) ==
        "the workspace begins at no multiple of 256 bytes");
  const Tensor long_begins = int_tensor({0, 4, 8});
  CHECK(message_of([&] {
          plan_of({.q_begin = long_begins, .kv_begin = begins.view()}, workspace.view());
        }) == "q_begin has 3 elements, which is not [2] (batch + 1)");

  const Plan plan = plan_of(sequences, workspace.view());
  const Tensor q = random_tensor({8, 1, 32}, 1), q4 = random_tensor({1, 8, 1, 32}, 1);
  const Tensor longer = random_tensor({9, 1, 32}, 1);
  Tensor out = Tensor::zeros(f32, {8, 1, 32});
  CHECK(message_of([&] { attention.forward({.q = q4, .k = q, .v = q, .out = out}, plan); }) ==
        "q has rank 4; packed attention needs rank 3");
  CHECK(message_of([&] {
          attention.forward({.q = q, .k = longer, .v = longer, .out = out}, plan);
        }) == "the call has total_kv 9, but the plan was made for 8");
  CHECK(message_of([&] { attention.forward({.q = q, .k = q, .v = q, .out = out}); }) ==
        "the spec is packed, and the call has no plan");
  CHECK(message_of([&] {
          attention.forward({.q = q, .k = q, .v = q, .out = out}, plan, {}, {.q_offset = 1});
        }) == "a packed call has no offsets of its own");
  const Attention other(packed_spec(32, "", false), {.device = Device::cpu()});
  CHECK(message_of([&] { other.forward({.q = q, .k = q, .v = q, .out = out}, plan); }) ==
        "the plan was made by another Attention");
}

TEST_CASE("packed: no sequences or no rows are no work") {
  const Attention attention(packed_spec(32, "q_idx >= kv_idx", false), {.device = Device::cpu()});
  for (const int batch : {0, 2}) {
    const PackedShape shape = {.batch = batch, .total_q = 0, .total_kv = 0};
    Workspace workspace(attention.workspace_size(shape));
    const Tensor begins = int_tensor(std::vector<int>(static_cast<std::size_t>(batch) + 1, 0));
    const Plan plan = attention.plan(shape, {.q_begin = begins, .kv_begin = begins.view()}, {},
                                     {.workspace = workspace.view()});
    CHECK(plan.report().count == 0);
    Tensor out = Tensor::zeros(f32, {0, 1, 32});
    attention.forward({.q = out, .k = out, .v = out, .out = out}, plan);
  }
}

}  // namespace tilewright
