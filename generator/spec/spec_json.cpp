#include "generator/spec/spec_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "base/name_list.hpp"
#include "base/nearest_name.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/messages/usual_mistakes.hpp"
#include "generator/snippet/check.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/spec/json_position.hpp"
#include "generator/spec/number_range.hpp"
#include "generator/spec/validate.hpp"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

constinit const NameList kTopKeys("name", "dtype", "head_dim", "v_head_dim", "layout", "kv_layout",
                                  "kv_new", "kv_dtype", "out_dtype", "scale", "score_mod",
                                  "mask_mod", "q_scale", "k_scale", "v_scale", "out_scale", "sink",
                                  "dropout", "buffers", "scalars", "block", "outputs", "gradients",
                                  "precise_math", "f32_products", "tactic");
constinit const NameList kBufferKeys("dtype", "shape", "bounds", "range", "sorted");
constinit const NameList kScalarKeys("dtype", "default");
constinit const NameList kLayouts("bhsd", "bshd", "packed");
constinit const NameList kKvLayouts("bhsd", "bshd", "packed", "paged", "paged_x");
constinit const NameList kDims("batch", "num_q_heads", "num_kv_heads", "q_len", "kv_len", "total_q",
                               "total_kv");
constinit const NameList kBounds("clamped", "trusted");
constinit const NameList kSortedWords("promised");  // the other values are true and false
constinit const NameList kOutputs("out", "lse", "max_scores", "weights");
constinit const NameList kF32Products("ieee", "tf32");

bool is_listed(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A value as messages show it.
std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string_view kind_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "true or false";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  return value.is_array() ? "a list" : "an object";
}

// "7 (a number)"; the value alone where it shows its kind, or where the rule is about its kind.
std::string with_kind(const Json& value, std::string_view rule) {
  const std::string_view kind = kind_of(value);
  const std::string_view in_rules = value.is_number() ? "number" : kind;
  const bool is_clear = value.is_null() || value.is_boolean();
  if (is_clear || rule.find(in_rules) != std::string_view::npos) return shown(value);
  return fmt::format("{} ({})", shown(value), kind);
}

// What other libraries call our dtypes.
std::string dtype_alias(std::string_view name) {
  static const auto& kAliases =
      *new std::map<std::string, std::string, std::less<>>{{"float", "f32"},
                                                           {"float32", "f32"},
                                                           {"fp32", "f32"},
                                                           {"single", "f32"},
                                                           {"float64", "f64"},
                                                           {"double", "f64"},
                                                           {"short", "i16"},
                                                           {"int16", "i16"},
                                                           {"uint16", "u16"},
                                                           {"uint32", "u32"},
                                                           {"half", "f16"},
                                                           {"float16", "f16"},
                                                           {"fp16", "f16"},
                                                           {"bfloat16", "bf16"},
                                                           {"bfloat", "bf16"},
                                                           {"brain", "bf16"},
                                                           {"int", "i32"},
                                                           {"int32", "i32"},
                                                           {"long", "i64"},
                                                           {"int64", "i64"},
                                                           {"uint8", "u8"},
                                                           {"byte", "u8"},
                                                           {"boolean", "bool"},
                                                           {"torch.bool", "bool"},
                                                           {"fp8", "f8e4m3"},
                                                           {"float8", "f8e4m3"},
                                                           {"e4m3", "f8e4m3"},
                                                           {"fp8_e4m3", "f8e4m3"},
                                                           {"e5m2", "f8e5m2"},
                                                           {"fp8_e5m2", "f8e5m2"},
                                                           {"int8", "i8"},
                                                           {"float8_e4m3", "f8e4m3"},
                                                           {"float8_e4m3fn", "f8e4m3"},
                                                           {"float8_e5m2", "f8e5m2"}};
  const auto alias = kAliases.find(name);
  return alias == kAliases.end() ? std::string() : alias->second;
}

// Turns a parsed text into a spec. What is wrong is reported where it stands in the text.
class SpecReader {
 public:
  SpecReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Spec run() {
    check_json_text(text_, file_);
    const Json root = parse();
    positions_ = locate_json(text_, file_);
    if (!root.is_object()) {
      fail({}, fmt::format("a spec is an object, but this is {}", kind_of(root)),
           R"(the least spec is {"dtype": "bf16", "head_dim": 128})");
    }
    for (const auto& [key, value] : root.items()) read_top(key, value);
    for (const char* key : {"dtype", "head_dim"}) require(root, key);
    check_fields(spec_, [this](const SpecProblem& problem) { report(problem); });
    for (const SnippetKind kind : snippet_kinds()) check_snippet_at(kind);
    check_gradients(spec_, [this](const SpecProblem& problem) { report(problem); });
    return std::move(spec_);
  }

 private:
  Json parse() const {
    try {
      return Json::parse(text_);
    } catch (const Json::parse_error& error) {
      fail_syntax(error.byte == 0 ? 0 : error.byte - 1, error.what());
    } catch (const Json::exception& error) {
      fail_syntax(0, error.what());
    }
  }

  [[noreturn]] void fail_syntax(std::size_t at, std::string_view what) const {
    const std::size_t start = what.find(" - ");
    const std::string_view cause = start == std::string_view::npos ? what : what.substr(start + 3);
    throw Error({.code = ErrorCode::spec,
                 .message = "this is not JSON: " + printable(cause, 300),
                 .place = place_at(file_, text_, at),
                 .notes = {},
                 .hint = syntax_hint(at)});
  }

  std::string syntax_hint(std::size_t at) const {
    const std::string_view rest = text_.substr(std::min(at, text_.size()));
    const std::string_view before = text_.substr(0, text_.size() - rest.size());
    const std::size_t last = before.find_last_not_of(" \t\r\n");
    if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      return R"(the least spec is {"dtype": "bf16", "head_dim": 128})";
    }
    if (rest.starts_with('/') || rest.starts_with('#')) return "JSON has no comments";
    if (rest.starts_with('\'')) return "JSON wants double quotes";
    if ((rest.starts_with('}') || rest.starts_with(']')) && last != std::string_view::npos &&
        before[last] == ',') {
      return "delete the comma before it";
    }
    if (rest.starts_with('\n') || rest.starts_with('\t')) {
      return "a string ends in its line; write \\n for a new line and \\t for a tab";
    }
    const std::size_t word = before.find_last_of(" \t\r\n:,[{") + 1;
    for (std::string_view name : {"NaN", "nan", "Inf", "inf", "-Inf", "-inf"}) {
      if (text_.substr(word).starts_with(name)) return "JSON has neither NaN nor Infinity";
    }
    return {};
  }

  void require(const Json& root, const char* key) const {
    if (root.contains(key)) return;
    fail({}, fmt::format("the key \"{}\" is missing", key),
         std::string_view(key) == "dtype" ? R"(add "dtype": "f32", "f16" or "bf16")"
                                          : R"(add "head_dim": 128, the size of one row of q)");
  }

  void read_top(const std::string& key, const Json& value) {
    const SpecPath path = {key};
    if (key == "name") return void(spec_.name = string_at(path, value));
    if (key == "dtype") return void(spec_.dtype = dtype_at(path, value, tensor_dtype_names()));
    if (key == "head_dim") return void(spec_.head_dim = head_dim_at(path, value));
    if (key == "v_head_dim") return void(spec_.v_head_dim = head_dim_at(path, value));
    if (key == "layout") return void(spec_.layout = layout_at(path, value, kLayouts));
    if (key == "kv_layout") return void(spec_.kv_layout = layout_at(path, value, kKvLayouts));
    if (key == "kv_new") {
      expect(path, value, value.is_boolean(), "be true or false");
      return void(spec_.kv_new = value.get<bool>());
    }
    if (key == "kv_dtype") {
      return void(spec_.kv_dtype = dtype_at(path, value, kv_dtype_names()));
    }
    if (key == "out_dtype") {
      return void(spec_.out_dtype = dtype_at(path, value, tensor_dtype_names()));
    }
    if (key == "scale") return void(spec_.scale = number_at(path, value));
    for (const SnippetKind kind : snippet_kinds()) {
      if (key == to_string(kind)) return void(snippet_text(spec_, kind) = snippet_at(path, value));
    }
    if (key == "buffers") return read_buffers(path, value);
    if (key == "scalars") return read_scalars(path, value);
    if (key == "block") return read_block(path, value);
    if (key == "outputs") return read_outputs(path, value);
    if (key == "gradients") return read_gradients(path, value);
    if (key == "precise_math") return void(spec_.precise_math = bool_at(path, value));
    if (key == "f32_products") {
      const bool is_tf32 = name_at(path, value, kF32Products) == "tf32";
      return void(spec_.f32_products = is_tf32 ? F32Products::tf32 : F32Products::ieee);
    }
    if (key == "tactic") return read_tactic(path, value);
    fail_unknown_key(path, kTopKeys);
  }

  void read_buffers(const SpecPath& path, const Json& value) {
    expect(path, value, value.is_object(), "be an object: a name and a declaration each");
    for (const auto& [name, declaration] : value.items()) {
      spec_.buffers[name] = buffer_at({path[0], name}, declaration);
    }
  }

  BufferSpec buffer_at(const SpecPath& path, const Json& value) const {
    expect(path, value, value.is_object(),
           R"(be an object like {"dtype": "f32", "shape": ["num_q_heads"]})");
    BufferSpec buffer;
    for (const auto& [key, field] : value.items()) {
      const SpecPath at = below(path, key);
      if (key == "dtype") {
        buffer.dtype = dtype_at(at, field, buffer_dtype_names());
      } else if (key == "shape") {
        buffer.shape = shape_at(at, field);
      } else if (key == "bounds") {
        buffer.bounds =
            name_at(at, field, kBounds) == "trusted" ? Bounds::trusted : Bounds::clamped;
      } else if (key == "range") {
        buffer.range = range_at(at, field);
      } else if (key == "sorted") {
        buffer.sorted = sorted_at(at, field);
      } else {
        fail_unknown_key(at, kBufferKeys);
      }
    }
    for (const char* key : {"dtype", "shape"}) {
      if (value.contains(key)) continue;
      fail(path, fmt::format("{} lacks the key \"{}\"", to_string(path), key),
           R"(write {"dtype": "f32", "shape": ["num_q_heads"]})");
    }
    if (buffer.dtype == DType::i64 && buffer.range) {
      const SpecPath at = below(path, "range");
      for (std::size_t i = 0; i < 2; ++i) {
        require_exact(below(at, fmt::format("[{}]", i)), "write a whole number up to 2^53");
      }
    }
    return buffer;
  }

  std::vector<BufferDim> shape_at(const SpecPath& path, const Json& value) const {
    expect(path, value, value.is_array(), "be a list of 0 to 5 dimensions");
    std::vector<BufferDim> shape;
    for (std::size_t i = 0; i < value.size() && i <= kMaxBufferRank; ++i) {
      shape.push_back(dim_at(below(path, fmt::format("[{}]", i)), value[i]));
    }
    return shape;
  }

  BufferDim dim_at(const SpecPath& path, const Json& value) const {
    if (value.is_null()) return FreeDim{};
    if (value.is_number()) return integer_at(path, value);
    expect(path, value, value.is_string(),
           "be a number, null (any size), or one of " + one_of(kDims));
    const std::string name =
        name_at(path, value, kDims, "; or write a number, or null for any size");
    const auto index = std::ranges::find(kDims.names(), name) - kDims.names().begin();
    return static_cast<NamedDim>(index);
  }

  std::array<double, 2> range_at(const SpecPath& path, const Json& value) const {
    expect(path, value, value.is_array() && value.size() == 2,
           "be a list of two numbers: the least and the greatest value");
    return {number_at(below(path, "[0]"), value[0]), number_at(below(path, "[1]"), value[1])};
  }

  void read_scalars(const SpecPath& path, const Json& value) {
    expect(path, value, value.is_object(), "be an object: a name and a declaration each");
    for (const auto& [name, declaration] : value.items()) {
      spec_.scalars[name] = scalar_at({path[0], name}, declaration);
    }
  }

  ScalarSpec scalar_at(const SpecPath& path, const Json& value) const {
    expect(path, value, value.is_object(),
           R"(be an object like {"dtype": "f32", "default": 50.0})");
    ScalarSpec scalar;
    for (const auto& [key, field] : value.items()) {
      const SpecPath at = below(path, key);
      if (key == "dtype") {
        scalar.dtype = dtype_at(at, field, scalar_dtype_names(path.back()));
      } else if (key == "default") {
        scalar.default_value = number_at(at, field);
      } else {
        fail_unknown_key(at, kScalarKeys);
      }
    }
    if (!value.contains("dtype")) {
      fail(path, fmt::format("{} lacks the key \"dtype\"", to_string(path)),
           R"(add "dtype": "f32" or "dtype": "i32")");
    }
    if (scalar.dtype == DType::i64 && value.contains("default")) {
      require_exact(below(path, "default"), kSeedHint);
    }
    return scalar;
  }

  void read_block(const SpecPath& path, const Json& value) {
    expect(path, value, value.is_array() && value.size() == 2,
           "be a list of two numbers like [128, 128]: sides of a tile along q and kv");
    for (std::size_t i = 0; i < 2; ++i) {
      spec_.block[i] = integer_at(below(path, fmt::format("[{}]", i)), value[i]);
    }
  }

  void read_outputs(const SpecPath& path, const Json& value) {
    expect(path, value, value.is_array(), R"(be ["out"], ["out", "lse"] or a longer list)");
    spec_.outputs = {.out = false};
    for (std::size_t i = 0; i < value.size(); ++i) {
      const SpecPath at = below(path, fmt::format("[{}]", i));
      const std::string name = name_at(at, value[i], kOutputs);
      bool& wanted = name == "out"          ? spec_.outputs.out
                     : name == "lse"        ? spec_.outputs.lse
                     : name == "max_scores" ? spec_.outputs.max_scores
                                            : spec_.outputs.weights;
      if (wanted)
        fail(at, fmt::format("outputs names \"{}\" twice", name), "delete one of the two");
      wanted = true;
    }
  }

  void read_gradients(const SpecPath& path, const Json& value) {
    expect(path, value, value.is_array() && !value.empty(),
           R"(be a list of names like ["q", "k", "v"]; leave gradients out for none)");
    for (std::size_t i = 0; i < value.size(); ++i) {
      spec_.gradients.push_back(string_at(below(path, fmt::format("[{}]", i)), value[i]));
    }
  }

  void read_tactic(const SpecPath& path, const Json& value) {
    TacticSpec tactic;
    if (value.is_string()) {
      tactic.name = value.get<std::string>();
    } else {
      expect(path, value, value.is_object() && value.contains("name"),
             R"(be a name like "cpu", or an object like {"name": "cpu", "q_tile": 64})");
      for (const auto& [key, field] : value.items()) {
        const SpecPath at = below(path, key);
        if (key == "name") {
          tactic.name = string_at(at, field);
        } else {
          tactic.parameters[key] = integer_at(at, field);
        }
      }
    }
    spec_.tactic = std::move(tactic);
  }

  DType dtype_at(const SpecPath& path, const Json& value, const Names& allowed) const {
    expect(path, value, value.is_string(), "be " + one_of(allowed));
    const std::string name = value.get<std::string>();
    const std::optional<DType> dtype = dtype_from_string(name);
    if (dtype && is_listed(allowed, name)) return *dtype;
    const std::string alias = dtype_alias(name);
    const std::string hint = is_listed(allowed, alias) ? fmt::format("write \"{}\"", alias)
                                                       : did_you_mean(name, allowed);
    fail(path, wrong_value(path, shown(value), "be " + one_of(allowed)), hint);
  }

  Layout layout_at(const SpecPath& path, const Json& value, const Names& allowed) const {
    const bool is_of_pages = value == "paged" || value == "paged_x";
    if (is_of_pages && !is_listed(allowed, "paged")) {
      const std::string name = value.get<std::string>();
      fail(path, fmt::format("layout is \"{}\", which k and v alone can be", name),
           fmt::format(R"(write "layout": "packed", "kv_layout": "{}")", name));
    }
    const std::string name = name_at(path, value, allowed);
    for (const Layout layout : {Layout::bhsd, Layout::bshd, Layout::packed, Layout::paged}) {
      if (name == to_string(layout)) return layout;
    }
    return Layout::paged_x;
  }

  // 0 means "not given" in the struct, so it must not pass here.
  std::int64_t head_dim_at(const SpecPath& path, const Json& value) const {
    const std::int64_t head_dim = integer_at(path, value);
    expect(path, value, head_dim != 0, "be a number from 8 to 256");
    return head_dim;
  }

  std::string snippet_at(const SpecPath& path, const Json& value) const {
    if (value.is_number() || value.is_boolean()) {
      fail(path, wrong_value(path, with_kind(value, {}), "be a string"),
           fmt::format(R"(a snippet is C++ in quotes: "{}": "{}")", path[0], value.dump()));
    }
    std::string text = string_at(path, value);
    if (text.empty()) {
      fail(path, fmt::format("{} is empty", path[0]),
           fmt::format("leave {} out where nothing is to be done", path[0]));
    }
    return text;
  }

  std::string string_at(const SpecPath& path, const Json& value) const {
    expect(path, value, value.is_string(), "be a string");
    return value.get<std::string>();
  }

  bool bool_at(const SpecPath& path, const Json& value) const {
    expect(path, value, value.is_boolean(), "be true or false");
    return value.get<bool>();
  }

  Sorted sorted_at(const SpecPath& path, const Json& value) const {
    if (value.is_boolean()) return value.get<bool>();
    constexpr std::string_view kRule = R"(be true or false, or "promised")";
    const std::string name = value.is_string() ? value.get<std::string>() : "";
    if (is_listed(kSortedWords, name)) return Sorted::promised;
    fail(path, wrong_value(path, with_kind(value, kRule), kRule), did_you_mean(name, kSortedWords));
  }

  double number_at(const SpecPath& path, const Json& value) const {
    expect(path, value, value.is_number(), "be a number");
    return value.get<double>();
  }

  // A number is written as a whole one that a double holds. check_fields sees the rounded one.
  void require_exact(const SpecPath& path, std::string_view hint) const {
    const std::size_t begin = offset_of(positions_, path, false);
    const std::size_t end = text_.find_first_not_of("+-.0123456789eE", begin);
    const std::string_view spelling = text_.substr(begin, end - begin);
    if (is_exact_seed(spelling)) return;
    fail(path, wrong_value(path, printable(spelling), range_rule(DType::i64)), std::string(hint));
  }

  std::int64_t integer_at(const SpecPath& path, const Json& value) const {
    const bool fits =
        value.is_number_integer() &&
        (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
    const bool is_large =
        value.is_number_unsigned() ||
        (value.is_number_float() && std::fabs(value.get<double>()) >= 9223372036854775808.0);
    expect(path, value, fits,
           is_large ? "be a whole number that fits into 64 bits with a sign"
                    : "be a whole number, written without a point");
    return value.get<std::int64_t>();
  }

  std::string name_at(const SpecPath& path, const Json& value, const Names& allowed,
                      std::string_view also = {}) const {
    expect(path, value, value.is_string(), "be " + one_of(allowed));
    const std::string name = value.get<std::string>();
    if (!is_listed(allowed, name)) {
      fail(path, wrong_value(path, shown(value), "be " + one_of(allowed) + std::string(also)),
           did_you_mean(name, allowed));
    }
    return name;
  }

  void check_snippet_at(SnippetKind kind) const {
    const std::string key(to_string(kind));
    try {
      check_snippet_of(spec_, kind);
    } catch (const Error& error) {
      const SourceLocation place = place_at(file_, text_, offset_of(positions_, {key}, false));
      std::vector<std::string> notes = error.notes();
      notes.push_back(
          fmt::format("{} stands at {}:{}:{}", key, place.file, place.line, place.column));
      throw Error({.code = error.code(),
                   .message = error.message(),
                   .place = error.place(),
                   .notes = std::move(notes),
                   .hint = error.hint()});
    }
  }

  static SpecPath below(SpecPath path, std::string step) {
    path.push_back(std::move(step));
    return path;
  }

  void expect(const SpecPath& path, const Json& value, bool is_right, std::string_view rule) const {
    if (is_right) return;
    const std::string quoted = value.is_string() ? "delete the quotes" : "";
    const bool wants_number = rule.find("number") != std::string_view::npos;
    fail(path, wrong_value(path, with_kind(value, rule), rule),
         wants_number ? quoted : std::string());
  }

  [[noreturn]] void fail_unknown_key(const SpecPath& path, const Names& allowed) const {
    const std::string where =
        path.size() == 1 ? "" : " in " + to_string(SpecPath(path.begin(), path.end() - 1));
    std::string hint(path.size() == 1 ? usual_mistake(MistakeIn::key, path.back()) : "");
    if (hint.empty()) hint = did_you_mean(path.back(), allowed);
    report({.path = path,
            .message = fmt::format("unknown key \"{}\"{}; allowed are {}", printable(path.back()),
                                   where, one_of(allowed)),
            .hint = std::move(hint),
            .is_about_key = true});
  }

  [[noreturn]] void fail(const SpecPath& path, std::string message, std::string hint) const {
    report({.path = path, .message = std::move(message), .hint = std::move(hint)});
  }

  [[noreturn]] void report(const SpecProblem& problem) const {
    const std::size_t offset = offset_of(positions_, problem.path, problem.is_about_key);
    throw Error({.code = ErrorCode::spec,
                 .message = problem.message,
                 .place = place_at(file_, text_, offset),
                 .notes = {},
                 .hint = problem.hint});
  }

  std::string_view text_;
  std::string_view file_;
  JsonNode positions_;
  Spec spec_;
};

}  // namespace

Spec spec_from_json(std::string_view text, std::string_view file_name) {
  const DefaultFloatEnvironment floats;  // strtod rounds as the thread does
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return SpecReader(text, file_name).run();
}

Spec spec_from_file(const std::string& name) {
  const std::filesystem::path path = name;
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    throw Error(ErrorCode::file, fmt::format("{} is a folder", path.string()), "name a spec in it");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxSpecBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (!file.eof() && text.size() <= kMaxSpecBytes) {
    throw Error(
        ErrorCode::file, fmt::format("cannot read the spec {}", path.string()),
        std::filesystem::exists(path, status) ? "check its permissions" : "there is no such file");
  }
  return spec_from_json(text, path.string());
}

}  // namespace tilewright
