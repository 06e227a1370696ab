#include "cli/buffer_extents.hpp"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/arguments.hpp"
#include "cli/numbers.hpp"

namespace tilewright::cli {
namespace {

constexpr const char* kForm =
    "write --buffer NAME=d0,d1 with an extent for each null of the buffer's shape, for example "
    "--buffer bias=320,512";

const BufferSpec& buffer_named(const Spec& spec, const std::string& name) {
  const auto found = spec.buffers.find(name);
  if (found != spec.buffers.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, buffer] : spec.buffers) names.push_back(known);
  const std::string hint = did_you_mean(name, names);
  throw Error(ErrorCode::usage, fmt::format("--buffer: the spec has no buffer \"{}\"", name),
              hint.empty() ? kForm : hint);
}

}  // namespace

std::map<std::string, std::vector<std::int64_t>> parse_buffer_extents(
    const Spec& spec, const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<std::int64_t>> extents;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ErrorCode::usage, fmt::format("--buffer \"{}\" has no NAME=", text), kForm);
    }
    const std::string name = text.substr(0, equals);
    const BufferSpec& buffer = buffer_named(spec, name);
    std::vector<std::int64_t> given;
    for (const std::string& extent : split_at_commas(text.substr(equals + 1))) {
      given.push_back(static_cast<std::int64_t>(
          parse_whole(extent, fmt::format("--buffer {}", name), kAnySize, kForm)));
    }
    const auto nulls =
        std::count_if(buffer.shape.begin(), buffer.shape.end(),
                      [](const BufferDim& dim) { return std::holds_alternative<FreeDim>(dim); });
    if (static_cast<std::ptrdiff_t>(given.size()) != nulls) {
      throw Error(ErrorCode::usage,
                  fmt::format("--buffer \"{}\" gives {} extents, but \"{}\" has {} null dimensions",
                              text, given.size(), name, nulls),
                  kForm);
    }
    if (!extents.emplace(name, std::move(given)).second) {
      throw Error(ErrorCode::usage, fmt::format("--buffer \"{}\" is given twice", name),
                  "give it once");
    }
  }
  return extents;
}

}  // namespace tilewright::cli
