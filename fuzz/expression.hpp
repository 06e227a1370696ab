#pragma once

#include "../generator/snippet/print.hpp"
#include "../generator/snippet/tree.hpp"

namespace tilewright::verify::fuzz {

// Random cases are made of the tree that the generator reads snippets by.
using snippet::apply;
using snippet::Expression;
using snippet::floating;
using snippet::integer;
using snippet::Op;
using snippet::opaque;
using snippet::read;
using snippet::size_of;
using snippet::SnippetTree;
using snippet::Statement;
using snippet::to_string;
using snippet::to_text;
using snippet::truth;
using snippet::Type;
using snippet::variable;

/// Nodes of all expressions, and statements: what shrinking makes smaller.
inline std::size_t size_of(const SnippetTree& tree) {
  std::size_t sum = 0;
  for_each_statement(tree.statements,
                     [&](const Statement& statement) { sum += 1 + size_of(statement.value); });
  return sum;
}

}  // namespace tilewright::verify::fuzz
