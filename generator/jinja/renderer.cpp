#include "generator/jinja/renderer.hpp"

#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/jinja/literals.hpp"
#include "generator/jinja/operators.hpp"
#include "generator/jinja/parser.hpp"

namespace tilewright::jinja {

Rendered Renderer::render(std::string_view name) {
  try {
    render_template(name, 0);
  } catch (const PlacedComplaint& complaint) {
    throw located(complaint);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::memory, fmt::format("no memory is left to render {}", quoted(name)));
  }
  return {output_.take_text(), output_.take_map(), evaluator_.variables_read(), std::move(files_)};
}

void Renderer::render_template(std::string_view name, std::uint32_t include_offset) {
  const Template& parsed = load(name, include_offset);
  frames_.push_back({&parsed.source, include_offset});
  run(parsed.body);
  frames_.pop_back();
}

const Template& Renderer::load(std::string_view name, std::uint32_t include_offset) {
  const auto found = templates_.find(name);
  if (found != templates_.end()) return *found->second;
  std::optional<std::string> text = loader_.load(name);
  if (!text) {
    throw PlacedComplaint{include_offset,
                          {fmt::format("no template is called {}", quoted(name)),
                           did_you_mean(name, loader_.names()) + loader_.origin()}};
  }
  files_.emplace_back(name);
  TemplateText source(std::string(name), *text);
  try {
    auto parsed = parse_template(TemplateText(source));
    return *templates_.emplace(std::string(name), std::move(parsed)).first->second;
  } catch (const PlacedComplaint& complaint) {
    // The place lies in the template that could not be parsed.
    frames_.push_back({&source, include_offset});
    throw located(complaint);
  }
}

void Renderer::run(const Block& block) {
  for (const Statement& statement : block) {
    try {
      evaluator_.budget().charge();
      std::visit([&](const auto& node) { run(statement, node); }, statement.node);
    } catch (Complaint& complaint) {
      throw PlacedComplaint{statement.offset, std::move(complaint)};
    }
  }
}

void Renderer::run(const Statement& statement, const Text& text) {
  evaluator_.budget().charge_bytes(text.text.size());
  output_.add_text(text.text, origin_of(statement.offset));
}

void Renderer::run(const Statement& statement, const Print& print) {
  const Value value = evaluator_.evaluate(*print.expression);
  const Origin origin = origin_of(statement.offset);
  if (const Splice* splice = value.as_splice()) {
    output_.add_splice(*splice, origin, evaluator_.budget());
  } else {
    output_.add_value(to_text(value), origin);
  }
}

void Renderer::run(const Statement&, const If& node) {
  for (const If::Branch& branch : node.branches) {
    if (branch.condition && !evaluator_.is_true(*branch.condition)) continue;
    return run(branch.body);
  }
}

void Renderer::run(const Statement&, const For& node) {
  const List items = loop_items(node);
  if (items.empty()) return run(node.otherwise);
  evaluator_.loops().push_back({&items, 0});
  for (std::size_t i = 0; i < items.size(); ++i) {
    evaluator_.loops().back().index = i;
    evaluator_.scopes().push();
    assign(node.targets, items[i], node.items_begin);
    run(node.body);
    evaluator_.scopes().pop();
  }
  evaluator_.loops().pop_back();
}

List Renderer::loop_items(const For& node) {
  const Value value = evaluator_.evaluate(*node.items);
  List items;
  if (const List* list = value.as_list()) {
    items = *list;
  } else if (const Map* map = value.as_map()) {
    for (const auto& [key, item] : *map) items.emplace_back(key);
  } else {
    throw PlacedComplaint{node.items_begin,
                          {fmt::format("a loop needs a list and got {}", a_type(value)),
                           value.as_int() ? "write range(...) to count" : ""}};
  }
  evaluator_.budget().charge(static_cast<std::int64_t>(items.size()));
  if (!node.condition) return items;
  List kept;
  for (Value& item : items) {
    evaluator_.scopes().push();
    assign(node.targets, item, node.items_begin);
    const bool keep = evaluator_.is_true(*node.condition);
    evaluator_.scopes().pop();
    if (keep) kept.push_back(std::move(item));
  }
  return kept;
}

void Renderer::assign(const std::vector<std::string_view>& targets, const Value& value,
                      std::uint32_t offset) {
  if (const auto* text = value.as_string()) evaluator_.budget().charge_bytes(text->size());
  if (targets.size() == 1) return evaluator_.scopes().set(targets[0], value);
  const List* const parts = value.as_list();
  if (!parts || parts->size() != targets.size()) {
    const std::string got =
        parts ? fmt::format("a list of {}", parts->size()) : std::string(a_type(value));
    throw PlacedComplaint{
        offset,
        {fmt::format("{} names need a list of {} and got {}", targets.size(), targets.size(), got),
         value.as_string() ? "write map.items() for pairs" : ""}};
  }
  for (std::size_t i = 0; i < targets.size(); ++i) evaluator_.scopes().set(targets[i], (*parts)[i]);
}

void Renderer::run(const Statement&, const Set& node) {
  assign(node.targets, evaluator_.evaluate(*node.value), node.value_begin);
}

void Renderer::run(const Statement&, const Include& node) {
  const std::uint32_t offset = node.name_begin;
  const Value name = evaluator_.evaluate(*node.name);
  if (!name.as_string()) {
    throw PlacedComplaint{offset,
                          {fmt::format("a template's name is a string and not {}", a_type(name))}};
  }
  if (frames_.size() >= static_cast<std::size_t>(kMaxIncludeDepth)) {
    throw PlacedComplaint{offset,
                          {fmt::format("includes nest deeper than {} levels", kMaxIncludeDepth),
                           "does a template include itself?"}};
  }
  // As in Jinja, the included template sees every variable but `loop`.
  std::vector<LoopState> hidden_loops;
  hidden_loops.swap(evaluator_.loops());
  evaluator_.scopes().push();
  render_template(*name.as_string(), offset);
  evaluator_.scopes().pop();
  hidden_loops.swap(evaluator_.loops());
}

Origin Renderer::origin_of(std::uint32_t offset) const {
  const TemplateText& source = *frames_.back().source;
  const Position position = source.position(offset);
  return {source.name(), position.line, position.column, false};
}

Error Renderer::located(const PlacedComplaint& complaint) const {
  Error::Details details{.code = ErrorCode::kernel_template,
                         .message = complaint.complaint.message,
                         .place = std::nullopt,
                         .notes = {},
                         .hint = complaint.complaint.hint};
  if (frames_.empty()) return Error(std::move(details));
  const TemplateText& source = *frames_.back().source;
  const Position at = source.position(complaint.offset);
  details.place = Place{source.name(), at.line, at.column, std::string(source.line(at.line))};
  for (std::size_t i = frames_.size(); i > 1; --i) {
    const TemplateText& includer = *frames_[i - 2].source;
    const Position from = includer.position(frames_[i - 1].include_offset);
    details.notes.push_back(
        fmt::format("included from {}:{}:{}", includer.name(), from.line, from.column));
  }
  return Error(std::move(details));
}

}  // namespace tilewright::jinja
