#include "generator/snippet/interpretation.hpp"

#include <string>

#include "base/error.hpp"

namespace tilewright {
namespace {

constexpr std::string_view kPlainBuffers = "snippet/buffer.hpp";
constexpr std::string_view kCheckedBuffers = "interpretations/checked_buffer.hpp";

const std::vector<Interpretation>& table() {
  static const auto& interpretations = *new std::vector<Interpretation>{
      {.name = "fast",
       .header = "interpretations/float.hpp",
       .buffer_header = kPlainBuffers,
       .fast_math = true,
       .words = {{"double", "float"}}},
      {.name = "float",
       .header = "interpretations/float.hpp",
       .buffer_header = kPlainBuffers,
       .words = {{"double", "float"}}},
      {.name = "double",
       .header = "interpretations/double.hpp",
       .buffer_header = kPlainBuffers,
       .literals = LiteralType::f64,
       .words = {{"float", "double"}}},
      // Array bounds are those of a snippet's own arrays.
      {.name = "checked",
       .header = "interpretations/checked.hpp",
       .buffer_header = kCheckedBuffers,
       .checked = true,
       .words = {{"double", "float"},
                 {"abs", "tw_abs"},
                 {"floor_div", "tw_floor_div"},
                 {"floor_mod", "tw_floor_mod"}},
       .options = {"-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,"
                   "float-cast-overflow,return,bounds"}},
      // Of mask_mod alone, for all elements of a tile at once: snippet/proved.hpp.jinja.
      {.name = "interval",
       .header = "interpretations/interval.hpp",
       .buffer_header = "interpretations/interval_buffer.hpp",
       .words =
           {{"int", "tw_Int"}, {"bool", "tw_Truth"}, {"float", "tw_Real"}, {"double", "tw_Real"}}},
  };
  return interpretations;
}

}  // namespace

std::span<const Interpretation> interpretations() {
  return table();
}

const Interpretation& interpretation(std::string_view name) {
  for (const Interpretation& interpretation : table()) {
    if (interpretation.name == name) return interpretation;
  }
  throw Error(ErrorCode::internal, "there is no interpretation \"" + std::string(name) + "\"");
}

}  // namespace tilewright
