// Handles end in any order, and serve many threads; a log's callback is not called once its
// attention has ended.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "c/log_sink.hpp"
#include "tests/c/calls.hpp"

using namespace tilewright;
using namespace tilewright::c_abi;

namespace {

const char* const kBiased = R"({
  "dtype": "f32", "head_dim": 16, "block": [16, 16], "mask_mod": "q_idx >= kv_idx",
  "score_mod": "score + bias[kv_idx]",
  "buffers": {"bias": {"dtype": "f32", "shape": ["kv_len"]}}})";

BindingsHandle bound(const AttentionHandle& made, std::vector<float>& bias) {
  const tw_buffer buffer = {"bias", tensor(bias, {64})};
  return make<BindingsHandle>(tw_bind, made.get(), &buffer, size_t{1}, nullptr, size_t{0});
}

MaskHandle mask_of(const AttentionHandle& made, const BindingsHandle& bindings) {
  const tw_shape sizes = shape(2, 64, 64);
  return make<MaskHandle>(tw_mask_create, made.get(), &sizes, bindings.get(), nullptr);
}

}  // namespace

TEST_CASE("C: masks and bindings outlive their attention, and serve an equal one") {
  std::vector<float> x = numbers(2 * 64 * 16), out(x.size()), again(x.size()), bias(64, 0.5f);
  AttentionHandle first = attention(kBiased);
  const BindingsHandle bindings = bound(first, bias);
  const MaskHandle mask = mask_of(first, bindings);
  auto call = sized<tw_call>();
  call.q = call.k = call.v = tensor(x, {1, 2, 64, 16});
  call.out = tensor(out, {1, 2, 64, 16});
  call.mask = mask.get();
  call.bindings = bindings.get();
  succeed(tw_forward, first.get(), &call);
  first.reset();
  auto info = sized<tw_mask_info>();
  succeed(tw_mask_describe, mask.get(), &info);
  CHECK(info.q_blocks == 4);
  call.out = tensor(again, {1, 2, 64, 16});
  succeed(tw_forward, attention(kBiased).get(), &call);
  CHECK(out == again);
}

TEST_CASE("C: many threads call with the same handles") {
  std::vector<float> x = numbers(2 * 64 * 16), wanted(x.size()), bias(64, 0.5f);
  const AttentionHandle made = attention(kBiased);
  const BindingsHandle bindings = bound(made, bias);
  const MaskHandle mask = mask_of(made, bindings);
  const auto forward = [&](std::vector<float>& out) {
    auto call = sized<tw_call>();
    call.q = call.k = call.v = tensor(x, {1, 2, 64, 16});
    call.out = tensor(out, {1, 2, 64, 16});
    call.mask = mask.get();
    call.bindings = bindings.get();
    tw_error* error = nullptr;
    const tw_status status = tw_forward(made.get(), &call, &error);
    tw_error_destroy(error);
    return status;
  };
  REQUIRE(forward(wanted) == TW_OK);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<float> out(x.size());
      for (int i = 0; i < 50; ++i) {
        if (forward(out) != TW_OK || out != wanted) ++wrong;
        if (tw_forward(nullptr, nullptr, nullptr) != TW_USAGE) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("C: a log ends when no other thread is inside its callback") {
  struct State {
    std::atomic<bool> inside = false, leave = false;
    std::atomic<int> calls = 0;
  } state;
  auto sink = std::make_unique<capi::LogSink>(
      [](void* user, std::int32_t, const char*) {
        auto& of_test = *static_cast<State*>(user);
        ++of_test.calls;
        of_test.inside = true;
        while (!of_test.leave) std::this_thread::yield();
        of_test.inside = false;
      },
      &state);
  const DiagnosticsSink diagnostics = sink->diagnostics();
  std::thread speaker([&] { diagnostics(Severity::note, "slow"); });
  while (!state.inside) std::this_thread::yield();
  std::thread helper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    state.leave = true;
  });
  sink.reset();
  CHECK_FALSE(state.inside);
  speaker.join();
  helper.join();
  diagnostics(Severity::note, "unheard");
  CHECK(state.calls == 1);
}

TEST_CASE("C: a log's callback may end its own sink") {
  static capi::LogSink* own = nullptr;
  own = new capi::LogSink([](void*, std::int32_t, const char*) { delete own; }, nullptr);
  const DiagnosticsSink diagnostics = own->diagnostics();
  diagnostics(Severity::warning, "the last words");
  diagnostics(Severity::warning, "unheard");
}

TEST_CASE("C: what a callback throws is dropped, and the next living log hears what is left") {
  int heard = 0;
  const capi::LogSink throws([](void*, std::int32_t, const char*) { throw 1; }, nullptr);
  DiagnosticsSink orphan;
  {
    const capi::LogSink gone([](void*, std::int32_t, const char*) {}, nullptr);
    orphan = gone.diagnostics();
  }
  CHECK_NOTHROW(throws.diagnostics()(Severity::note, "thrown away"));
  CHECK_NOTHROW(orphan(Severity::note, "to the living one, which throws"));
  const capi::LogSink second(
      [](void* count, std::int32_t, const char*) { ++*static_cast<int*>(count); }, &heard);
  second.diagnostics()(Severity::note, "heard");
  CHECK(heard == 1);
}
