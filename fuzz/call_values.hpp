#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/bindings.hpp"
#include "../runtime/api/shape.hpp"
#include "expression.hpp"

namespace tilewright::verify::fuzz {

/// A buffer of a call as the interpreter reads it.
struct BufferValues {
  std::vector<std::int64_t> extents;  ///< of the tensor; 1 where it is broadcast
  std::vector<double> elements;       ///< dense, row-major
};

/// A scalar of a call.
struct ScalarValue {
  Type type = Type::floating;
  double value = 0;
};

/// What snippets read in addition to indices, copied from a call's inputs. Copies share the
/// buffers.
struct CallValues {
  /// @throws Error with code usage for a scalar that has no value
  CallValues(const Spec& spec, const Shape& shape, const SnippetInputs& inputs);

  Shape shape;
  /// Of one sequence of a packed call, whose shape is the sequence's.
  std::int64_t first_b = 0;          ///< its number
  std::int64_t q_token_offset = 0;   ///< q_token of q_idx 0
  std::int64_t kv_token_offset = 0;  ///< kv_token of kv_idx 0
  std::shared_ptr<const std::map<std::string, BufferValues>> buffers;
  std::map<std::string, ScalarValue> scalars;
};

}  // namespace tilewright::verify::fuzz
