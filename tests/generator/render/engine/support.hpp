#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "generator/render/engine/engine.hpp"

namespace tilewright::jinja::test {

/// One template of tests/generator/goldens with its context and what Jinja made of it.
struct GoldenCase {
  std::string name;  ///< "if_nested.jinja"
  Map context;
  std::string golden;
};

std::vector<GoldenCase> golden_cases();
/// Every template of the corpus by its path below goldens/, partials included.
std::map<std::string, std::string> golden_templates();

std::string read_text(const std::filesystem::path& path);

/// Renders one text.
Rendered render_text(const std::string& text, const Map& context = {});
/// The same, the text alone.
std::string text_of(const std::string& text, const Map& context = {});

}  // namespace tilewright::jinja::test
