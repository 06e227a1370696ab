#pragma once

#include <cstdint>

#include "../spec/spec.hpp"
#include "brackets.hpp"

namespace tilewright {

enum class OperandType : std::uint8_t { unknown, truth, integer, floating };

/// What can be said of an operand's type without a compiler: from literals, the spec's names,
/// functions, casts and the types of local variables.
class OperandTypes {
 public:
  /// Both must outlive the object.
  OperandTypes(const Spec& spec, const SnippetBrackets& snippet) : spec_(spec), snippet_(snippet) {}

  /// The type of an expression; unknown where a part that matters is.
  OperandType of(SnippetBrackets::Range range) const;

 private:
  OperandType of_word(std::size_t i) const;
  OperandType of_name(std::size_t i) const;
  OperandType of_local(std::string_view name) const;

  const Spec& spec_;
  const SnippetBrackets& snippet_;
};

}  // namespace tilewright
