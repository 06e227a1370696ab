#include "generator/snippet/facts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "generator/snippet/print.hpp"
#include "generator/snippet/rewrite.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;

// Each is the other plus a number that a sequence's elements share.
constexpr std::array<std::string_view, 2> kOfRow = {"q_idx", "q_token"};
constexpr std::array<std::string_view, 2> kOfColumn = {"kv_idx", "kv_token"};
constexpr std::array<std::string_view, 3> kOfHead = {"b", "h", "h_kv"};
constexpr std::array<std::string_view, 4> kOfCall = {"q_len", "kv_len", "num_q_heads",
                                                     "num_kv_heads"};

bool is_variable_of(const Expression& node, const auto&... names) {
  return node.op == Op::variable && (is_one_of(node.name, names) || ...);
}

// How a value changes with q_idx and kv_idx. Where it is known, and no index makes the value both
// rise and fall, the value is least and greatest at corners of a tile.
enum Direction : unsigned {
  kRisesWithQ = 1,
  kFallsWithQ = 2,
  kRisesWithKv = 4,
  kFallsWithKv = 8,
  kUnknown = 16,
  kNamesQ = kRisesWithQ | kFallsWithQ,
  kNamesKv = kRisesWithKv | kFallsWithKv,
};

unsigned reversed(unsigned direction) {
  constexpr unsigned rises = kRisesWithQ | kRisesWithKv, falls = kFallsWithQ | kFallsWithKv;
  return (direction & rises) << 1 | (direction & falls) >> 1 | (direction & kUnknown);
}

unsigned direction_of(const Expression& node) {
  if (is_variable_of(node, kOfRow)) return kRisesWithQ;
  if (is_variable_of(node, kOfColumn)) return kRisesWithKv;
  const bool is_literal = node.op == Op::integer_literal && node.type == Type::integer;
  if (is_literal || is_variable_of(node, kOfHead, kOfCall)) return 0;
  const bool subtracts = node.op == Op::subtract || node.op == Op::negate;
  unsigned all = 0, after_first = 0;
  for (const Expression& operand : node.operands) {
    const bool is_taken_away = subtracts && &operand == &node.operands.back();
    const unsigned direction = direction_of(operand);
    all |= is_taken_away ? reversed(direction) : direction;
    if (&operand != node.operands.data()) after_first |= direction;
  }
  const bool is_sum = subtracts || node.op == Op::add || (node.op == Op::clamp && after_first == 0);
  return is_sum && node.type == Type::integer ? all : all | kUnknown;
}

bool is_extreme_at_corners(unsigned direction) {
  return direction < kUnknown && (direction & kNamesQ) != kNamesQ &&
         (direction & kNamesKv) != kNamesKv;
}

BufferRead facts_of_read(const Expression& node, const Locals& locals, const BufferSpec& buffer) {
  BufferRead read{.buffer = node.name, .range = node.range};
  // What has no dimensions is read as `x`, which nothing can be outside.
  bool is_plain = node.operands.empty() || buffer.bounds != Bounds::trusted;
  read.is_linear = buffer.bounds != Bounds::trusted;
  for (const Expression& operand : node.operands) {
    Expression index = inlined(operand, locals);
    const bool widens = index.op == Op::to_wide && index.operands[0].type == Type::integer;
    if (widens) index = Expression(index.operands[0]);
    is_plain &= is_variable_of(index, kOfHead, kOfRow, kOfColumn);
    const unsigned direction = direction_of(index);
    const bool names_q = (direction & kNamesQ) != 0, names_kv = (direction & kNamesKv) != 0;
    read.is_linear &= is_extreme_at_corners(direction);
    read.has_own_element |= (read.names_q_idx && names_kv) || (read.names_kv_idx && names_q);
    read.names_q_idx |= names_q;
    read.names_kv_idx |= names_kv;
    read.indices.push_back(std::move(index));
  }
  read.has_own_element &= read.is_linear;
  read.is_hoistable = is_plain && !(read.names_q_idx && read.names_kv_idx);
  return read;
}

// By anything but numbers and scalars, which do not depend on an index.
bool divides_by_unknown(const Expression& node, const Locals& locals, const Spec& spec) {
  if (!operation(node.op).divides() || node.type == Type::floating) return false;
  const Expression divisor = inlined(node.operands[1], locals);
  if (divisor.op == Op::integer_literal) return divisor.integer == 0;
  return divisor.op != Op::variable || !spec.scalars.contains(divisor.name);
}

// Whether two types are made one.
bool makes_one_type(Op op) {
  return op == Op::conditional || op == Op::select || op == Op::minimum || op == Op::maximum ||
         op == Op::clamp || op == Op::call;
}

}  // namespace

std::string indices_text(const BufferRead& read) {
  std::vector<std::string> texts;
  for (const Expression& index : read.indices) texts.push_back(to_text(index));
  return fmt::format("{}", fmt::join(texts, ", "));
}

SnippetFacts find_facts(const SnippetTree& tree, const Spec& spec) {
  if (opaque(tree) != nullptr) {
    return {.is_opaque = true,
            .has_loop = tree.has_loop_words,
            .divides = true,
            .needs_bounded_indices = true,
            .needs_plain_reads = true};
  }
  SnippetFacts facts;
  const Locals locals = constant_locals(tree.statements);
  bool deduces = false, makes_one = false;
  for_each_statement(tree.statements, [&](const Statement& statement) {
    facts.has_loop |= statement.kind == Kind::loop;
    facts.has_lambda |= statement.kind == Kind::lambda;
    deduces |= statement.deduces_type || statement.kind == Kind::lambda;
    facts.takes_index_difference |= has_node(inlined(statement.value, {}), sign_of_difference);
  });
  for_each_node(tree.statements, [&](const Expression& node) {
    facts.takes_sizes |= node.op == Op::size;
    facts.divides |= operation(node.op).divides();
    facts.needs_bounded_indices |= divides_by_unknown(node, locals, spec);
    makes_one |= makes_one_type(node.op);
    if (node.op != Op::read) return;
    const BufferSpec& buffer = spec.buffers.at(node.name);
    facts.needs_bounded_indices |= buffer.bounds == Bounds::trusted && !node.operands.empty();
    facts.reads.push_back(facts_of_read(node, locals, buffer));
  });
  facts.needs_bounded_indices |= facts.has_loop;
  facts.takes_index_difference &= !deduces;
  facts.needs_plain_reads = (makes_one || deduces) && !facts.reads.empty();
  return facts;
}

std::vector<BufferRead> linear_reads(const SnippetFacts& facts) {
  std::vector<BufferRead> reads;
  for (const BufferRead& read : facts.reads) {
    if (read.is_hoistable) continue;
    if (!read.is_linear) return {};
    reads.push_back(read);
  }
  return reads;
}

std::vector<BufferRead> reads_by_sums(const SnippetFacts& facts) {
  if (linear_reads(facts).empty()) return {};
  const auto is_clamped = [](const Expression& index) {
    return has_node(index, [](const Expression& node) { return node.op == Op::clamp; });
  };
  const auto takes_sums = [&](const BufferRead& read) {
    return read.is_linear && std::none_of(read.indices.begin(), read.indices.end(), is_clamped);
  };
  const bool all = std::all_of(facts.reads.begin(), facts.reads.end(), takes_sums);
  return all ? facts.reads : std::vector<BufferRead>{};
}

}  // namespace tilewright::snippet
