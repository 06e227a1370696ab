#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/api/tensor.hpp"
#include "xla/ffi/api/c_api.h"

namespace tilewright::py {

/// A call as XLA makes it: arguments, results and attributes.
class JaxFrame {
 public:
  explicit JaxFrame(const XLA_FFI_CallFrame& frame) : frame_(frame) {}

  std::size_t inputs() const { return static_cast<std::size_t>(frame_.args.size); }
  std::size_t outputs() const { return static_cast<std::size_t>(frame_.rets.size); }
  /// XLA's buffers are dense and row-major. @throws Error with code tensor for another dtype
  TensorView input(std::size_t index) const;
  TensorView output(std::size_t index) const;
  /// @throws Error with code internal where the attribute is missing
  std::string text(std::string_view name) const;
  double number(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  /// Of a GPU. @throws Error with code device
  void* stream() const;

 private:
  const void* attribute(std::string_view name, XLA_FFI_AttrType type) const;

  const XLA_FFI_CallFrame& frame_;
};

}  // namespace tilewright::py
