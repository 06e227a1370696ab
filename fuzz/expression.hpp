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
using snippet::op_from_string;
using snippet::opaque;
using snippet::Parameter;
using snippet::read;
using snippet::size_of;
using snippet::SnippetTree;
using snippet::Statement;
using snippet::to_string;
using snippet::to_text;
using snippet::truth;
using snippet::Type;
using snippet::type_from_string;
using snippet::variable;

}  // namespace tilewright::verify::fuzz
