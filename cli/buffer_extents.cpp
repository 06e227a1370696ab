#include "cli/buffer_extents.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/arguments.hpp"
#include "cli/numbers.hpp"
#include "verify/random_inputs.hpp"

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

CLI::Option* add_buffer_option(CLI::App& app, std::vector<std::string>& texts) {
  return app
      .add_option("--buffer", texts,
                  "NAME=EXTENT,...: of a random buffer's null dimensions, 64 by default; may be "
                  "repeated")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

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
    const std::int64_t nulls = verify::count_nulls(buffer);
    if (static_cast<std::int64_t>(given.size()) != nulls) {
      throw Error(
          ErrorCode::usage,
          fmt::format("--buffer \"{}\" gives {}, but \"{}\" has {}", text,
                      counted(given.size(), "extent"), name, counted(nulls, "null dimension")),
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
