#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/float_environment.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/spec_json.hpp"

namespace tilewright {
namespace {

std::string string_text(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\t':
        result += "\\t";
        break;
      default:
        result +=
            static_cast<unsigned char>(c) < 0x20 ? fmt::format("\\u{:04x}", c) : std::string(1, c);
    }
  }
  return result + '"';
}

// Shortest text that reads back as the same double; whole numbers keep a point if they had one.
std::string number(double value, bool whole) {
  const std::string text = fmt::format("{}", value);
  const bool plain = text.find_first_of(".en") == std::string::npos;
  return plain && !whole ? text + ".0" : text;
}

std::string number(double value, DType dtype) {
  if (is_floating(dtype)) return number(value, false);
  return fmt::format("{}", static_cast<std::int64_t>(value));
}

std::string dim_text(const BufferDim& dim) {
  if (const auto* size = std::get_if<std::int64_t>(&dim)) return std::to_string(*size);
  if (const auto* named = std::get_if<NamedDim>(&dim)) return string_text(to_string(*named));
  return "null";
}

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

std::string list(const std::vector<std::string>& items) {
  return '[' + joined(items) + ']';
}
std::string object(const std::vector<std::string>& items) {
  return '{' + joined(items) + '}';
}

std::string field(std::string_view key, std::string_view value) {
  return fmt::format("{}: {}", string_text(key), value);
}

std::string declared_buffer(const BufferSpec& buffer) {
  std::vector<std::string> dims;
  for (const BufferDim& dim : buffer.shape) dims.push_back(dim_text(dim));
  std::vector<std::string> fields = {field("dtype", string_text(to_string(buffer.dtype))),
                                     field("shape", list(dims))};
  if (buffer.bounds == Bounds::trusted) fields.push_back(field("bounds", string_text("trusted")));
  if (buffer.range) {
    const auto [least, greatest] = *buffer.range;
    fields.push_back(
        field("range", list({number(least, buffer.dtype), number(greatest, buffer.dtype)})));
  }
  if (buffer.sorted) {
    fields.push_back(
        field("sorted", buffer.sorted.is_promised() ? string_text("promised") : "true"));
  }
  return object(fields);
}

std::string declared_scalar(const ScalarSpec& scalar) {
  std::vector<std::string> fields = {field("dtype", string_text(to_string(scalar.dtype)))};
  if (scalar.default_value) {
    fields.push_back(field("default", number(*scalar.default_value, scalar.dtype)));
  }
  return object(fields);
}

std::string tactic_text(const TacticSpec& tactic) {
  if (tactic.parameters.empty()) return string_text(tactic.name);
  std::vector<std::string> fields = {field("name", string_text(tactic.name))};
  for (const auto& [name, value] : tactic.parameters) {
    fields.push_back(field(name, std::to_string(value)));
  }
  return object(fields);
}

std::string names_text(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(string_text(name));
  return list(texts);
}

// One entry a line, indented below its key.
template <typename Map, typename Describe>
std::string group_text(const Map& entries, const Describe& describe) {
  std::string text;
  for (const auto& [name, entry] : entries) {
    text += (text.empty() ? "{\n    " : ",\n    ") + field(name, describe(entry));
  }
  return text + "\n  }";
}

}  // namespace

std::string to_json(const Spec& spec) {
  const DefaultFloatEnvironment floats;
  const Spec defaults;
  std::vector<std::string> fields;
  const auto add = [&fields](bool wanted, std::string_view key, const std::string& value) {
    if (wanted) fields.push_back(field(key, value));
  };
  const auto name_of = [](auto value) { return string_text(to_string(value)); };

  add(!spec.name.empty(), "name", string_text(spec.name));
  add(true, "dtype", name_of(spec.dtype));
  add(true, "head_dim", std::to_string(spec.head_dim));
  add(spec.v_head_dim != 0, "v_head_dim", std::to_string(spec.v_head_dim));
  add(spec.layout != defaults.layout, "layout", name_of(spec.layout));
  if (spec.kv_layout) add(true, "kv_layout", name_of(*spec.kv_layout));
  add(spec.kv_new, "kv_new", "true");
  if (spec.kv_dtype) add(true, "kv_dtype", name_of(*spec.kv_dtype));
  if (spec.out_dtype) add(true, "out_dtype", name_of(*spec.out_dtype));
  if (spec.scale) add(true, "scale", number(*spec.scale, false));
  for (const SnippetKind kind : snippet_kinds()) {
    const std::string& text = snippet_text(spec, kind);
    add(!text.empty(), to_string(kind), string_text(text));
  }
  add(!spec.buffers.empty(), "buffers", group_text(spec.buffers, declared_buffer));
  add(!spec.scalars.empty(), "scalars", group_text(spec.scalars, declared_scalar));
  add(spec.block != defaults.block, "block",
      list({std::to_string(spec.block[0]), std::to_string(spec.block[1])}));
  add(spec.outputs != defaults.outputs, "outputs", names_text(output_names(spec.outputs)));
  add(!spec.gradients.empty(), "gradients", names_text(spec.gradients));
  if (spec.precise_math) add(true, "precise_math", *spec.precise_math ? "true" : "false");
  add(spec.f32_products != defaults.f32_products, "f32_products", name_of(spec.f32_products));
  if (spec.tactic) add(true, "tactic", tactic_text(*spec.tactic));

  std::string text;
  for (const std::string& field : fields) text += (text.empty() ? "{\n  " : ",\n  ") + field;
  return text + "\n}\n";
}

}  // namespace tilewright
