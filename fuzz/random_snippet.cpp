#include "fuzz/random_snippet.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "fuzz/expression_maker.hpp"
#include "fuzz/snippet_declarations.hpp"
#include "fuzz/snippet_dice.hpp"
#include "fuzz/statement_maker.hpp"
#include "fuzz/tracked.hpp"
#include "fuzz/wished_parts.hpp"

namespace tilewright::verify::fuzz {
namespace {

// One snippet in the making.
class WholeSnippetMaker : private SnippetDice {
 public:
  WholeSnippetMaker(Spec& spec, Random& random, SnippetKind kind, const SnippetWish& wish)
      : SnippetDice(random),
        kind_(kind),
        wish_(wish),
        declared_(spec, random, wish),
        expressions_(declared_, random, kind, wish),
        wished_(expressions_, declared_, random, wish),
        statements_(expressions_, random, kind, wish) {}

  SnippetTree make() {
    if (is_of_positions_alone()) return of_one_result(expressions_.known_mask());
    declared_.declare_wanted();
    statements_.add_statements();
    Expression result = kind_ == SnippetKind::mask_mod ? mask() : score();
    std::vector<Statement>& statements = statements_.statements();
    if (wish_.is_body && statements.empty() && below(2) == 0) {
      statements_.declare_result(result);
    }
    statements.push_back({.kind = Statement::Kind::result, .value = std::move(result)});
    if (wish_.is_body && statements.size() == 1) return_it_in_a_branch(statements);
    return {.kind = kind_, .statements = std::move(statements)};
  }

 private:
  // Wishes and chance bring tokens and lengths into nearly every mask of a packed spec. Masks that
  // every sequence shares are the usual ones.
  bool is_of_positions_alone() {
    return kind_ == SnippetKind::mask_mod && wish_.is_packed && one_in(8);
  }

  SnippetTree of_one_result(Expression result) const {
    SnippetTree tree{.kind = kind_, .statements = {}};
    tree.statements.push_back({.kind = Statement::Kind::result, .value = std::move(result)});
    return tree;
  }

  Expression mask() {
    std::vector<Expression> parts;
    parts.push_back(one_in(2) ? expressions_.known_mask()
                              : expressions_.truth(2 + static_cast<int>(below(2))));
    for (Expression& part : wished_.truths()) parts.push_back(std::move(part));
    Expression mask = std::move(parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i) {
      mask = apply(one_in(2) ? Op::logical_and : Op::logical_or,
                   {std::move(mask), std::move(parts[i])});
    }
    return mask;
  }

  Expression score() {
    TrackedNumber result = expressions_.number(3 + static_cast<int>(below(2)));
    if (!result.depends_on_score() && !one_in(8)) result = plus(result, expressions_.score());
    for (const TrackedNumber& term : wished_.terms()) result = plus(result, term);
    if (wants_padding()) result.expression = padded(std::move(result.expression));
    if (!one_in(8)) return result.expression;
    return apply(one_of({Op::select, Op::conditional}),
                 {expressions_.truth(2), result.expression, ExpressionMaker::minus_infinity()});
  }

  bool wants_padding() {
    const bool wants_floats =
        is_wanted(wish_, Factor::buffer, 1) || is_wanted(wish_, Factor::buffer, 2);
    return wants_floats && one_in(8);
  }

  // Added last: nothing else in a score_mod may be as large, or a right kernel overflows.
  Expression padded(Expression score) {
    const std::string name = declared_.declare_padding();
    std::vector<Expression> indices;
    if (declared_.buffer(name).shape.size() == 2) indices.push_back(variable("b"));
    const Expression last = apply(Op::subtract, {variable("kv_len"), integer(1)});
    indices.push_back(wish_.is_packed ? variable("kv_token")
                      : wish_.no_offsets
                          ? variable("kv_idx")
                          : apply(Op::clamp, {variable("kv_idx"), integer(0), last}));
    return apply(Op::add, {std::move(score), read(name, Type::floating, std::move(indices))});
  }

  // A body without statements would be an expression.
  void return_it_in_a_branch(std::vector<Statement>& statements) {
    Statement branch{.kind = Statement::Kind::branch, .value = expressions_.truth(1)};
    branch.body.push_back(statements.back());
    statements.insert(statements.begin(), std::move(branch));
  }

  SnippetKind kind_;
  const SnippetWish& wish_;
  SnippetDeclarations declared_;
  ExpressionMaker expressions_;
  WishedParts wished_;
  StatementMaker statements_;
};

}  // namespace

SnippetTree SnippetMaker::score_mod(const SnippetWish& wish) {
  return WholeSnippetMaker(spec_, random_, SnippetKind::score_mod, wish).make();
}

SnippetTree SnippetMaker::mask_mod(const SnippetWish& wish) {
  return WholeSnippetMaker(spec_, random_, SnippetKind::mask_mod, wish).make();
}

}  // namespace tilewright::verify::fuzz
