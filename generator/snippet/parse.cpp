#include "generator/snippet/parse.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "generator/snippet/number.hpp"
#include "generator/snippet/operators.hpp"

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;

struct NotUnderstood {
  std::size_t token;
  std::string reason;
};

struct Function {
  std::string_view name;  // the same with an f behind it is the same function
  Op op;
  std::size_t arguments;
  bool takes_floats = false;  // converts its arguments: fabs, fmin
};

constexpr std::array<Function, 28> kFunctions = {{
    {"abs", Op::absolute, 1},
    {"min", Op::minimum, 2},
    {"max", Op::maximum, 2},
    {"clamp", Op::clamp, 3},
    {"select", Op::select, 3},
    {"fabs", Op::absolute, 1, true},
    {"fmin", Op::minimum, 2, true},
    {"fmax", Op::maximum, 2, true},
    {"pow", Op::pow, 2},
    {"sign", Op::sign, 1},
    {"floor_div", Op::floor_quotient, 2},
    {"floor_mod", Op::floor_remainder, 2},
    {"expm1", Op::expm1, 1},
    {"log1p", Op::log1p, 1},
    {"erf", Op::erf, 1},
    {"erfc", Op::erfc, 1},
    {"tanh", Op::tanh, 1},
    {"exp", Op::exp, 1},
    {"exp2", Op::exp2, 1},
    {"log", Op::log, 1},
    {"log2", Op::log2, 1},
    {"sqrt", Op::sqrt, 1},
    {"rsqrt", Op::rsqrt, 1},
    {"sin", Op::sin, 1},
    {"cos", Op::cos, 1},
    {"tan", Op::tan, 1},
    {"floor", Op::floor, 1},
    {"ceil", Op::ceil, 1},
}};

const Function* find_function(std::string_view name) {
  for (const Function& function : kFunctions) {
    const bool has_suffix = name.size() == function.name.size() + 1 && name.back() == 'f';
    const bool may_have_suffix = function.takes_floats || function.op >= Op::pow;
    if (name == function.name) return &function;
    if (has_suffix && may_have_suffix && name.starts_with(function.name)) return &function;
  }
  return nullptr;
}

bool is_name_of(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What a local variable's, a cast's or a parameter's type says.
struct TypeWords {
  Type type = Type::integer;
  bool is_deduced = false;  // auto
};

class Parser {
 public:
  Parser(SnippetKind kind, std::span<const SnippetToken> tokens, const Spec& spec)
      : kind_(kind), tokens_(tokens), spec_(spec), scopes_(1) {}

  SnippetTree run(bool is_expression) {
    SnippetTree tree{.kind = kind_};
    if (is_expression) {
      tree.statements.push_back({.kind = Kind::result, .value = expression()});
      if (at_ < tokens_.size()) fail("is not understood");
    } else {
      while (at_ < tokens_.size()) statement(tree.statements);
    }
    if (assigns_score_) keep_score(tree.statements);
    return tree;
  }

 private:
  std::string_view text(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : "";
  }

  [[noreturn]] void fail(std::string_view why) const { fail_at(at_, why); }
  [[noreturn]] void fail_at(std::size_t token, std::string_view why) const {
    const std::size_t i = std::min(token, tokens_.size() - 1);
    throw NotUnderstood{i, fmt::format("`{}` {}", tokens_[i].text, why)};
  }

  bool skip(std::string_view wanted) {
    if (text() != wanted) return false;
    ++at_;
    return true;
  }

  void expect(std::string_view wanted) {
    if (!skip(wanted)) fail("is not understood");
  }

  Expression located(Expression value, std::size_t first) const {
    const SnippetToken& last = tokens_[at_ - 1];
    value.range = {tokens_[first].offset, last.offset + last.text.size()};
    return value;
  }

  // ---- types

  std::optional<TypeWords> type_words() {
    constexpr std::array<std::string_view, 8> words = {"const",  "constexpr", "int",  "float",
                                                       "double", "bool",      "long", "auto"};
    constexpr std::array<std::string_view, 4> refused = {"unsigned", "short", "char", "signed"};
    const std::size_t first = at_;
    TypeWords type;
    bool is_wide = false, names_type = false;
    for (; std::find(words.begin(), words.end(), text()) != words.end(); ++at_) {
      names_type |= !text().starts_with("const");
      is_wide |= text() == "long";
      type.is_deduced |= text() == "auto";
      if (text() == "float" || text() == "double") type.type = Type::floating;
      if (text() == "bool") type.type = Type::truth;
    }
    if (std::find(refused.begin(), refused.end(), text()) != refused.end()) {
      fail("is a type that the tree has not");
    }
    if (at_ == first) return {};
    if (!names_type) fail("is not understood");
    if (is_wide) type.type = Type::wide;
    return type;
  }

  // ---- names

  const Type* find_local(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return &found->second;
    }
    return nullptr;
  }

  // A name has one meaning in the whole snippet, so that a tree can be taken apart.
  std::string new_name() {
    const std::string_view name = text();
    const bool is_word =
        at_ < tokens_.size() && tokens_[at_].kind == SnippetToken::Kind::identifier;
    if (!is_word) fail("is not understood");
    const bool is_taken =
        find_local(name) != nullptr || spec_.buffers.contains(std::string(name)) ||
        spec_.scalars.contains(std::string(name)) || is_name_of(snippet_variables(), name) ||
        is_name_of(snippet_functions(), name) || name == "INFINITY" || name == "NAN";
    if (is_taken) fail("is declared a second time");
    ++at_;
    return std::string(name);
  }

  // ---- expressions

  Expression expression(int least = kConditional) {
    const std::size_t first = at_;
    Expression left = unary();
    while (true) {
      if (text() == "?" && least <= kConditional) {
        ++at_;
        Expression middle = expression();
        expect(":");
        left = located(
            apply(Op::conditional, {std::move(left), std::move(middle), expression(kConditional)}),
            first);
        continue;
      }
      const Infix* const infix = find_infix(text());
      if (infix == nullptr || infix->precedence < least) return left;
      const std::size_t sign = at_++;
      left = apply(infix->op, {std::move(left), expression(infix->precedence + 1)});
      left = located(std::move(left), first);
      const bool is_of_integers =
          infix->op == Op::remainder || (infix->op >= Op::shift_left && infix->op <= Op::bit_xor);
      if (is_of_integers && left.type == Type::floating) fail_at(sign, "takes whole numbers");
    }
  }

  Expression unary() {
    const std::size_t first = at_;
    if (skip("-")) {
      const bool is_literal =
          tokens_.size() > at_ && tokens_[at_].kind == SnippetToken::Kind::number;
      Expression operand = unary();
      // -0 stays a negation: as a literal it would be printed as 0.
      const bool is_number =
          is_literal && (operand.op != Op::integer_literal || operand.integer != 0);
      if (is_number && operand.op == Op::integer_literal) operand.integer = -operand.integer;
      if (is_number && operand.op == Op::floating_literal) operand.number = -operand.number;
      const bool is_folded = is_number && operand.operands.empty();
      if (is_folded) return located(std::move(operand), first);
      return located(apply(Op::negate, {std::move(operand)}), first);
    }
    if (skip("+")) {
      Expression operand = unary();
      return operand.type == Type::truth ? converted(std::move(operand), Type::integer) : operand;
    }
    if (skip("!") || skip("not")) {
      return located(apply(Op::logical_not, {unary()}), first);
    }
    if (skip("~") || skip("compl")) {
      Expression operand = unary();
      if (operand.type == Type::floating) fail_at(first, "takes whole numbers");
      return located(apply(Op::bit_xor, {std::move(operand), integer(-1)}), first);
    }
    if (text() == "(" && text(1) == "unsigned") return unsigned_cast();
    if (skip("(")) {
      const std::optional<TypeWords> type = type_words();
      if (type && skip(")")) return cast(*type, unary(), first);
      at_ = first + 1;  // `(int(x) + 1)`
      Expression inside = expression();
      expect(")");
      return inside;
    }
    return primary();
  }

  // `(unsigned)x`, `(unsigned long long)x`: an operand of which no type is known.
  Expression unsigned_cast() {
    const std::size_t first = at_;
    at_ += 2;
    const bool is_wide = skip("long");
    skip("long");
    skip("int");
    expect(")");
    return located(apply(is_wide ? Op::to_wide_unsigned : Op::to_unsigned, {unary()}), first);
  }

  Expression cast(const TypeWords& type, Expression value, std::size_t first) const {
    if (type.is_deduced) fail_at(first, "is not understood");
    const Op op = type.type == Type::floating  ? Op::to_floating
                  : type.type == Type::integer ? Op::to_integer
                  : type.type == Type::truth   ? Op::to_truth
                                               : Op::to_wide;
    return located(apply(op, {std::move(value)}), first);
  }

  Expression primary() {
    const std::size_t first = at_;
    if (at_ == tokens_.size()) fail("ends too early");
    if (tokens_[at_].kind == SnippetToken::Kind::number) return number();
    if (tokens_[at_].kind != SnippetToken::Kind::identifier) fail("is not understood");
    if (skip("true")) return located(truth(true), first);
    if (skip("false")) return located(truth(false), first);
    if (skip("INFINITY")) return located(floating(std::numeric_limits<double>::infinity()), first);
    if (skip("static_cast")) {
      expect("<");
      const std::optional<TypeWords> type = type_words();
      if (!type) fail("is a type that the tree has not");
      expect(">");
      return cast(*type, arguments("(", ")", 1)[0], first);
    }
    if (const std::optional<TypeWords> type = type_words()) {
      return cast(*type, arguments("(", ")", 1)[0], first);
    }
    const std::string name(tokens_[at_].text);
    const auto buffer = spec_.buffers.find(name);
    if (buffer != spec_.buffers.end()) return of_buffer(buffer->first, buffer->second);
    return named(name);
  }

  Expression number() {
    const std::size_t first = at_;
    const NumberLiteral literal = read_number(text());
    std::string digits(text());
    std::erase(digits, '\'');
    ++at_;
    const auto starts = [&](std::string_view small, std::string_view great) {
      return digits.starts_with(small) || digits.starts_with(great);
    };
    const bool is_hexadecimal = starts("0x", "0X");
    if (literal.is_floating) {
      const bool is_float = literal.has_suffix;
      const double value = std::strtod(digits.c_str(), nullptr);
      return located(floating(is_float ? std::strtof(digits.c_str(), nullptr) : value), first);
    }
    const bool is_binary = starts("0b", "0B");
    const int base = is_hexadecimal ? 16 : is_binary ? 2 : digits[0] == '0' ? 8 : 10;
    const char* const begin = digits.data() + (is_hexadecimal || is_binary ? 2 : 0);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(begin, digits.data() + digits.size(), value, base);
    const std::string_view suffix(end, digits.data() + digits.size() - end);
    const bool is_unsigned =
        suffix.find_first_of("uU") != std::string_view::npos || (base != 10 && !literal.is_int);
    if (error != std::errc() || is_unsigned) fail_at(first, "is a type that the tree has not");
    Expression whole = integer(value);
    if (!literal.is_int) whole.type = Type::wide;
    return located(std::move(whole), first);
  }

  std::vector<Expression> arguments(std::string_view open, std::string_view close,
                                    std::size_t count) {
    const std::size_t first = at_;
    expect(open);
    std::vector<Expression> values;
    if (text() != close) {
      do {
        values.push_back(expression());
      } while (skip(","));
    }
    expect(close);
    if (values.size() != count) fail_at(first, "has another number of values than it takes");
    return values;
  }

  Expression of_buffer(const std::string& name, const BufferSpec& buffer) {
    const std::size_t first = at_++;
    if (text() == ".") {
      ++at_;
      expect("size");
      Expression dimension = arguments("(", ")", 1)[0];
      if (dimension.op != Op::integer_literal) fail_at(first, "is not understood");
      return located({.op = Op::size, .integer = dimension.integer, .name = name}, first);
    }
    const std::size_t rank = buffer.shape.size();
    std::vector<Expression> indices;
    if (text() == "[" && rank == 1) {
      indices = arguments("[", "]", 1);
    } else if (rank > 0) {
      indices = arguments("(", ")", rank);
    }
    const Type type = is_floating(buffer.dtype)    ? Type::floating
                      : buffer.dtype == DType::i64 ? Type::wide
                                                   : Type::integer;
    return located(read(name, type, std::move(indices)), first);
  }

  Expression named(const std::string& name) {
    const std::size_t first = at_++;
    if (const auto lambda = lambdas_.find(name); lambda != lambdas_.end() && text() == "(") {
      Expression call{.op = Op::call, .type = lambda->second.type, .name = name};
      call.operands = arguments("(", ")", lambda->second.parameters);
      return located(std::move(call), first);
    }
    if (const Type* const type = find_local(name)) return located(variable(name, *type), first);
    if (const auto scalar = spec_.scalars.find(name); scalar != spec_.scalars.end()) {
      const bool is_real = is_floating(scalar->second.dtype);
      return located(variable(name, is_real ? Type::floating : Type::integer), first);
    }
    if (text() != "(") {
      const bool is_score = name == "score";
      const bool is_known =
          is_name_of(snippet_variables(), name) && !(is_score && kind_ == SnippetKind::mask_mod);
      if (!is_known) fail_at(first, "is not understood");
      return located(variable(name, is_score ? Type::floating : Type::integer), first);
    }
    if (const Function* const function = find_function(name)) {
      std::vector<Expression> values = arguments("(", ")", function->arguments);
      if (function->takes_floats) values[0] = converted(std::move(values[0]), Type::floating);
      return located(apply(function->op, std::move(values)), first);
    }
    if (!is_name_of(snippet_functions(), name)) fail_at(first, "is not understood");
    return other_function(name, first);
  }

  Expression other_function(const std::string& name, std::size_t first) {
    Expression call{.op = Op::call, .type = Type::unknown, .name = name};
    expect("(");
    do {
      call.operands.push_back(expression());
    } while (skip(","));
    expect(")");
    return located(std::move(call), first);
  }

  // ---- statements

  std::vector<Statement> body() {
    std::vector<Statement> statements;
    scopes_.emplace_back();
    const bool is_block = skip("{");
    if (is_block) {
      while (text() != "}") statement(statements);
      ++at_;
    } else {
      statement(statements);
    }
    scopes_.pop_back();
    return statements;
  }

  Expression condition() {
    expect("(");
    Expression value = expression();
    expect(")");
    return value;
  }

  void statement(std::vector<Statement>& statements) {
    if (at_ == tokens_.size()) fail("ends too early");
    if (skip(";")) return;
    if (text() == "{") {
      statements.push_back({.kind = Kind::block, .body = body()});
    } else if (skip("if")) {
      Statement branch{.kind = Kind::branch, .value = condition()};
      branch.body = body();
      if (skip("else")) branch.otherwise = body();
      statements.push_back(std::move(branch));
    } else if (skip("while")) {
      Statement loop{.kind = Kind::loop, .value = condition()};
      loop.body = body();
      statements.push_back(std::move(loop));
    } else if (skip("for")) {
      statements.push_back(for_loop());
    } else if (skip("return")) {
      statements.push_back({.kind = Kind::result, .value = expression()});
      expect(";");
    } else {
      simple_statement(statements);
      expect(";");
    }
  }

  Statement for_loop() {
    scopes_.emplace_back();
    Statement block{.kind = Kind::block};
    expect("(");
    if (text() != ";") simple_statement(block.body);
    expect(";");
    Statement loop{.kind = Kind::loop, .value = truth(true)};
    if (text() != ";") loop.value = expression();
    expect(";");
    std::vector<Statement> step;
    if (text() != ")") simple_statement(step);
    expect(")");
    loop.body = body();
    loop.body.insert(loop.body.end(), step.begin(), step.end());
    block.body.push_back(std::move(loop));
    scopes_.pop_back();
    return block;
  }

  // A declaration or an assignment, without its `;`.
  void simple_statement(std::vector<Statement>& statements) {
    if (const std::optional<TypeWords> type = type_words()) {
      do {
        declaration(*type, statements);
      } while (skip(","));
    } else {
      statements.push_back(assignment());
    }
  }

  void declaration(const TypeWords& type, std::vector<Statement>& statements) {
    std::string name = new_name();
    if (type.is_deduced && text() == "=" && text(1) == "[") {
      ++at_;
      statements.push_back(lambda(std::move(name)));
      return;
    }
    Expression value = integer(0);
    if (skip("=")) {
      value = expression();
    } else if (text() == "(") {
      value = arguments("(", ")", 1)[0];
    } else if (text() == "{") {
      value = arguments("{", "}", 1)[0];
    } else if (type.is_deduced) {
      fail("is not understood");
    }
    if (type.is_deduced && value.type == Type::unknown) fail("has a type that the tree has not");
    if (!type.is_deduced) value = converted(std::move(value), type.type);
    scopes_.back()[name] = value.type;
    Statement declared{.kind = Kind::declare, .name = std::move(name), .value = std::move(value)};
    declared.deduces_type = type.is_deduced;
    statements.push_back(std::move(declared));
  }

  Statement lambda(std::string name) {
    Statement lambda{.kind = Kind::lambda, .name = std::move(name)};
    expect("[");
    lambda.captures_references = skip("&");
    if (!lambda.captures_references) expect("=");
    expect("]");
    expect("(");
    scopes_.emplace_back();
    if (text() != ")") {
      do {
        const std::optional<TypeWords> type = type_words();
        if (!type || type->is_deduced) fail("is not understood");
        lambda.parameters.push_back({new_name(), type->type});
        scopes_.back()[lambda.parameters.back().name] = type->type;
      } while (skip(","));
    }
    expect(")");
    expect("{");
    expect("return");
    lambda.value = expression();
    expect(";");
    expect("}");
    scopes_.pop_back();
    lambdas_[lambda.name] = {lambda.value.type, lambda.parameters.size()};
    scopes_.front()[lambda.name] = Type::unknown;
    return lambda;
  }

  // What is assigned to score becomes a local, so that `score` is the kernel's everywhere.
  void keep_score(std::vector<Statement>& statements) const {
    std::string name = "modified_score";
    const auto is_taken = [&](const SnippetToken& token) { return token.text == name; };
    while (std::any_of(tokens_.begin(), tokens_.end(), is_taken)) name += '_';
    rename_score(statements, name);
    const Expression score = variable("score", Type::floating);
    statements.insert(statements.begin(), {.kind = Kind::declare, .name = name, .value = score});
  }

  static void rename_score(std::vector<Statement>& statements, const std::string& name) {
    for (Statement& statement : statements) {
      if (statement.name == "score") statement.name = name;
      rename_score(statement.value, name);
      rename_score(statement.body, name);
      rename_score(statement.otherwise, name);
    }
  }

  static void rename_score(Expression& node, const std::string& name) {
    if (node.op == Op::variable && node.name == "score") node.name = name;
    for (Expression& operand : node.operands) rename_score(operand, name);
  }

  Statement assignment() {
    constexpr std::array<std::pair<std::string_view, Op>, 10> kinds = {{{"+=", Op::add},
                                                                        {"-=", Op::subtract},
                                                                        {"*=", Op::multiply},
                                                                        {"/=", Op::divide},
                                                                        {"%=", Op::remainder},
                                                                        {"<<=", Op::shift_left},
                                                                        {">>=", Op::shift_right},
                                                                        {"&=", Op::bit_and},
                                                                        {"|=", Op::bit_or},
                                                                        {"^=", Op::bit_xor}}};
    const std::size_t first = at_;
    const std::string_view step = text() == "++" || text() == "--" ? text() : "";
    if (!step.empty()) ++at_;
    const std::string name(text());
    const bool is_score = name == "score" && kind_ == SnippetKind::score_mod;
    const Type* const type = find_local(name);
    if ((type == nullptr && !is_score) || lambdas_.contains(name)) fail("is not understood");
    assigns_score_ |= is_score;
    ++at_;
    Statement assigned{.kind = Kind::assign, .name = name};
    const Expression before = located(variable(name, is_score ? Type::floating : *type), first);
    const std::string_view sign = step.empty() ? text() : step;
    if (step.empty()) ++at_;
    if (sign == "++" || sign == "--") {
      assigned.value = apply(sign == "++" ? Op::add : Op::subtract, {before, integer(1)});
    } else if (sign == "=") {
      assigned.value = expression();
    } else {
      const auto* const found = std::find_if(kinds.begin(), kinds.end(),
                                             [&](const auto& kind) { return kind.first == sign; });
      if (found == kinds.end()) fail_at(at_ - 1, "is not understood");
      assigned.value = apply(found->second, {before, expression()});
    }
    assigned.value = located(std::move(assigned.value), first);
    return assigned;
  }

  struct LambdaType {
    Type type;
    std::size_t parameters;
  };

  SnippetKind kind_;
  std::span<const SnippetToken> tokens_;
  const Spec& spec_;
  std::size_t at_ = 0;
  std::vector<std::map<std::string, Type, std::less<>>> scopes_;
  std::map<std::string, LambdaType> lambdas_;
  bool assigns_score_ = false;
};

// As check_snippet decides it.
bool is_body(std::span<const SnippetToken> tokens) {
  constexpr std::array<std::string_view, 6> starts = {"{", "if", "for", "while", "do", "switch"};
  if (std::find(starts.begin(), starts.end(), tokens[0].text) != starts.end()) return true;
  int depth = 0;
  for (const SnippetToken& token : tokens) {
    if (token.text == "(" || token.text == "[" || token.text == "{") ++depth;
    if (token.text == ")" || token.text == "]" || token.text == "}") --depth;
    if (token.text == ";" && depth == 0) return true;
  }
  return false;
}

}  // namespace

SnippetTree parse(SnippetKind kind, std::span<const SnippetToken> tokens, const Spec& spec) {
  if (tokens.empty()) return {.kind = kind};
  try {
    return Parser(kind, tokens, spec).run(!is_body(tokens));
  } catch (const NotUnderstood& place) {
    const SnippetToken& token = tokens[place.token];
    Statement statement{.kind = Kind::opaque, .name = place.reason};
    statement.range = {token.offset, token.offset + token.text.size()};
    const bool has_loop = std::any_of(tokens.begin(), tokens.end(), [](const SnippetToken& word) {
      return word.text == "for" || word.text == "while";
    });
    return {.kind = kind, .statements = {std::move(statement)}, .has_loop_words = has_loop};
  }
}

SnippetTree parse(SnippetKind kind, std::string_view text, const Spec& spec) {
  return parse(kind, tokenize(text, kind), spec);
}

}  // namespace tilewright::snippet
