#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"

// The checked interpretation: types as in the float interpretation, and undefined behaviour is found where it
// happens. The compiler instruments arithmetic (-fsanitize=..., see interpretation.cpp) and calls the handlers
// below, which stand in for its own library; buffers report an index outside their extent.

namespace tw_snippet {

using tw_real = float;
using tilewright::abi::Finding;

// The element that this thread evaluates, with what was found in it.
struct tw_Element {
  static constexpr int kCapacity = 8;
  Finding findings[kCapacity];
  int count;
  int snippet;       // which is being evaluated: a SnippetNumber
  long long rounds;  // of the snippet's loops
  void* abandon[5];  // where to go on when the element cannot
};

static __thread tw_Element tw_element;

// Whether two findings are of the same kind, place and dimension.
TW_INLINE bool tw_are_alike(const Finding& a, const Finding& b) {
  return a.kind == b.kind && a.line == b.line && a.column == b.column && a.offset == b.offset &&
         a.dimension == b.dimension && a.snippet == b.snippet;
}

TW_INLINE void tw_widen(Finding& known, const Finding& finding) {
  if (finding.least < known.least) known.least = finding.least;
  if (finding.greatest > known.greatest) known.greatest = finding.greatest;
}

// A loop's reads at one place are one finding.
TW_NOINLINE void tw_add_finding(Finding finding) {
  finding.snippet = tw_element.snippet;
  for (int i = 0; i < tw_element.count; ++i) {
    if (tw_are_alike(tw_element.findings[i], finding)) return tw_widen(tw_element.findings[i], finding);
  }
  if (tw_element.count == tw_Element::kCapacity) return;
  tw_element.findings[tw_element.count++] = finding;
}

TW_INLINE void tw_report(int kind, int line, int column, long long first, long long second) {
  Finding finding = {};
  finding.kind = kind;
  finding.line = line;
  finding.column = column;
  finding.offset = -1;
  finding.operand[0] = first;
  finding.operand[1] = second;
  tw_add_finding(finding);
}

// Leaves the snippet. The processor would trap, or memory would be overwritten, if it went on.
[[noreturn]] TW_NOINLINE void tw_abandon_element() { __builtin_longjmp(tw_element.abandon, 1); }

// Once a loop did not end, no other element is evaluated: each would take as long.
static bool tw_met_endless_loop = false;

constexpr long long kMostRounds = 1ll << 27;  // of an element's loops: some tenths of a second

[[noreturn]] TW_NOINLINE void tw_leave_endless_loop(int line) {
  tw_met_endless_loop = true;
  tw_report(Finding::endless_loop, line, 0, kMostRounds, 0);
  tw_abandon_element();
}

// One round of a loop; always true (generator/snippet/counted_loops.hpp).
TW_INLINE bool tw_round(int line = __builtin_LINE()) {
  if (++tw_element.rounds > kMostRounds) tw_leave_endless_loop(line);
  return true;
}

// Runs a snippet; false if it was abandoned.
template <typename Body>
TW_NOINLINE bool tw_run(int snippet, Body&& body) {
  if (tw_met_endless_loop) return false;
  tw_element.snippet = snippet;
  tw_element.rounds = 0;
  if (__builtin_setjmp(tw_element.abandon)) return false;
  body();
  return true;
}

// What has been found since it was last asked for, each kind once for each place, dimension and outcome.
struct tw_Findings {
  static constexpr int kCapacity = 64;
  Finding items[kCapacity];
  int count;
  bool locked;

  void lock() {
    while (__atomic_test_and_set(&locked, __ATOMIC_ACQUIRE)) {
    }
  }
  void unlock() { __atomic_clear(&locked, __ATOMIC_RELEASE); }

  void add(const Finding& finding) {
    for (int i = 0; i < count; ++i) {
      if (tw_are_alike(items[i], finding) && items[i].kept == finding.kept) {
        return tw_widen(items[i], finding);
      }
    }
    if (count < kCapacity) items[count++] = finding;
  }
};

static tw_Findings tw_findings;

// Hands over what was found in the element at hand.
TW_NOINLINE void tw_finish_element(int b, int h, int q_idx, int kv_idx, bool kept) {
  if (tw_element.count == 0) return;
  tw_findings.lock();
  for (int i = 0; i < tw_element.count; ++i) {
    Finding& finding = tw_element.findings[i];
    finding.b = b;
    finding.h = h;
    finding.q_idx = q_idx;
    finding.kv_idx = kv_idx;
    finding.kept = kept;
    tw_findings.add(finding);
  }
  tw_findings.unlock();
  tw_element.count = 0;
}

TW_NOINLINE int tw_take_findings(Finding* findings, int capacity) {
  tw_findings.lock();
  const int count = tw_findings.count;
  for (int i = 0; i < count && i < capacity; ++i) findings[i] = tw_findings.items[i];
  tw_findings.count = 0;
  tw_findings.unlock();
  tw_met_endless_loop = false;
  return count;
}

// A snippet's `abs` (see interpretation.cpp): as in math/common.hpp, and knows the line that calls it.
template <typename Integer>
TW_INLINE Integer tw_checked_abs(Integer x, Integer least, int line) {
  if (x == least) tw_report(Finding::signed_overflow, line, 0, x, 0);
  return x < 0 && x != least ? -x : x;
}
TW_INLINE float tw_abs(float x) { return __builtin_fabsf(x); }
TW_INLINE double tw_abs(double x) { return __builtin_fabs(x); }
TW_INLINE int tw_abs(int x, int line = __builtin_LINE()) {
  return tw_checked_abs(x, -__INT_MAX__ - 1, line);
}
TW_INLINE long long tw_abs(long long x, int line = __builtin_LINE()) {
  return tw_checked_abs(x, -__LONG_LONG_MAX__ - 1, line);
}

// The handlers' arguments as gcc and clang lay them out.
struct tw_Site {
  const char* file;
  unsigned line;
  unsigned column;
};
struct tw_Type {
  unsigned short kind;
  unsigned short info;  // of an integer: log2 of its bits, then whether it is signed

  // The upper half of a shorter one is not its own.
  long long value(long operand) const {
    return info >> 1 > 5 ? operand : static_cast<int>(operand);
  }
};
struct tw_Arithmetic {
  tw_Site site;
  const tw_Type* type;
};
struct tw_Shift {
  tw_Site site;
  const tw_Type* type;
  const tw_Type* type_of_distance;
};

TW_INLINE void tw_report_at(int kind, const tw_Site& site, long long first, long long second) {
  tw_report(kind, static_cast<int>(site.line), static_cast<int>(site.column), first, second);
}
TW_INLINE void tw_report_operands(int kind, const tw_Arithmetic& at, long a, long b) {
  tw_report_at(kind, at.site, at.type->value(a), at.type->value(b));
}

#define TW_HANDLER extern "C" __attribute__((visibility("hidden"), used)) void

TW_HANDLER __ubsan_handle_add_overflow(const tw_Arithmetic* at, long a, long b) {
  tw_report_operands(Finding::signed_overflow, *at, a, b);
}
TW_HANDLER __ubsan_handle_sub_overflow(const tw_Arithmetic* at, long a, long b) {
  tw_report_operands(Finding::signed_overflow, *at, a, b);
}
TW_HANDLER __ubsan_handle_mul_overflow(const tw_Arithmetic* at, long a, long b) {
  tw_report_operands(Finding::signed_overflow, *at, a, b);
}
TW_HANDLER __ubsan_handle_negate_overflow(const tw_Arithmetic* at, long a) {
  tw_report_operands(Finding::signed_overflow, *at, a, 0);
}
TW_HANDLER __ubsan_handle_divrem_overflow(const tw_Arithmetic* at, long a, long b) {
  const int kind = b == 0 ? Finding::division_by_zero : Finding::division_overflow;
  tw_report_operands(kind, *at, a, b);
  tw_abandon_element();
}
TW_HANDLER __ubsan_handle_shift_out_of_bounds(const tw_Shift* at, long, long distance) {
  const long long by = at->type_of_distance->value(distance);
  tw_report_at(Finding::shift_out_of_range, at->site, by, 0);
}
TW_HANDLER __ubsan_handle_float_cast_overflow(const tw_Site* site, long) {
  tw_report_at(Finding::float_to_int_overflow, *site, 0, 0);
}
// An array of the snippet's own.
TW_HANDLER __ubsan_handle_out_of_bounds(const tw_Site* site, long index) {
  tw_report_at(Finding::index_out_of_bounds, *site, index, 0);
  tw_abandon_element();
}
TW_HANDLER __ubsan_handle_missing_return(const tw_Site* site) {
  tw_report_at(Finding::missing_return, *site, 0, 0);
  tw_abandon_element();
}

#undef TW_HANDLER

}  // namespace tw_snippet
