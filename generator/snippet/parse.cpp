#include "generator/snippet/parse.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/enum_names.hpp"
#include "generator/snippet/names.hpp"
#include "generator/snippet/number.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;

struct NotUnderstood {
  std::size_t token;
  std::string reason;
};

// `auto` says no type.
constexpr std::array<std::pair<Type, std::string_view>, 6> kTypesOfWords = {
    {{Type::integer, "int"},
     {Type::floating, "float"},
     {Type::floating, "double"},
     {Type::truth, "bool"},
     {Type::wide, "long"},
     {Type::unknown, "auto"}}};

Type type_of(DType dtype) {
  if (is_floating(dtype)) return Type::floating;
  return is_wide_integer(dtype) ? Type::wide : Type::integer;
}

const Operation* find_function(std::string_view name) {
  const auto is_named = [&](const Operation& row) { return is_one_of(name, function_names(row)); };
  const auto found = std::find_if(operations().begin(), operations().end(), is_named);
  return found == operations().end() ? nullptr : &*found;
}

class Parser {
 public:
  Parser(SnippetKind kind, std::span<const SnippetToken> tokens, const Spec& spec)
      : tokens_(tokens), spec_(spec), scopes_(1) {
    for (const auto& [name, buffer] : spec.buffers) fresh(name);
    for (const auto& [name, scalar] : spec.scalars) declare(name, {.type = type_of(scalar.dtype)});
    for (const std::string& name : snippet_variables()) {
      if (name != "score" && sees(kind, name)) declare(name, {});
    }
    if (kind == SnippetKind::score_mod) declare("score", {.type = Type::floating, .depth = 0});
  }

  std::vector<Statement> run() {
    std::vector<Statement> statements;
    if (is_body(tokens_)) {
      while (at_ < tokens_.size()) statement(statements);
    } else {
      statements.push_back({.kind = Kind::result, .value = expression()});
      if (at_ < tokens_.size()) fail("is not understood");
    }
    return statements;
  }

 private:
  static constexpr int kConstant = -1;

  struct Local {
    std::string name = {};  // in the tree
    Type type = Type::integer;
    int depth = kConstant;                       // branches and loops around its declaration
    std::optional<std::size_t> parameters = {};  // of a lambda
  };

  // ---- tokens

  std::string_view text(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? plain_operator(tokens_[at_ + ahead].text) : "";
  }

  bool is_at(SnippetToken::Kind kind) const {
    return at_ < tokens_.size() && tokens_[at_].kind == kind;
  }

  [[noreturn]] void fail(std::string_view why) const { fail(why, at_); }
  [[noreturn]] void fail(std::string_view why, std::size_t token) const {
    token = std::min(token, tokens_.size() - 1);
    throw NotUnderstood{token, fmt::format("`{}` {}", tokens_[token].text, why)};
  }

  bool skip(std::string_view wanted) {
    if (text() != wanted) return false;
    ++at_;
    return true;
  }

  void expect(auto... wanted) {
    const auto one = [this](std::string_view text) {
      if (!skip(text)) fail("is not understood");
    };
    (one(wanted), ...);
  }

  SourceRange range_from(std::size_t first) const {
    const SnippetToken& last = tokens_[at_ - 1];
    return {tokens_[first].offset, last.offset + last.text.size()};
  }

  // ---- types and names

  // Nothing where no type stands.
  std::optional<Type> type_words() {
    constexpr std::array<std::string_view, 4> refused = {"unsigned", "short", "char", "signed"};
    const std::size_t first = at_;
    std::optional<Type> type;
    names_constant_ = names_constexpr_ = false;
    while (true) {
      const std::optional<Type> word = value_in(kTypesOfWords, text());
      const bool is_constant = text() == "const" || text() == "constexpr";
      if (!word && !is_constant) break;
      names_constant_ |= is_constant;
      names_constexpr_ |= text() == "constexpr";
      if (word && type != Type::wide) type = word;
      ++at_;
    }
    if (is_one_of(text(), refused)) fail("is a type that the tree has not");
    if (!type && at_ > first) fail("is not understood");
    return type;
  }

  Local* find_local(std::string_view name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return &found->second;
    }
    return nullptr;
  }

  // The name of what is declared here, which hides no other.
  std::string new_name() {
    std::string name(text());
    if (find_local(name) != nullptr || spec_.buffers.contains(name))
      fail("is declared a second time");
    if (!name_fault(name).empty()) fail("is not understood");
    ++at_;
    return name;
  }

  // A name has one meaning in the whole tree, so that a tree can be taken apart.
  const std::string& declare(const std::string& name, Local local) {
    local.name = fresh(name);
    return (scopes_.back()[name] = std::move(local)).name;
  }

  // `name` if it is not taken, else `name_1`, `name_2`, ...
  std::string fresh(const std::string& name) {
    std::string fresh = name;
    while (taken_.contains(fresh)) fresh = fmt::format("{}_{}", name, ++taken_[name]);
    taken_[fresh] = 0;
    return fresh;
  }

  // ---- expressions

  Expression expression(int least = kConditional) {
    const std::size_t first = at_;
    Expression left = unary();
    while (true) {
      const std::size_t sign = at_;
      const Operation* const infix = find_infix(text());
      if (least == kConditional && skip("?")) {
        Expression middle = expression();
        expect(":");
        left = apply(Op::conditional, {std::move(left), std::move(middle), expression()});
      } else if (infix != nullptr && infix->precedence >= least) {
        ++at_;
        left = apply(infix->op, {std::move(left), expression(infix->precedence + 1)});
        const bool is_of_floats = infix->takes == Takes::whole && left.type == Type::floating;
        if (is_of_floats) fail("takes whole numbers", sign);
      } else {
        return left;
      }
      left.range = range_from(first);
    }
  }

  Expression unary() {
    const std::size_t first = at_;
    Expression value = prefixed();
    if (value.range.end == 0) value.range = range_from(first);
    return value;
  }

  Expression prefixed() {
    if (skip("-")) {
      // -0 stays a negation: as a literal it would be printed as 0.
      const bool is_number = is_at(SnippetToken::Kind::number) && text() != "0";
      Expression operand = unary();
      if (!is_number) return apply(Op::negate, {std::move(operand)});
      operand.integer = -operand.integer;
      operand.number = -operand.number;
      operand.range = {};
      return operand;
    }
    if (skip("+")) {
      Expression operand = unary();
      return operand.type == Type::truth ? converted(std::move(operand), Type::integer) : operand;
    }
    if (skip("!")) return apply(Op::logical_not, {unary()});
    if (skip("~")) {
      Expression operand = unary();
      if (operand.type == Type::floating) fail("takes whole numbers");
      return apply(Op::bit_xor, {std::move(operand), integer(-1)});
    }
    if (text() == "(" && text(1) == "unsigned") return unsigned_cast();
    return text() == "(" ? bracketed() : primary();
  }

  // `(unsigned)x`, `(unsigned long long)x`
  Expression unsigned_cast() {
    at_ += 2;
    const Op op = skip("long") ? Op::to_wide_unsigned : Op::to_unsigned;
    skip("long");
    skip("int");
    expect(")");
    return apply(op, {unary()});
  }

  Expression bracketed() {
    const std::size_t first = at_++;
    const std::optional<Type> type = type_words();
    if (type && skip(")")) return cast(*type, unary());
    at_ = first;  // `(int(x) + 1)`
    return arguments("(", 1)[0];
  }

  Expression cast(Type type, Expression value) const {
    if (type == Type::unknown) fail("is not understood");
    return apply(conversion_to(type), {std::move(value)});
  }

  Expression primary() {
    if (at_ == tokens_.size()) fail("ends too early");
    if (is_at(SnippetToken::Kind::number)) return number();
    if (!is_at(SnippetToken::Kind::identifier)) fail("is not understood");
    if (skip("true")) return truth(true);
    if (skip("false")) return truth(false);
    if (skip("INFINITY")) return floating(std::numeric_limits<double>::infinity());
    if (skip("NAN")) return floating(std::numeric_limits<double>::quiet_NaN());
    const bool is_static_cast = skip("static_cast");
    if (is_static_cast) expect("<");
    const std::optional<Type> type = type_words();
    if (is_static_cast) expect(">");
    if (type) return cast(*type, arguments("(", 1)[0]);
    return named();
  }

  Expression number() {
    const NumberLiteral literal = read_number(text());
    if (literal.is_unsigned) fail("is a type that the tree has not");
    ++at_;
    if (literal.is_floating) return floating(literal.floating);
    Expression whole = integer(literal.integer);
    if (!literal.is_int) whole.type = Type::wide;
    return whole;
  }

  std::vector<Expression> arguments(std::string_view open, std::size_t count) {
    const std::size_t first = at_;
    const std::string_view close = open == "(" ? ")" : open == "[" ? "]" : "}";
    std::vector<Expression> values;
    expect(open);
    while (!skip(close)) {
      if (!values.empty()) expect(",");
      values.push_back(expression());
    }
    if (values.size() != count) fail("has another number of values than it takes", first);
    return values;
  }

  Expression named() {
    const std::string name(text());
    ++at_;
    if (const auto buffer = spec_.buffers.find(name); buffer != spec_.buffers.end()) {
      return of_buffer(name, buffer->second);
    }
    if (const Local* const local = find_local(name)) {
      if (!local->parameters) return variable(local->name, local->type);
      std::vector<Expression> values = arguments("(", *local->parameters);
      return {
          .op = Op::call, .type = local->type, .name = local->name, .operands = std::move(values)};
    }
    const Operation* const function = find_function(name);
    if (function == nullptr) fail("is not understood", at_ - 1);
    std::vector<Expression> values = arguments("(", function->operands);
    const bool takes_floats = function->takes != Takes::real && name != function->text;  // fmin
    if (takes_floats) values[0] = converted(std::move(values[0]), Type::floating);
    return apply(function->op, std::move(values));
  }

  Expression of_buffer(const std::string& name, const BufferSpec& buffer) {
    if (skip(".")) {
      expect("size");
      const Expression dimension = arguments("(", 1)[0];
      if (dimension.op != Op::integer_literal) fail("is not understood");
      return {.op = Op::size, .integer = dimension.integer, .name = name};
    }
    const std::size_t rank = buffer.shape.size();
    std::vector<Expression> indices;
    if (rank > 0) indices = arguments(rank == 1 && text() == "[" ? "[" : "(", rank);
    return read(name, type_of(buffer.dtype), std::move(indices));
  }

  // ---- statements

  std::vector<Statement> body() {
    std::vector<Statement> statements;
    scopes_.emplace_back();
    ++depth_;
    statement(statements);
    --depth_;
    scopes_.pop_back();
    return statements;
  }

  void statement(std::vector<Statement>& statements) {
    if (at_ == tokens_.size()) fail("ends too early");
    if (skip(";")) return;
    if (skip("{")) {
      // Its statements take its place: all names differ.
      scopes_.emplace_back();
      while (!skip("}")) statement(statements);
      scopes_.pop_back();
    } else if (text() == "if" || text() == "while") {
      Statement guarded{.kind = text() == "if" ? Kind::branch : Kind::loop};
      ++at_;
      guarded.value = arguments("(", 1)[0];
      guarded.body = guarded.kind == Kind::loop ? loop_body() : body();
      if (guarded.kind == Kind::branch && skip("else")) guarded.otherwise = body();
      statements.push_back(std::move(guarded));
    } else if (skip("for")) {
      for_loop(statements);
    } else if (loops_ > 0 && skip("break")) {
      expect(";");
      statements.push_back({.kind = Kind::leave});
    } else if (skip("return")) {
      statements.push_back({.kind = Kind::result, .value = expression()});
      expect(";");
    } else {
      simple_statement(statements, ";");
    }
  }

  std::vector<Statement> loop_body() {
    ++loops_;
    std::vector<Statement> statements = body();
    --loops_;
    return statements;
  }

  void for_loop(std::vector<Statement>& statements) {
    scopes_.emplace_back();
    expect("(");
    simple_statement(statements, ";");
    Statement loop{.kind = Kind::loop, .value = truth(true)};
    if (text() != ";") loop.value = expression();
    expect(";");
    std::vector<Statement> step;
    ++depth_;
    simple_statement(step, ")");
    --depth_;
    loop.body = loop_body();
    loop.body.insert(loop.body.end(), step.begin(), step.end());
    statements.push_back(std::move(loop));
    scopes_.pop_back();
  }

  // Declarations or an assignment, or nothing.
  void simple_statement(std::vector<Statement>& statements, std::string_view end) {
    if (skip(end)) return;
    if (const std::optional<Type> type = type_words()) {
      const int depth = names_constant_ ? kConstant : depth_;
      do {
        declaration(*type, depth, statements);
      } while (skip(","));
    } else {
      statements.push_back(assignment());
    }
    expect(end);
  }

  void declaration(Type type, int depth, std::vector<Statement>& statements) {
    const std::string name = new_name();
    const bool is_deduced = type == Type::unknown;
    const bool is_constexpr = names_constexpr_;
    Expression value = integer(0);
    if (skip("=")) {
      if (is_deduced && text() == "[") return statements.push_back(lambda(name));
      value = expression();
    } else if (text() == "(" || text() == "{") {
      value = arguments(text(), 1)[0];
    } else if (is_deduced) {
      fail("is not understood");
    }
    // A compiler has its say on what else may not be a constant.
    if (is_constexpr && !is_surely_constant(value)) fail("may be no constant");
    if (!is_deduced) value = converted(std::move(value), type);
    if (value.type == Type::unknown) fail("has a type that the tree has not");
    Statement declared{.kind = Kind::declare,
                       .name = declare(name, {.type = value.type, .depth = depth})};
    declared.value = std::move(value);
    declared.deduces_type = is_deduced;
    statements.push_back(std::move(declared));
  }

  static bool is_surely_constant(const Expression& value) {
    const bool is_literal = value.op == Op::integer_literal || value.op == Op::floating_literal ||
                            value.op == Op::truth_literal;
    if (is_literal) return true;
    return !value.operands.empty() && !operation(value.op).divides() && value.op != Op::read &&
           value.op != Op::call &&
           std::all_of(value.operands.begin(), value.operands.end(), is_surely_constant);
  }

  Statement lambda(const std::string& name) {
    Statement lambda{.kind = Kind::lambda};
    expect("[");
    lambda.captures_references = skip("&");
    has_references_ |= lambda.captures_references;
    if (!lambda.captures_references) skip("=");
    expect("]", "(");
    scopes_.emplace_back();
    while (!skip(")")) {
      if (!lambda.parameters.empty()) expect(",");
      const std::optional<Type> type = type_words();
      if (!type || type == Type::unknown) fail("is not understood");
      lambda.parameters.push_back(variable(declare(new_name(), {.type = *type}), *type));
    }
    expect("{", "return");
    lambda.value = expression();
    expect(";", "}");
    scopes_.pop_back();
    lambda.name =
        declare(name, {.type = lambda.value.type, .parameters = lambda.parameters.size()});
    return lambda;
  }

  Statement assignment() {
    const std::size_t first = at_;
    const bool is_prefix = text() == "++" || text() == "--";
    std::string_view sign = text(is_prefix ? 0 : 1);
    if (is_prefix) ++at_;
    const std::string name(text());
    Local* const local = find_local(name);
    if (local == nullptr || local->depth == kConstant) fail("is not understood");
    ++at_;
    if (!is_assignment(sign)) fail("is not understood");
    if (!is_prefix) ++at_;
    Expression value = variable(local->name, local->type);
    value.range = range_from(first);
    const bool is_step = sign == "++" || sign == "--";
    Expression operand = is_step ? integer(1) : expression();
    sign.remove_suffix(1);
    const Operation* const infix = find_infix(sign);
    if (infix == nullptr) {
      value = std::move(operand);  // whose text is what follows the sign alone
    } else {
      value = apply(infix->op, {std::move(value), std::move(operand)});
      value.range = range_from(first);
    }
    Statement assigned{.kind = Kind::assign, .name = local->name, .value = std::move(value)};
    const bool always_follows = local->depth == depth_ && !has_references_;
    if (always_follows) {
      assigned.kind = Kind::declare;
      assigned.value = converted(std::move(assigned.value), local->type);
      assigned.name = local->name = fresh(name);
    }
    return assigned;
  }

  std::span<const SnippetToken> tokens_;
  const Spec& spec_;
  std::size_t at_ = 0;
  std::vector<std::map<std::string, Local, std::less<>>> scopes_;
  std::map<std::string, int> taken_;  // names in the tree, with how many were made of each
  int depth_ = 0;
  int loops_ = 0;                 // around the statement
  bool names_constant_ = false;   // a `const` among the type words before
  bool names_constexpr_ = false;  // likewise
  bool has_references_ = false;   // a lambda sees what is assigned later
};

}  // namespace

SnippetTree parse(SnippetKind kind, std::span<const SnippetToken> tokens, const Spec& spec) {
  if (tokens.empty()) return {.kind = kind};
  try {
    return {.kind = kind, .statements = Parser(kind, tokens, spec).run()};
  } catch (const NotUnderstood& place) {
    const SnippetToken& token = tokens[place.token];
    const bool has_loop = std::any_of(tokens.begin(), tokens.end(), [](const SnippetToken& word) {
      return word.text == "for" || word.text == "while";
    });
    Statement statement{.kind = Kind::opaque, .name = place.reason};
    statement.value.range = {token.offset, token.offset + token.text.size()};
    return {.kind = kind, .statements = {std::move(statement)}, .has_loop_words = has_loop};
  }
}

SnippetTree parse(SnippetKind kind, std::string_view text, const Spec& spec) {
  return parse(kind, tokenize(text, kind), spec);
}

}  // namespace tilewright::snippet
