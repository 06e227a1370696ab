#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../verify/random.hpp"
#include "snippet_dice.hpp"
#include "snippet_wish.hpp"

namespace tilewright::verify::fuzz {

/// The buffers and scalars that a random snippet may read. Those that it wishes for and the spec
/// lacks are declared in the spec.
class SnippetDeclarations : private SnippetDice {
 public:
  /// All arguments must outlive it.
  SnippetDeclarations(Spec& spec, Random& random, const SnippetWish& wish)
      : SnippetDice(random), spec_(spec), wish_(wish) {}

  /// Declares what the wish asks for, as far as neither snippet has declared it yet.
  void declare_wanted();

  /// Declares a bias for padded keys, [batch, kv_len] or [kv_len]: its elements reach the limits of
  /// a floating type, and half of them are limits.
  std::string declare_padding();

  /// Names of buffers of floating or of integer elements, without those for padded keys.
  std::vector<std::string> buffers(bool floating) const;
  const BufferSpec& buffer(const std::string& name) const { return spec_.buffers.at(name); }
  /// The name of the first scalar of a type.
  std::optional<std::string> scalar(DType dtype) const;

 private:
  std::string declare_buffer(DType dtype, std::size_t rank);
  std::string declare_scalar(DType dtype);
  std::string new_name(const char* stem);

  DType wanted_buffer_dtype();
  std::size_t wanted_rank();
  std::vector<BufferDim> random_dims(std::size_t rank);
  bool is_long(const BufferDim& dim) const;  // as long as a length
  BufferDim random_length();
  BufferDim random_short_dim();
  std::array<double, 2> range_of(DType dtype);

  Spec& spec_;
  const SnippetWish& wish_;
};

}  // namespace tilewright::verify::fuzz
