#include "generator/spec/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "base/float_environment.hpp"
#include "base/name_list.hpp"
#include "base/nearest_name.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/spec/json_position.hpp"
#include "generator/spec/spec_json.hpp"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

constinit const NameList kManifestKeys("targets", "vary", "specs");
constinit const NameList kEntryKeys("file", "spec", "vary");
constinit const NameList kVaryingKeys("dtype", "head_dim", "v_head_dim", "layout", "kv_layout",
                                      "kv_new", "kv_dtype", "out_dtype", "block", "outputs",
                                      "tactic", "precise_math", "f32_products");

constexpr std::size_t kMaxSpecs = 10'000;
constexpr const char* kExample = R"(the least manifest is {"specs": ["my.json"]})";
constexpr std::string_view kCombination = "combination";  // the file name of one, while it is read

std::string pointer_of(const SpecPath& path) {
  std::string text;
  for (const std::string& step : path) {
    text += '/';
    if (step.starts_with('[')) {
      text += step.substr(1, step.size() - 2);
      continue;
    }
    for (const char c : step) {
      if (c == '~') text += "~0";
      if (c == '/') text += "~1";
      if (c != '~' && c != '/') text += c;
    }
  }
  return text.empty() ? "/" : text;
}

SpecPath below(SpecPath path, std::string step) {
  path.push_back(std::move(step));
  return path;
}

SpecPath below(SpecPath path, std::size_t index) {
  return below(std::move(path), fmt::format("[{}]", index));
}

// Keys of a spec to their values, with where each value stands in the manifest, if it does.
struct Field {
  Json value;
  std::optional<SpecPath> path;
};

// A spec as the manifest or a file has it, before anything varies.
struct Base {
  std::vector<std::pair<std::string, Field>> fields;
  std::string file;  // empty: it stands in the manifest
  std::string text;  // of that file
  std::string name;  // where the spec itself has none
};

// What a key takes in turn.
struct Variation {
  std::string key;
  std::vector<Field> values;
};

class ManifestReader {
 public:
  ManifestReader(std::string_view text, std::string_view file, std::filesystem::path folder)
      : text_(text), file_(file), folder_(std::move(folder)) {}

  Manifest run() {
    check_json_text(text_, file_);
    const Json root = parse();
    positions_ = locate_json(text_, file_);
    expect({}, root.is_object(), "a manifest is an object", kExample);
    check_keys({}, root, kManifestKeys);
    if (root.contains("targets")) read_targets(root["targets"]);
    if (root.contains("vary")) vary_ = variations({"vary"}, root["vary"]);
    expect({}, root.contains("specs"), "the key \"specs\" is missing", kExample);
    const Json& specs = root["specs"];
    expect({"specs"}, specs.is_array() && !specs.empty(), "\"specs\" must be a list of specs",
           kExample);
    for (std::size_t i = 0; i < specs.size(); ++i) read_entry(below({"specs"}, i), specs[i]);
    return std::move(manifest_);
  }

 private:
  Json parse() const {
    try {
      return Json::parse(text_);
    } catch (const Json::parse_error& error) {
      const std::string_view what = error.what();
      const std::size_t start = what.find(" - ");
      throw Error({.code = ErrorCode::file,
                   .message = "this is not JSON: " +
                              printable(start == what.npos ? what : what.substr(start + 3), 300),
                   .place = place_at(file_, text_, error.byte == 0 ? 0 : error.byte - 1),
                   .notes = {},
                   .hint = text_.empty() ? kExample : ""});
    } catch (const Json::exception& error) {
      fail({}, printable(error.what(), 300), kExample);
    }
  }

  void read_targets(const Json& targets) {
    const SpecPath path = {"targets"};
    expect(path, targets.is_array(), "\"targets\" must be a list of names",
           R"(for example ["sm_90a", "cpu"])");
    for (std::size_t i = 0; i < targets.size(); ++i) {
      expect(below(path, i), targets[i].is_string(), "a target is a name",
             R"(for example "sm_90a" or "cpu")");
      manifest_.targets.push_back(targets[i].get<std::string>());
    }
  }

  void read_entry(const SpecPath& path, const Json& entry) {
    if (entry.is_string()) return combine(path, base_of_file(path, entry), vary_);
    expect(path, entry.is_object(), "an entry of \"specs\" is a file's name or an object",
           R"(for example "my.json", or {"file": "my.json", "vary": {"head_dim": [64, 128]}})");
    check_keys(path, entry, kEntryKeys);
    expect(path, entry.contains("file") != entry.contains("spec"),
           "an entry of \"specs\" has either \"file\" or \"spec\"",
           entry.contains("file") ? "delete one of the two" : "add one of the two");
    const Base base = entry.contains("file") ? base_of_file(below(path, "file"), entry["file"])
                                             : base_of_object(below(path, "spec"), entry["spec"]);
    std::vector<Variation> vary = vary_;
    if (entry.contains("vary")) {
      for (Variation& own : variations(below(path, "vary"), entry["vary"])) {
        std::erase_if(vary, [&](const Variation& v) { return v.key == own.key; });
        vary.push_back(std::move(own));
      }
    }
    combine(path, base, vary);
  }

  Base base_of_file(const SpecPath& path, const Json& name) const {
    expect(path, name.is_string() && !name.get<std::string>().empty(), "a file is a name",
           R"(for example "my.json")");
    const std::filesystem::path file = folder_ / name.get<std::string>();
    Base base{.fields = {}, .file = file.string(), .text = {}, .name = file.stem().string()};
    try {
      base.text = read_text_file(file, {.max_bytes = kMaxSpecBytes});
    } catch (const Error& error) {
      fail(path, error.message(), hint_for_file(file, error.hint()));
    }
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (base.text.starts_with(kByteOrderMark)) base.text.erase(0, kByteOrderMark.size());
    try {
      check_json_text(base.text, base.file);
      const Json object = Json::parse(base.text, nullptr, false);
      // The reader of specs says best what is wrong.
      if (!object.is_object()) static_cast<void>(spec_from_json(base.text, base.file));
      static_cast<void>(locate_json(base.text, base.file));
      for (const auto& [key, value] : object.items()) base.fields.push_back({key, {value, {}}});
    } catch (const Error& error) {
      rethrow(error, path);
    }
    return base;
  }

  // The nearest name among the files in the folder of the missing one.
  static std::string hint_for_file(const std::filesystem::path& file,
                                   const std::string& otherwise) {
    Names names;
    std::error_code failure;
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    std::filesystem::directory_iterator files(folder, failure);
    for (; !failure && files != std::filesystem::directory_iterator(); files.increment(failure)) {
      if (files->path().extension() == ".json") names.push_back(files->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    const std::string hint = did_you_mean(file.filename().string(), names);
    return hint.empty() ? otherwise : hint;
  }

  Base base_of_object(const SpecPath& path, const Json& object) const {
    expect(path, object.is_object(), "a spec is an object",
           R"(the least spec is {"dtype": "bf16", "head_dim": 128})");
    Base base;
    for (const auto& [key, value] : object.items()) {
      base.fields.push_back({key, {value, below(path, key)}});
    }
    return base;
  }

  std::vector<Variation> variations(const SpecPath& path, const Json& vary) const {
    expect(path, vary.is_object(), "\"vary\" must be an object: a key of the spec and its values",
           R"(for example {"dtype": ["f16", "bf16"], "head_dim": [64, 128]})");
    check_keys(path, vary, kVaryingKeys);
    std::vector<Variation> found;
    for (const auto& [key, values] : vary.items()) {
      const SpecPath at = below(path, key);
      expect(at, values.is_array() && !values.empty(),
             fmt::format("what \"{}\" varies over must be a list", key),
             key == "outputs" ? R"(for example [["out"], ["out", "lse"]])"
                              : "write its values in brackets");
      Variation variation{.key = key, .values = {}};
      for (std::size_t i = 0; i < values.size(); ++i) {
        variation.values.push_back({values[i], below(at, i)});
      }
      found.push_back(std::move(variation));
    }
    return found;
  }

  // Every combination, the last variation changing fastest.
  void combine(const SpecPath& path, const Base& base, const std::vector<Variation>& vary) {
    std::vector<std::size_t> chosen(vary.size(), 0);
    for (;;) {
      Base combination = base;
      for (std::size_t i = 0; i < vary.size(); ++i) {
        set(combination.fields, vary[i].key, vary[i].values[chosen[i]]);
      }
      add(path, combination);
      std::size_t digit = vary.size();
      while (digit > 0 && ++chosen[digit - 1] == vary[digit - 1].values.size()) {
        chosen[--digit] = 0;
      }
      if (digit == 0) return;
    }
  }

  // null leaves the key out.
  static void set(std::vector<std::pair<std::string, Field>>& fields, const std::string& key,
                  const Field& field) {
    std::erase_if(fields, [&](const auto& f) { return f.first == key; });
    if (!field.value.is_null()) fields.emplace_back(key, field);
  }

  void add(const SpecPath& path, const Base& base) {
    // A key a line, so that the line of an error says which key it is about.
    std::string text = "{\n";
    for (std::size_t i = 0; i < base.fields.size(); ++i) {
      const auto& [key, field] = base.fields[i];
      text += fmt::format("{}: {}{}\n", Json(key).dump(), field.value.dump(),
                          i + 1 < base.fields.size() ? "," : "");
    }
    text += "}\n";
    Spec spec;
    try {
      spec = spec_from_json(text, kCombination);
    } catch (const Error& error) {
      report(error, path, base);
    }
    if (spec.name.empty()) spec.name = base.name;
    for (const ManifestSpec& other : manifest_.specs) {
      if (other.spec == spec) return;
    }
    if (manifest_.specs.size() == kMaxSpecs) {
      fail(path, fmt::format("the manifest names more than {} specs", kMaxSpecs),
           "write several manifests");
    }
    manifest_.specs.push_back({std::move(spec), pointer_of(path)});
  }

  // An error of a combination, told at the place where its value was written.
  [[noreturn]] void report(const Error& error, const SpecPath& path, const Base& base) const {
    const std::optional<SourceLocation>& place = error.place();
    if (!place || place->file != kCombination) rethrow(error, path);
    const auto index = static_cast<std::size_t>(place->line - 2);
    const bool is_a_field = place->line >= 2 && index < base.fields.size();
    if (is_a_field && base.fields[index].second.path) {
      const SpecPath& field = *base.fields[index].second.path;
      rethrow(error, field, place_of(field));
    }
    if (base.file.empty()) rethrow(error, path, place_of(path));
    const JsonNode positions = locate_json(base.text, base.file);
    const SpecPath key = is_a_field ? SpecPath{base.fields[index].first} : SpecPath{};
    rethrow(error, path, place_at(base.file, base.text, offset_of(positions, key, false)));
  }

  [[noreturn]] void rethrow(const Error& error, const SpecPath& path,
                            const std::optional<SourceLocation>& place = {}) const {
    std::vector<std::string> notes;
    for (const std::string& note : error.notes()) {
      // "score_mod stands at combination:3:4": where, the next note says better.
      if (note.find(kCombination) == std::string::npos) notes.push_back(note);
    }
    notes.push_back(where(path));
    throw Error({.code = error.code(),
                 .message = error.message(),
                 .place = place ? place : error.place(),
                 .notes = std::move(notes),
                 .hint = error.hint()});
  }

  void check_keys(const SpecPath& path, const Json& object, const Names& allowed) const {
    for (const auto& [key, value] : object.items()) {
      if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
      const SpecPath at = below(path, key);
      throw Error({.code = ErrorCode::file,
                   .message = fmt::format("unknown key \"{}\"; allowed are {}", printable(key),
                                          one_of(allowed)),
                   .place = place_at(file_, text_, offset_of(positions_, at, true)),
                   .notes = {where(at)},
                   .hint = did_you_mean(key, allowed)});
    }
  }

  void expect(const SpecPath& path, bool is_right, std::string message, std::string hint) const {
    if (!is_right) fail(path, std::move(message), std::move(hint));
  }

  [[noreturn]] void fail(const SpecPath& path, std::string message, std::string hint) const {
    throw Error({.code = ErrorCode::file,
                 .message = std::move(message),
                 .place = place_of(path),
                 .notes = {where(path)},
                 .hint = std::move(hint)});
  }

  std::string where(const SpecPath& path) const {
    return fmt::format("at {} of the manifest \"{}\"", pointer_of(path), file_);
  }

  SourceLocation place_of(const SpecPath& path) const {
    return place_at(file_, text_, offset_of(positions_, path, false));
  }

  std::string_view text_;
  std::string_view file_;
  std::filesystem::path folder_;
  JsonNode positions_;
  std::vector<Variation> vary_;
  Manifest manifest_;
};

}  // namespace

Manifest manifest_from_json(std::string_view text, std::string_view file_name,
                            const std::string& folder) {
  const DefaultFloatEnvironment floats;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return ManifestReader(text, file_name, folder).run();
}

Manifest manifest_from_file(const std::string& name) {
  const std::filesystem::path path = name;
  const std::string text = read_text_file(path, {.max_bytes = kMaxSpecBytes});
  return manifest_from_json(text, name, path.parent_path());
}

}  // namespace tilewright
