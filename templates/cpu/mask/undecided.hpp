#pragma once

#include "cpu/inline.hpp"

// Where the interval interpretation meets a condition that it cannot decide.

namespace tw_proved {

static __thread bool tw_met_undecided;
static __thread unsigned tw_branches;  // a sequence of pseudo-random numbers

TW_NOINLINE bool tw_undecided() {
  tw_met_undecided = true;
  tw_branches = tw_branches * 747796405u + 2891336453u;
  return tw_branches >> 31 != 0;
}

#define TW_SEPARATE
#define TW_ROLLED

}  // namespace tw_proved
