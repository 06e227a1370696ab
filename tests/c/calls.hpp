#pragma once

// What tests of the C ABI share: handles that end themselves, and calls that must succeed.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c/tilewright.h"
#include "tests/support/catch.hpp"

namespace tilewright::c_abi {

template <auto destroy>
struct Destroy {
  template <typename Handle>
  void operator()(Handle* handle) const {
    destroy(handle);
  }
};
using AttentionHandle = std::unique_ptr<tw_attention, Destroy<tw_attention_destroy>>;
using BindingsHandle = std::unique_ptr<tw_bindings, Destroy<tw_bindings_destroy>>;
using MaskHandle = std::unique_ptr<tw_mask, Destroy<tw_mask_destroy>>;
using PlanHandle = std::unique_ptr<tw_plan, Destroy<tw_plan_destroy>>;
using ErrorHandle = std::unique_ptr<tw_error, Destroy<tw_error_destroy>>;

/// Checks that the call, whose last argument is a tw_error **, succeeds.
template <typename Function, typename... Arguments>
void succeed(Function function, Arguments... arguments) {
  tw_error* error = nullptr;
  const tw_status status = function(arguments..., &error);
  const ErrorHandle ends(error);
  INFO(tw_error_report(error));
  REQUIRE(status == TW_OK);
  REQUIRE(error == nullptr);
}

/// Likewise for a call that makes a handle.
template <typename Handle, typename Function, typename... Arguments>
Handle make(Function function, Arguments... arguments) {
  typename Handle::pointer made = nullptr;
  succeed(function, arguments..., &made);
  REQUIRE(made != nullptr);
  return Handle(made);
}

/// The error of a call that must fail with a status.
template <typename Function, typename... Arguments>
ErrorHandle fail(tw_status wanted, Function function, Arguments... arguments) {
  tw_error* error = nullptr;
  CHECK(function(arguments..., nullptr) == wanted);
  const tw_status status = function(arguments..., &error);
  INFO(tw_error_report(error));
  CHECK(status == wanted);
  REQUIRE(error != nullptr);
  CHECK(tw_error_status(error) == wanted);
  return ErrorHandle(error);
}

template <typename Struct>
Struct sized() {
  Struct made = {};
  made.struct_size = sizeof(Struct);
  return made;
}

inline tw_options cpu_options() {
  auto options = sized<tw_options>();
  options.device = "cpu";
  return options;
}

inline AttentionHandle attention(const std::string& spec, const tw_options& options) {
  return make<AttentionHandle>(tw_attention_create, spec.c_str(), &options);
}

inline AttentionHandle attention(const std::string& spec) {
  return attention(spec, cpu_options());
}

inline tw_shape shape(std::int64_t heads, std::int64_t q_len, std::int64_t kv_len) {
  auto made = sized<tw_shape>();
  made.batch = 1;
  made.num_q_heads = made.num_kv_heads = heads;
  made.q_len = q_len;
  made.kv_len = kv_len;
  return made;
}

template <typename T>
tw_tensor tensor(std::vector<T>& values, std::initializer_list<std::int64_t> extents) {
  const std::int32_t dtype = std::is_same_v<T, float>          ? TW_F32
                             : std::is_same_v<T, std::int32_t> ? TW_I32
                                                               : TW_I64;
  return tw_tensor_contiguous(values.data(), dtype, static_cast<std::int32_t>(extents.size()),
                              extents.begin());
}

/// Numbers that differ, the same in each run.
inline std::vector<float> numbers(std::int64_t count, int seed = 0) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 31 + static_cast<std::size_t>(seed) * 7) % 37) / 16 - 1;
  }
  return values;
}

/// The text of a function such as tw_attention_spec.
template <typename Function, typename... Arguments>
std::string text(Function function, Arguments... arguments) {
  std::size_t size = 0;
  REQUIRE(function(arguments..., nullptr, &size) == TW_OK);
  std::string made(size, '?');
  REQUIRE(function(arguments..., made.data(), &size) == TW_OK);
  REQUIRE(made.back() == '\0');
  made.pop_back();
  return made;
}

}  // namespace tilewright::c_abi
