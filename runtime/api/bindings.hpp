#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../generator/spec/spec.hpp"
#include "shape.hpp"
#include "tensor.hpp"

namespace tilewright {

namespace cpu {
struct BindingArguments;
}
namespace cuda {
struct BindingArguments;
}

/// The size that a named dimension of a buffer has in a call.
std::int64_t extent_of(NamedDim dim, const Shape& shape);

/// What a caller gives for the names in a spec's snippets.
struct SnippetInputs {
  std::map<std::string, TensorView> buffers = {};  ///< dtype and shape as the spec declares them
  std::map<std::string, double> scalars = {};      ///< those without one take the spec's default
};

/// Buffers and scalars resolved against one spec: names are looked up and dtypes and ranks are
/// checked once, here, so that a call only compares sizes. Holds views: the buffers' memory must
/// outlive it.
class Bindings {
 public:
  /// No buffers, and every scalar at its default: all that a spec without buffers needs.
  Bindings();

  /// @throws Error with code tensor: a buffer that is missing, unknown, of another dtype or rank,
  ///         of another size in a fixed dimension, of more than 2^31 - 1 in any, or with a
  ///         TensorView::fault(); with code usage: a scalar that is missing, unknown or out of its
  ///         dtype's range
  Bindings(const Spec& spec, const SnippetInputs& inputs);

  /// Checks named dimensions against the sizes of a call; 1 broadcasts. Does not allocate where
  /// they fit.
  /// @throws Error with code tensor; with code usage where the bindings were made for a spec that
  ///         declares other names, dtypes or shapes
  void check(const Spec& spec, const Shape& shape) const;

  /// The same where some sizes of the call are not known: those that are 0 in `shape` are not
  /// compared.
  void check_known(const Spec& spec, const Shape& shape) const;

  bool is_default() const { return buffers_.empty() && scalars_.empty(); }

  /// In the order of their names in the spec.
  const std::vector<TensorView>& buffers() const { return buffers_; }
  const std::vector<double>& scalars() const { return scalars_; }

  /// The same as CPU kernels take them.
  const cpu::BindingArguments& cpu_arguments() const { return *cpu_arguments_; }
  /// The same as GPU kernels take them.
  const cuda::BindingArguments& cuda_arguments() const { return *cuda_arguments_; }

 private:
  struct DeclaredBuffer {
    std::string name;
    DType dtype;
    std::vector<BufferDim> shape;
  };
  struct DeclaredScalar {
    std::string name;
    DType dtype;
  };
  void require_same_declarations(const Spec& spec) const;
  void compare(const Spec& spec, const Shape& shape, bool skips_zeros) const;

  std::vector<DeclaredBuffer> declared_buffers_;
  std::vector<DeclaredScalar> declared_scalars_;
  std::vector<TensorView> buffers_;
  std::vector<double> scalars_;
  std::shared_ptr<const cpu::BindingArguments> cpu_arguments_;
  std::shared_ptr<const cuda::BindingArguments> cuda_arguments_;
};

}  // namespace tilewright
