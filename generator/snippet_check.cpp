#include "generator/snippet_check.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/declared_names.hpp"
#include "generator/operand_types.hpp"
#include "generator/size_calls.hpp"
#include "generator/snippet_brackets.hpp"
#include "generator/snippet_words.hpp"
#include "generator/usual_mistakes.hpp"

namespace tilewright {
namespace {

class SpecCheck {
 public:
  SpecCheck(const Spec& spec, const SnippetBrackets& snippet) : spec_(spec), snippet_(snippet) {}

  void run() const {
    for (std::size_t i = 0; i < snippet_.size(); ++i) {
      if (snippet_.text(i) == "^" || snippet_.text(i) == "xor") check_power(i);
      if (!is_identifier(snippet_.tokens()[i]) || snippet_.before(i) == ".") continue;
      check_read(i);
      check_mistake(i);
    }
  }

 private:
  bool is_declared(std::string_view name) const {
    const std::string key(name);
    return spec_.buffers.contains(key) || spec_.scalars.contains(key) ||
           is_one_of(name, snippet_functions()) || is_one_of(name, snippet_variables()) ||
           may_declare(snippet_.tokens(), name);
  }

  // Then that one is meant, as the compiler's message will say.
  bool is_near_a_declared_one(std::string_view name) const {
    std::vector<std::string> declared;
    for (const auto& [key, buffer] : spec_.buffers) declared.push_back(key);
    for (const auto& [key, scalar] : spec_.scalars) declared.push_back(key);
    return nearest_name(name, declared).has_value();
  }

  void check_mistake(std::size_t i) const {
    const std::string_view name = snippet_.text(i);
    const std::string_view advice = usual_mistake(MistakeIn::snippet, name);
    if (advice.empty() || is_declared(name) || is_near_a_declared_one(name)) return;
    snippet_.fail(i, fmt::format("a snippet does not know \"{}\"", name), std::string(advice));
  }

  // doc[b][q_idx]
  void check_read(std::size_t i) const {
    const auto buffer = spec_.buffers.find(std::string(snippet_.text(i)));
    const bool is_read = buffer != spec_.buffers.end() && snippet_.text(i + 1) == "[" &&
                         !may_declare(snippet_.tokens(), snippet_.text(i));
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
  const std::string& text = kind == SnippetKind::score_mod ? spec.score_mod : spec.mask_mod;
  if (text.empty()) return;
  check_snippet(kind, text);
  const SnippetBrackets snippet(kind, text, tokenize(text, kind));
  SpecCheck(spec, snippet).run();
  check_size_calls(spec, kind, text);
}

}  // namespace tilewright
