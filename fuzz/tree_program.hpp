#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "call_values.hpp"
#include "expression.hpp"
#include "tree_value.hpp"

namespace tilewright::verify::fuzz {

/// Where values that every snippet sees lie in a frame.
struct TreeSlot {
  enum Index : int {
    kB,
    kH,
    kHKv,
    kQIdx,
    kKvIdx,
    kQLen,
    kKvLen,
    kQHeads,
    kKvHeads,
    kQToken,
    kKvToken,
    kScore,
    kFirstFree
  };
};

/// The tree of a snippet with every name resolved: to a slot of a frame (the values of all
/// variables while one element is evaluated), a buffer, or a lambda.
template <typename Score>
struct TreeProgram {
  using Value = TreeValue<Score>;

  struct Node {
    Op op = Op::integer_literal;
    Type type = Type::integer;
    Value literal = {};                    ///< of a literal or a size
    int slot = 0;                          ///< of a variable
    std::size_t lambda = 0;                ///< of a call
    const BufferValues* buffer = nullptr;  ///< of a read
    std::vector<Node> operands = {};
  };

  struct Step {
    Statement::Kind kind;
    Node value;
    int slot = 0;  ///< of what is declared or assigned
    Type type = Type::integer;
    std::size_t lambda = 0;
    std::vector<Step> body = {};
    std::vector<Step> otherwise = {};
  };

  /// Captures by value: its body reads copies made where the lambda stands.
  struct Lambda {
    std::vector<std::pair<int, int>> captures = {};  ///< from, to
    std::vector<int> parameters = {};
    std::vector<Type> types = {};
    Node body = {};
  };

  int slots = TreeSlot::kFirstFree;
  std::vector<std::pair<int, Value>> constants = {};  ///< scalars
  std::vector<Lambda> lambdas = {};
  std::vector<Step> body = {};
};

/// @param values must outlive the result, which reads its buffers
/// @throws Error as fail_tree for a tree that names what is not there
template <typename Score>
TreeProgram<Score> resolve_tree(const SnippetTree& tree, const CallValues& values);

extern template TreeProgram<float> resolve_tree(const SnippetTree&, const CallValues&);
extern template TreeProgram<double> resolve_tree(const SnippetTree&, const CallValues&);

}  // namespace tilewright::verify::fuzz
