#include "tests/generator/render/engine/support.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace tilewright::jinja::test {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = fs::path(TILEWRIGHT_SOURCE_DIR) / "tests/generator/goldens";

Value value_of(const nlohmann::json& json) {
  if (json.is_null()) return {};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    List list;
    for (const auto& item : json) list.push_back(value_of(item));
    return list;
  }
  Map map;
  for (const auto& [key, item] : json.items()) map.emplace(key, value_of(item));
  return map;
}

}  // namespace

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::map<std::string, std::string> golden_templates() {
  std::map<std::string, std::string> templates;
  for (const auto& entry : fs::recursive_directory_iterator(kGoldens)) {
    if (entry.path().extension() != ".jinja") continue;
    templates[entry.path().lexically_relative(kGoldens).generic_string()] = read_text(entry.path());
  }
  return templates;
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const auto& entry : fs::directory_iterator(kGoldens)) {
    fs::path path = entry.path();
    if (path.extension() != ".jinja") continue;
    GoldenCase golden{path.filename().string(), {}, {}};
    if (fs::exists(path.replace_extension(".json"))) {
      golden.context = *value_of(nlohmann::json::parse(read_text(path))).as_map();
    }
    golden.golden = read_text(path.replace_extension(".golden"));
    cases.push_back(std::move(golden));
  }
  std::sort(cases.begin(), cases.end(),
            [](const GoldenCase& a, const GoldenCase& b) { return a.name < b.name; });
  return cases;
}

Rendered render_text(const std::string& text, const Map& context) {
  return render(MapLoader({{"t.jinja", text}}), "t.jinja", context);
}

std::string text_of(const std::string& text, const Map& context) {
  return render_text(text, context).text;
}

}  // namespace tilewright::jinja::test
