#include "generator/snippet/check.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/messages/usual_mistakes.hpp"
#include "generator/snippet/brackets.hpp"
#include "generator/snippet/declared_names.hpp"
#include "generator/snippet/operand_types.hpp"
#include "generator/snippet/size_calls.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

class SpecCheck {
 public:
  SpecCheck(const Spec& spec, const SnippetBrackets& snippet) : spec_(spec), snippet_(snippet) {}

  void run() const {
    check_quotes();
    for (std::size_t i = 0; i < snippet_.size(); ++i) {
      if (snippet_.text(i) == "^" || snippet_.text(i) == "xor") check_power(i);
      if (!is_identifier(snippet_.tokens()[i]) || snippet_.before(i) == ".") continue;
      check_token_name(i);
      check_visible(i);
      check_seed(i);
      check_read(i);
      check_mistake(i);
    }
  }

 private:
  bool is_declared(std::string_view name) const {
    const std::string key(name);
    return spec_.buffers.contains(key) || spec_.scalars.contains(key) ||
           is_one_of(name, snippet_functions()) || is_one_of(name, snippet_variables()) ||
           may_declare(snippet_, name);
  }

  // Then that one is meant, as the compiler's message will say.
  bool is_near_a_declared_one(std::string_view name) const {
    std::vector<std::string> declared;
    for (const auto& [key, buffer] : spec_.buffers) declared.push_back(key);
    for (const auto& [key, scalar] : spec_.scalars) {
      if (is_read_by_snippets(scalar)) declared.push_back(key);
    }
    return nearest_name(name, declared).has_value();
  }

  // "dropout": "\"0.1\""
  void check_quotes() const {
    const std::string_view text = snippet_.text(0);
    if (snippet_.size() != 1 || text.size() < 2 || !text.starts_with('"')) return;
    snippet_.fail(
        0, fmt::format("{} is a string, and a snippet is C++", text),
        fmt::format("delete the inner quotes: \"{}\": {}", to_string(snippet_.kind()), text));
  }

  void check_mistake(std::size_t i) const {
    const std::string_view name = snippet_.text(i);
    const std::string_view advice = usual_mistake(MistakeIn::snippet, name);
    if (advice.empty() || is_declared(name) || is_near_a_declared_one(name)) return;
    snippet_.fail(i, fmt::format("a snippet does not know \"{}\"", name), std::string(advice));
  }

  void check_token_name(std::size_t i) const {
    const std::string_view name = snippet_.text(i);
    if (spec_.is_packed() || !is_token_name(name) || may_declare(snippet_, name)) return;
    snippet_.fail(i, fmt::format("'{}' is known in packed layouts only", name),
                  fmt::format("write {}, or \"layout\": \"packed\" in the spec",
                              name == "q_token" ? "q_idx" : "kv_idx"));
  }

  void check_visible(std::size_t i) const {
    const std::string_view name = snippet_.text(i);
    const SnippetKind kind = snippet_.kind();
    const bool is_of_scores = kind == SnippetKind::score_mod || kind == SnippetKind::mask_mod;
    if (is_of_scores || !is_one_of(name, snippet_variables()) || sees(kind, name) ||
        may_declare(snippet_, name)) {
      return;
    }
    std::vector<std::string> seen;
    for (const std::string& variable : snippet_variables()) {
      const bool exists = spec_.is_packed() || !is_token_name(variable);
      if (exists && sees(kind, variable)) seen.push_back(variable);
    }
    snippet_.fail(i, fmt::format("{} does not see {}", to_string(kind), name),
                  fmt::format("it sees {}, buffers and scalars", fmt::join(seen, ", ")));
  }

  // Kernels pass it to dropout alone.
  void check_seed(std::size_t i) const {
    const auto seed = spec_.scalars.find("seed");
    const bool is_wide = seed != spec_.scalars.end() && seed->second.dtype == DType::i64;
    if (!is_wide || snippet_.text(i) != "seed" || may_declare(snippet_, "seed")) return;
    snippet_.fail(
        i, "the scalar seed is dropout's, and no snippet reads it",
        R"(declare it as a buffer, {"dtype": "i64", "shape": []}, which snippets may read)");
  }

  // doc[b][q_idx]
  void check_read(std::size_t i) const {
    const auto buffer = spec_.buffers.find(std::string(snippet_.text(i)));
    const bool is_read = buffer != spec_.buffers.end() && snippet_.text(i + 1) == "[" &&
                         !may_declare(snippet_, snippet_.text(i));
    if (!is_read || buffer->second.shape.size() < 2) return;
    std::string indices;
    std::size_t end = i + 1;
    for (; end < snippet_.size() && snippet_.text(end) == "["; end = snippet_.next(end)) {
      indices += (indices.empty() ? "" : ", ") + snippet_.excerpt(snippet_.inside(end));
    }
    snippet_.fail(i + 1,
                  fmt::format("buffer \"{}\" has {} dimensions, which [] does not read",
                              buffer->first, buffer->second.shape.size()),
                  fmt::format("write {}({})", buffer->first, indices));
  }

  void check_power(std::size_t i) const {
    if (i == 0) return;
    const SnippetBrackets::Range left = snippet_.operand_before(i);
    const SnippetBrackets::Range right = snippet_.operand_from(i + 1);
    const OperandTypes types(spec_, snippet_);
    if (types.of(left) != OperandType::floating && types.of(right) != OperandType::floating) return;
    snippet_.fail(i, "^ is exclusive or, which floats do not have",
                  fmt::format("for a power write pow({}, {})", snippet_.excerpt(left),
                              snippet_.excerpt(right)));
  }

  const Spec& spec_;
  const SnippetBrackets& snippet_;
};

}  // namespace

void check_snippet_of(const Spec& spec, SnippetKind kind) {
  const std::string& text = snippet_text(spec, kind);
  if (text.empty()) return;
  check_snippet(kind, text);
  const SnippetBrackets snippet(kind, text, tokenize(text, kind));
  SpecCheck(spec, snippet).run();
  check_size_calls(spec, kind, text);
}

}  // namespace tilewright
