#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "template_text.hpp"
#include "value.hpp"

namespace tilewright::jinja {

struct Expression;
struct Filter;  // filters.hpp
using ExpressionPtr = std::unique_ptr<Expression>;

struct Literal {
  Value value;
};
struct Name {
  std::string_view name;
};
/// [a, b]
struct ListLiteral {
  std::vector<ExpressionPtr> items;
};
/// a.name
struct Attribute {
  ExpressionPtr object;
  std::string_view name;
};
/// a[index]
struct Index {
  ExpressionPtr object;
  ExpressionPtr index;
};
/// range(end), range(begin, end) or range(begin, end, step)
struct Range {
  std::vector<ExpressionPtr> bounds;
};
/// a|filter or a|filter(argument)
struct FilterCall {
  ExpressionPtr input;
  const Filter* filter;
  ExpressionPtr argument;  ///< null: the filter takes none
};
/// a is none, a is not none
struct IsNone {
  ExpressionPtr input;
  bool negated;
};
/// not a
struct Not {
  ExpressionPtr operand;
};
/// a + b; -a is 0 - a
struct Binary {
  std::string_view op;  ///< as it is written: "and", "//"
  ExpressionPtr left;
  ExpressionPtr right;
};
/// a if condition else b
struct InlineIf {
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;
};

struct Expression {
  using Node = std::variant<Literal, Name, ListLiteral, Attribute, Index, Range, FilterCall, IsNone,
                            Not, Binary, InlineIf>;
  std::uint32_t offset;  ///< what an error about this node points at: a name, an operator
  Node node;
};

struct Statement;
using Block = std::vector<Statement>;

struct Text {
  std::string_view text;
};
struct Print {
  ExpressionPtr expression;
};
struct If {
  struct Branch {
    ExpressionPtr condition;  ///< null: else
    Block body;
  };
  std::vector<Branch> branches;
};
struct For {
  std::string_view variable;
  ExpressionPtr items;
  std::uint32_t items_begin;
  Block body;
};
struct Set {
  std::string_view variable;
  ExpressionPtr value;
};
struct Include {
  ExpressionPtr name;
  std::uint32_t name_begin;
};
/// #include "name", a line of C++
struct HeaderInclude {
  std::string_view name;
  std::uint32_t name_begin;
};

struct Statement {
  std::uint32_t offset;  ///< of the text, the printed expression, or the tag's name
  std::variant<Text, Print, If, For, Set, Include, HeaderInclude> node;
};

/// A parsed template. The nodes point into the text.
struct Template {
  explicit Template(TemplateText source_text) : source(std::move(source_text)) {}
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  TemplateText source;
  Block body;
  bool is_header = false;  ///< it says `#pragma once`
};

/// Parses a template. @throws PlacedComplaint with the first thing that is wrong
std::unique_ptr<const Template> parse_template(TemplateText source);

}  // namespace tilewright::jinja
