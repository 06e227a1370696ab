#pragma once

#include "cuda/attention/modify.hpp"
#include "cuda/attention/no_draws.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// Without dropout nothing is added to a kernel. See dropout.hpp.

namespace tw_kernel {

using Draws = NoDraws;

TW_INLINE Draws start_draws(const SnippetInputs&, int) { return {}; }
TW_INLINE void drop_weights(const Draws&, float (&)[kRows][kColumns]) {}
TW_INLINE float finish_dropout(const SnippetArguments&, const QTile&, float factor) { return factor; }

}  // namespace tw_kernel
