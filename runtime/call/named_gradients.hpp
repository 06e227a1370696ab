#pragma once

#include <string_view>
#include <vector>

#include "../api/backward.hpp"
#include "../api/bindings.hpp"

namespace tilewright {

/// A tensor that has the shape of another one of the call.
/// @throws Error with code tensor
void require_like(std::string_view name, const TensorView& view, std::string_view like_name,
                  const TensorView& like, DType dtype);

/// @throws Error with code tensor where two elements share bytes
void require_own_elements(std::string_view name, const TensorView& view);

/// Where gradients of buffers and scalars go, in the order of gradient_names(spec).
/// @param bindings of the call, whose buffers' shapes the gradients have
/// @throws Error with code tensor for one that is missing, that the spec does not name, or of
///         another shape or dtype
std::vector<TensorView> named_gradients(const Spec& spec, const Bindings& bindings,
                                        const GradientBuffers& gradients);

}  // namespace tilewright
