#include "generator/render/engine/renderer.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_name.hpp"

namespace tilewright::jinja {

Rendered render(const Loader& loader, std::string_view name, const Map& context) {
  return Renderer(loader, context).render(name);
}

Rendered Renderer::render(std::string_view name) {
  try {
    const Template& root = load(name, 0);
    last_header_ = &root.source;
    render_template(root, 0, true);
  } catch (const PlacedComplaint& complaint) {
    throw located(complaint);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::memory, fmt::format("no memory is left to render {}", in_quotes(name)));
  }
  return {output_.take_text(), output_.take_map(), evaluator_.variables_read(), std::move(files_)};
}

void Renderer::render_template(const Template& parsed, std::uint32_t include_offset,
                               bool is_header) {
  if (is_header) headers_.insert(&parsed);
  frames_.push_back(
      {&parsed.source, include_offset, is_header ? &parsed.source : frames_.back().header});
  run(parsed.body);
  is_between_headers_ |= is_header;
  frames_.pop_back();
}

// The included template sees every variable; what it sets ends with it.
void Renderer::render_included(const Template& parsed, std::uint32_t include_offset,
                               bool is_header) {
  if (frames_.size() >= static_cast<std::size_t>(kMaxIncludeDepth)) {
    throw PlacedComplaint{include_offset,
                          {fmt::format("includes nest deeper than {} levels", kMaxIncludeDepth),
                           "does a template include itself?"}};
  }
  evaluator_.scopes().push();
  is_between_headers_ |= is_header;
  render_template(parsed, include_offset, is_header);
  evaluator_.scopes().pop();
}

const Template& Renderer::load(std::string_view name, std::uint32_t include_offset) {
  const Template* const found = find(std::string(name), include_offset);
  if (!found) fail_missing(name, include_offset);
  return *found;
}

// A name without a folder is a neighbour's. A header that is rendered is found without the ending
// that says so.
const Template& Renderer::load_header(std::string_view name, std::uint32_t include_offset) {
  const std::string_view includer = frames_.back().source->name();
  const bool is_neighbour = name.find('/') == std::string_view::npos;
  const std::string_view folder = is_neighbour ? includer.substr(0, includer.rfind('/') + 1) : "";
  const std::string path = fmt::format("{}{}", folder, name);
  const Template* found = find(path, include_offset);
  if (!found) found = find(path + ".jinja", include_offset);
  if (!found) fail_missing(path, include_offset);
  return *found;
}

const Template* Renderer::find(const std::string& name, std::uint32_t include_offset) {
  const auto found = templates_.find(name);
  if (found != templates_.end()) return found->second.get();
  std::optional<std::string> text = loader_.load(name);
  if (!text) return templates_.emplace(name, nullptr).first->second.get();
  files_.push_back(name);
  TemplateText source(name, *text);
  try {
    auto parsed = parse_template(TemplateText(source));
    return templates_.emplace(name, std::move(parsed)).first->second.get();
  } catch (const PlacedComplaint& complaint) {
    // The place lies in the template that could not be parsed.
    frames_.push_back({&source, include_offset, nullptr});
    throw located(complaint);
  }
}

void Renderer::fail_missing(std::string_view name, std::uint32_t include_offset) const {
  const std::string origin = loader_.origin();
  std::string hint = did_you_mean(name, loader_.names());
  if (!origin.empty()) hint += hint.empty() ? origin : fmt::format(" ({})", origin);
  throw PlacedComplaint{
      include_offset, {fmt::format("no template is called {}", in_quotes(name)), std::move(hint)}};
}

void Renderer::refuse_circle(const Template& header, std::uint32_t include_offset) const {
  std::string circle;
  for (const Frame& frame : frames_) {
    const bool begins = frame.source == &header.source;
    if (begins || !circle.empty()) circle += frame.source->name() + ", ";
  }
  if (circle.empty()) return;
  throw PlacedComplaint{
      include_offset,
      {fmt::format("headers include each other in a circle: {}{}", circle, header.source.name()),
       "move what both need to a header that includes neither"}};
}

// What is added next belongs to another header than the text before: a line says so. Blank lines
// around includes are left out but for one.
void Renderer::begin_text() {
  const TemplateText* const header = frames_.back().header;
  const bool is_other = header != last_header_;
  if (is_other || (is_between_headers_ && skipped_blank_line_)) {
    const Origin origin{header->name(), 1, 1, false};
    if (!output_.ends_with_blank_line()) output_.add("\n", origin);
    if (is_other) output_.add(fmt::format("// ---- {} ----\n", header->name()), origin);
  }
  last_header_ = header;
  is_between_headers_ = false;
  skipped_blank_line_ = false;
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
  std::size_t begin = 0;
  if (is_between_headers_) {
    begin = std::min(text.text.find_first_not_of('\n'), text.text.size());
    skipped_blank_line_ |= begin > 0;
    if (begin == text.text.size()) return;
  }
  begin_text();
  output_.add(text.text.substr(begin),
              origin_of(statement.offset + static_cast<std::uint32_t>(begin)), true);
}

void Renderer::run(const Statement& statement, const Print& print) {
  const Value value = evaluator_.evaluate(*print.expression);
  const Origin origin = origin_of(statement.offset);
  begin_text();
  if (const Splice* splice = value.as_splice()) {
    output_.add_splice(*splice, origin, evaluator_.budget());
  } else {
    output_.add(value.text(), origin);
  }
}

void Renderer::run(const Statement&, const If& node) {
  for (const If::Branch& branch : node.branches) {
    if (branch.condition && !evaluator_.evaluate(*branch.condition).is_true()) continue;
    return run(branch.body);
  }
}

void Renderer::run(const Statement&, const For& node) {
  const Value value = evaluator_.evaluate(*node.items);
  const List* const items = value.as_list();
  if (!items) {
    throw PlacedComplaint{node.items_begin,
                          {fmt::format("a loop needs a list and got {}", value.a_type()),
                           value.as_int() ? "write range(...) to count" : ""}};
  }
  evaluator_.budget().charge(static_cast<std::int64_t>(items->size()));
  for (std::size_t i = 0; i < items->size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    evaluator_.scopes().push();
    set(node.variable, (*items)[i]);
    set("loop", Map{{"index0", index}, {"last", i + 1 == items->size()}});
    run(node.body);
    evaluator_.scopes().pop();
  }
}

void Renderer::set(std::string_view variable, const Value& value) {
  if (const auto* text = value.as_string()) evaluator_.budget().charge_bytes(text->size());
  evaluator_.scopes().set(variable, value);
}

void Renderer::run(const Statement&, const Set& node) {
  set(node.variable, evaluator_.evaluate(*node.value));
}

void Renderer::run(const Statement&, const Include& node) {
  const std::uint32_t offset = node.name_begin;
  const Value name = evaluator_.evaluate(*node.name);
  if (!name.as_string()) {
    throw PlacedComplaint{offset,
                          {fmt::format("a template's name is a string and not {}", name.a_type())}};
  }
  const Template& parsed = load(*name.as_string(), offset);
  if (parsed.is_header && headers_.contains(&parsed)) return;
  render_included(parsed, offset, parsed.is_header);
}

void Renderer::run(const Statement&, const HeaderInclude& node) {
  const Template& header = load_header(node.name, node.name_begin);
  refuse_circle(header, node.name_begin);
  is_between_headers_ = true;
  if (!headers_.contains(&header)) render_included(header, node.name_begin, true);
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
  details.place =
      SourceLocation{source.name(), at.line, at.column, std::string(source.line(at.line))};
  for (std::size_t i = frames_.size(); i > 1; --i) {
    const TemplateText& includer = *frames_[i - 2].source;
    const Position from = includer.position(frames_[i - 1].include_offset);
    details.notes.push_back(
        fmt::format("included from {}:{}:{}", includer.name(), from.line, from.column));
  }
  return Error(std::move(details));
}

}  // namespace tilewright::jinja
