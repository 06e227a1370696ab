#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../source_map.hpp"
#include "value.hpp"

namespace tilewright::jinja {

/// Where templates come from.
class Loader {
 public:
  virtual ~Loader() = default;
  /// The text of a template, or nothing where there is none of that name.
  virtual std::optional<std::string> load(std::string_view name) const = 0;
  /// Every name, for "did you mean".
  virtual std::vector<std::string> names() const = 0;
  /// What the hint about a missing template adds: where the templates are from, if the user chose
  /// it.
  virtual std::string origin() const { return {}; }
};

/// Templates from a map: embedded ones, and tests.
class MapLoader : public Loader {
 public:
  explicit MapLoader(std::map<std::string, std::string> templates)
      : templates_(std::move(templates)) {}
  std::optional<std::string> load(std::string_view name) const override {
    const auto found = templates_.find(std::string(name));
    return found == templates_.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, text] : templates_) names.push_back(name);
    return names;
  }

 private:
  std::map<std::string, std::string> templates_;
};

/// What rendering gives.
struct Rendered {
  std::string text;
  SourceMap map;                    ///< rendered position -> template or snippet position
  std::set<std::string> variables;  ///< top-level names of the context that were read
  std::vector<std::string> files;   ///< templates that took part, in order of first use
};

/// Renders a template with Jinja's syntax (docs/templates.md lists what is supported and what
/// differs: trim_blocks and lstrip_blocks are on, undefined is always an error, C++ literals are
/// printed).
/// @throws Error with code kernel_template: file, line, column, a caret and the chain of includes
Rendered render(const Loader& loader, std::string_view name, const Map& context);

}  // namespace tilewright::jinja
