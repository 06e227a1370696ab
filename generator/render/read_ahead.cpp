#include "generator/render/read_ahead.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "generator/snippet/print.hpp"

namespace tilewright {
namespace {

using snippet::BufferRead;
using snippet::Expression;
using snippet::Op;

std::string_view short_name(std::string_view index) {
  if (index == "q_idx") return "q";
  return index == "kv_idx" ? "kv" : index;  // q_token and kv_token keep their names
}

// "doc_at_kv": without the batch, unless that is all, or all indices are asked for.
std::string name_for(const BufferRead& read, bool names_all) {
  std::string name = read.buffer + "_at";
  for (const Expression& index : read.indices) {
    if (!names_all && index.name == "b" && read.indices.size() > 1) continue;
    name += fmt::format("_{}", short_name(index.name));
  }
  return name;
}

// Puts variables in the place of reads and of literals that need a suffix.
class Replacer {
 public:
  Replacer(const snippet::SnippetFacts& facts, LiteralType literals, ReadsAhead* ahead)
      : facts_(facts), literals_(literals), ahead_(ahead) {}

  void replace(Expression& node) {
    if (node.op == Op::read) {
      const BufferRead& read = facts_.reads.at(next_read_++);
      if (ahead_ != nullptr && read.is_hoistable) {
        node = snippet::variable("tw_loads." + ahead_->name_of(read), node.type);
      }
    }
    const bool has_suffix = literals_ == LiteralType::f32 && node.op == Op::floating_literal;
    if (has_suffix && std::isfinite(node.number)) {
      const std::string text = snippet::to_text(node) + "f";
      node =
          snippet::variable(snippet::begins_with_minus(node) ? "(" + text + ")" : text, node.type);
    }
  }

 private:
  const snippet::SnippetFacts& facts_;
  LiteralType literals_;
  ReadsAhead* ahead_;
  std::size_t next_read_ = 0;  // reads stand in the facts in the same order
};

}  // namespace

const std::string& ReadsAhead::name_of(const BufferRead& read) {
  const std::string indices = snippet::indices_text(read);
  for (const HoistedRead& known : reads_) {
    if (known.buffer == read.buffer && known.indices == indices) return known.name;
  }
  std::string name = name_for(read, false);
  const auto is_taken = [&](const HoistedRead& known) { return known.name == name; };
  if (std::any_of(reads_.begin(), reads_.end(), is_taken)) name = name_for(read, true);
  while (std::any_of(reads_.begin(), reads_.end(), is_taken)) name += "_";
  reads_.push_back({.name = std::move(name),
                    .buffer = read.buffer,
                    .indices = indices,
                    .names_q_idx = read.names_q_idx,
                    .names_kv_idx = read.names_kv_idx});
  return reads_.back().name;
}

jinja::Splice spliced_snippet(const AnalysedSnippet& user, LiteralType literals,
                              ReadsAhead* ahead) {
  std::vector<Replacement> replacements;
  for (const BufferRead& read : user.facts.reads) {
    if (ahead == nullptr || !read.is_hoistable) continue;
    replacements.push_back({read.range.begin, read.range.end, "tw_loads." + ahead->name_of(read)});
  }
  return splice_snippet(user.snippet, literals, replacements);
}

jinja::Splice printed_snippet(const AnalysedSnippet& user, const snippet::SnippetTree& tree,
                              const snippet::SnippetFacts& facts, LiteralType literals,
                              ReadsAhead* ahead) {
  snippet::SnippetTree kernels = tree;
  Replacer replacer(facts, literals, ahead);
  for_each_node(kernels.statements, [&](Expression& node) { replacer.replace(node); });
  const bool is_expression = kernels.statements.size() == 1;
  const std::string text = to_text(kernels);
  return {
      .origin = std::string(to_string(user.snippet.kind)),
      .pieces = {{is_expression ? fmt::format("return {};\n", text) : text + "\n", 1, 1, false}}};
}

}  // namespace tilewright
