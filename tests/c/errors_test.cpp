// Errors of the C ABI: places, hints, null pointers, sizes of structs.
#include <cstring>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "c/error.hpp"
#include "tests/c/calls.hpp"

using namespace tilewright;
using namespace tilewright::c_abi;
using Catch::Matchers::ContainsSubstring;

namespace {

ErrorHandle creation_error(tw_status status, const char* spec, const tw_options& options) {
  return c_abi::fail(status, [&](tw_error** error) {
    auto* made = reinterpret_cast<tw_attention*>(&status);
    const tw_status result = tw_attention_create(spec, &options, &made, error);
    CHECK(made == nullptr);
    return result;
  });
}

const char* const kCausal =
    R"({"dtype": "f32", "head_dim": 32, "mask_mod": "q_idx >= kv_idx", "block": [16, 16]})";

}  // namespace

TEST_CASE("C: an error has a place, an excerpt with a caret, a hint and notes") {
  const ErrorHandle error = creation_error(
      TW_SNIPPET, R"({"dtype": "f32", "head_dim": 32, "score_mod": "score + slope[h]",
                      "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}})",
      cpu_options());
  const std::string report = tw_error_report(error.get());
  CHECK_THAT(report, ContainsSubstring("error[snippet]") && ContainsSubstring("   |         ^"));
  CHECK_THAT(tw_error_message(error.get()), ContainsSubstring("slope"));
  CHECK_THAT(tw_error_hint(error.get()), ContainsSubstring("slopes"));
  CHECK(std::string(tw_error_file(error.get())) == "score_mod");
  CHECK(tw_error_line(error.get()) == 1);
  CHECK(tw_error_column(error.get()) == 9);
  REQUIRE(tw_error_note_count(error.get()) > 0);
  std::string notes;
  for (std::size_t i = 0; i < tw_error_note_count(error.get()); ++i) {
    notes += tw_error_note(error.get(), i);
  }
  CHECK_THAT(notes, ContainsSubstring("buffers: slopes[num_q_heads] (f32)"));
  CHECK(std::strlen(tw_error_note(error.get(), 99)) == 0);
}

TEST_CASE("C: every code is a status with a name") {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const auto of_code = static_cast<ErrorCode>(code);
    const tw_status status = capi::status_of(of_code);
    CHECK(tw_status_name(status) == to_string(of_code));
    CHECK((status >= TW_DEVICE) == (of_code >= ErrorCode::device));
    tw_error* error = nullptr;
    CHECK(capi::guarded(&error, [&] { throw Error(of_code, "a message"); }) == status);
    CHECK(tw_error_status(error) == status);
    tw_error_destroy(error);
  }
  CHECK(capi::status_of(ErrorCode::internal) == TW_INTERNAL);
  CHECK(std::string(tw_status_name(TW_OK)) == "ok");
  CHECK(std::string(tw_status_name(static_cast<tw_status>(30))) == "unknown");
}

TEST_CASE("C: exceptions of other types become internal errors, and want of memory its own") {
  tw_error* error = nullptr;
  CHECK(capi::guarded(&error, [] { throw std::runtime_error("odd"); }) == TW_INTERNAL);
  CHECK(std::string(tw_error_message(error)) == "odd");
  tw_error_destroy(error);
  CHECK(capi::guarded(&error, [] { throw 7; }) == TW_INTERNAL);
  tw_error_destroy(error);
  CHECK(capi::guarded(&error, [] { throw std::bad_alloc(); }) == TW_MEMORY);
  tw_error_destroy(error);
}

TEST_CASE("C: null pointers are refused by name, and texts of no error are empty") {
  const AttentionHandle made = attention(kCausal);
  const auto call = sized<tw_call>();
  const tw_shape sizes = shape(1, 32, 32);
  CHECK(std::string(tw_error_message(fail(TW_USAGE, tw_forward, nullptr, &call).get())) ==
        "attention is NULL");
  CHECK(std::string(tw_error_message(fail(TW_USAGE, tw_forward, made.get(), nullptr).get())) ==
        "call is NULL");
  fail(TW_USAGE, tw_mask_create, made.get(), &sizes, nullptr, nullptr, nullptr);
  fail(TW_USAGE, tw_attention_create, nullptr, nullptr, nullptr);
  fail(TW_USAGE, tw_bind, made.get(), nullptr, size_t{1}, nullptr, size_t{0}, nullptr);
  fail(TW_USAGE, tw_mask_describe, nullptr, nullptr);
  fail(TW_USAGE, tw_precompile, nullptr, nullptr, size_t{0}, nullptr, nullptr);
  fail(TW_USAGE, tw_explain, nullptr, nullptr, nullptr, nullptr);
  CHECK(tw_attention_spec(made.get(), nullptr, nullptr) == TW_USAGE);
  CHECK(std::strlen(tw_error_report(nullptr)) + std::strlen(tw_error_file(nullptr)) == 0);
  CHECK(tw_error_status(nullptr) == TW_OK);
  tw_attention_destroy(nullptr);
  tw_bindings_destroy(nullptr);
  tw_mask_destroy(nullptr);
  tw_plan_destroy(nullptr);
  tw_error_destroy(nullptr);
}

TEST_CASE("C: structs of earlier headers are taken, of later ones refused with words") {
  const AttentionHandle made = attention(R"({"dtype": "f32", "head_dim": 32})");
  std::vector<float> x = numbers(32 * 32), out(x.size());
  auto call = sized<tw_call>();
  call.q = call.k = call.v = tensor(x, {1, 1, 32, 32});
  call.out = tensor(out, {1, 1, 32, 32});
  succeed(tw_forward, made.get(), &call);
  const std::vector<float> wanted = out;
  // A header that ended with `bindings`; what follows in memory is not of the struct.
  call.struct_size = offsetof(tw_call, q_offset);
  call.q_offset = call.kv_offset = INT64_MAX;
  call.has_scale = 1;
  out.assign(out.size(), 0);
  succeed(tw_forward, made.get(), &call);
  CHECK(out == wanted);

  call.struct_size = sizeof call + 8;
  const ErrorHandle later = fail(TW_USAGE, tw_forward, made.get(), &call);
  const std::string given = std::to_string(sizeof call + 8), known = std::to_string(sizeof call);
  CHECK_THAT(tw_error_report(later.get()), ContainsSubstring("tw_call has struct_size " + given) &&
                                               ContainsSubstring("knows " + known + " bytes") &&
                                               ContainsSubstring("header of a later version"));
  call.struct_size = 0;
  const ErrorHandle none = fail(TW_USAGE, tw_forward, made.get(), &call);
  CHECK_THAT(tw_error_hint(none.get()), ContainsSubstring("sizeof(tw_call)"));
  call = sized<tw_call>();
  call.reserved = 1;
  fail(TW_USAGE, tw_forward, made.get(), &call);

  tw_options options = cpu_options();
  options.struct_size += 8;
  creation_error(TW_USAGE, kCausal, options);
}

TEST_CASE("C: a filled struct of an earlier header keeps what follows it") {
  const AttentionHandle made = attention(kCausal);
  const tw_shape sizes = shape(1, 32, 32);
  const auto mask = make<MaskHandle>(tw_mask_create, made.get(), &sizes, nullptr, nullptr);
  tw_mask_info info = {};
  info.struct_size = offsetof(tw_mask_info, partial_tiles);
  info.partial_tiles = 77;
  succeed(tw_mask_describe, mask.get(), &info);
  CHECK((info.q_blocks == 2 && info.partial_tiles == 77));
  CHECK(info.struct_size == offsetof(tw_mask_info, partial_tiles));
}
