#include "generator/snippet/reading.hpp"

#include <string>

#include "base/error.hpp"

namespace tilewright {
namespace {

constexpr std::string_view kPlainBuffers = "snippet/buffer.hpp";
constexpr std::string_view kCheckedBuffers = "readings/checked_buffer.hpp";

const std::vector<Reading>& table() {
  static const auto& readings = *new std::vector<Reading>{
      {.name = "fast",
       .header = "readings/float.hpp",
       .buffer_header = kPlainBuffers,
       .fast_math = true,
       .words = {{"double", "float"}}},
      {.name = "float",
       .header = "readings/float.hpp",
       .buffer_header = kPlainBuffers,
       .words = {{"double", "float"}}},
      {.name = "double",
       .header = "readings/double.hpp",
       .buffer_header = kPlainBuffers,
       .literals = LiteralType::f64,
       .words = {{"float", "double"}}},
      // Array bounds are those of a snippet's own arrays.
      {.name = "checked",
       .header = "readings/checked.hpp",
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
       .header = "readings/interval.hpp",
       .buffer_header = "readings/interval_buffer.hpp",
       .words =
           {{"int", "tw_Int"}, {"bool", "tw_Truth"}, {"float", "tw_Real"}, {"double", "tw_Real"}}},
  };
  return readings;
}

}  // namespace

std::span<const Reading> readings() {
  return table();
}

const Reading& reading(std::string_view name) {
  for (const Reading& reading : table()) {
    if (reading.name == name) return reading;
  }
  throw Error(ErrorCode::internal, "there is no reading \"" + std::string(name) + "\"");
}

}  // namespace tilewright
