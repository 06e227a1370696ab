#pragma once

#include <nanobind/nanobind.h>

#include "runtime/api/device.hpp"
#include "runtime/api/tensor.hpp"

namespace tilewright::py {

/// What the array of a caller is used for.
enum class Use { read, write };

/// A view of a numpy, torch or jax array, or of any other that speaks DLPack. Copies nothing; the
/// array must outlive the view.
/// @param name what messages call the argument
/// @throws Error with code tensor for a dtype that no tensor has, for memory that `device` does not
///         read, for an array that cannot be written, or for a torch tensor that asks for gradients
TensorView view_of(nanobind::handle array, const char* name, const Device& device,
                   Use use = Use::read);

}  // namespace tilewright::py
