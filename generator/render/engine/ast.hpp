#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "template_text.hpp"
#include "value.hpp"

namespace tilewright::jinja {

struct Expression;
struct Filter;     // filters.hpp
struct ValueTest;  // value_tests.hpp
using ExpressionPtr = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string_view, ExpressionPtr>> named;
};

struct Literal {
  Value value;
};
struct Name {
  std::string_view name;
};
/// [a, b], and (a, b): tuples are lists.
struct ListLiteral {
  std::vector<ExpressionPtr> items;
};
/// {"key": value}
struct MapLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
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
/// a[begin:end]; either may be absent
struct Slice {
  ExpressionPtr object;
  ExpressionPtr begin;
  ExpressionPtr end;
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
/// a|filter(arguments)
struct FilterCall {
  ExpressionPtr input;
  const Filter* filter;
  CallArguments arguments;
};
/// a is [not] test argument
struct TestCall {
  ExpressionPtr input;
  const ValueTest* test;
  ExpressionPtr argument;
  bool negated;
};
enum class UnaryOperator : std::uint8_t { plus, minus, logical_not };
struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};
enum class BinaryOperator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left;
  ExpressionPtr right;
};
/// a and b, a or b: the value of one of them, as in Jinja
struct Logical {
  bool is_and;
  ExpressionPtr left;
  ExpressionPtr right;
};
enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, in, not_in };
/// a < b <= c: each neighbour with the next
struct Compare {
  struct Link {
    Comparison op;
    std::uint32_t offset;  ///< of the operator
    ExpressionPtr right;
  };
  ExpressionPtr first;
  std::vector<Link> links;
};
/// a ~ b ~ c
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
/// a if condition else b; without else the value is undefined where the condition is false
struct InlineIf {
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;
};

struct Expression {
  using Node =
      std::variant<Literal, Name, ListLiteral, MapLiteral, Attribute, Index, Slice, Call,
                   FilterCall, TestCall, Unary, Binary, Logical, Compare, Concatenation, InlineIf>;
  std::uint32_t offset;  ///< what an error about this node points at: a name, an operator
  int depth;             ///< levels of nodes, itself included; bounded by the parser
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
  std::vector<std::string_view> targets;  ///< more than one: each item is unpacked
  ExpressionPtr items;
  std::uint32_t items_begin;
  ExpressionPtr condition;  ///< null: every item
  Block body;
  Block otherwise;
};
struct Set {
  std::vector<std::string_view> targets;
  ExpressionPtr value;
  std::uint32_t value_begin;
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

}  // namespace tilewright::jinja
