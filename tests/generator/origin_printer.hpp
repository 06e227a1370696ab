#pragma once

#include <string>

#include "generator/render/source_map.hpp"
#include "tests/support/catch.hpp"

namespace Catch {

template <>
struct StringMaker<tilewright::Origin> {
  static std::string convert(const tilewright::Origin& origin) {
    return origin.file + ":" + std::to_string(origin.line) + ":" + std::to_string(origin.column) +
           (origin.in_snippet ? " (snippet)" : "");
  }
};

}  // namespace Catch
