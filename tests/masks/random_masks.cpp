#include "tests/masks/random_masks.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tilewright::masks {
namespace {

// An int expression, and a bound on its absolute value: C++ defines no overflow.
struct Number {
  std::string text;
  std::int64_t bound;
};

constexpr std::int64_t kMaxBound = 2'000'000'000;

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  std::string mask() {
    numbers_.clear();
    truths_.clear();
    std::string text;
    const int statements = below(4) == 0 ? 1 + below(4) : 0;
    for (int i = 0; i < statements; ++i) text += statement();
    if (below(10) == 0) return text + fmt::format("return {};", number(2).text);
    return text + fmt::format("return {};", truth(2 + below(3)));
  }

  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

 private:
  template <typename... Texts>
  std::string one_of(Texts... texts) {
    const std::array<std::string, sizeof...(Texts)> all = {texts...};
    return all[static_cast<std::size_t>(below(sizeof...(Texts)))];
  }

  Number constant() {
    const int value = below(3) == 0 ? below(500) : below(20);
    return below(5) == 0 ? Number{fmt::format("(-{})", value), value}
                         : Number{fmt::format("{}", value), value};
  }

  Number buffer_read(int depth) {
    const std::string index = below(3) == 0 ? number(depth - 1).text : one_of("q_idx", "kv_idx");
    switch (below(7)) {
      case 0:
      case 1:
        return {fmt::format("segment(b, {})", index), 8};
      case 2:
        return {fmt::format("levels[{}]", index), 100};
      case 3:
        return {fmt::format("flags[{}]", index), 1};
      case 4:
        return {"lengths[b]", 500};
      case 5:
        return {fmt::format("grid({}, {})", one_of("q_idx", "h"), index), 5};
      default:
        return {fmt::format("(int)wide(b, h, {})", index), 1000};
    }
  }

  Number leaf(int depth) {
    if (!numbers_.empty() && below(3) == 0) {
      return numbers_[static_cast<std::size_t>(below(static_cast<int>(numbers_.size())))];
    }
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        return {"q_idx", 4000};
      case 3:
      case 4:
      case 5:
        return {"kv_idx", 4000};
      case 6:
        return below(2) == 0 ? Number{"q_len", 1000} : Number{"kv_len", 1000};
      case 7:
        return below(2) == 0 ? Number{"b", 4} : Number{"h", 8};
      case 8:
        return {one_of("s0", "s1"), 300};
      case 9:
      case 10:
        return constant();
      default:
        return buffer_read(depth);
    }
  }

  // Within `limit`, by a remainder where it may be greater.
  Number limited(Number x, std::int64_t limit) {
    if (x.bound <= limit) return x;
    return {fmt::format("({} % {})", x.text, limit), limit};
  }

  Number number(int depth) {
    if (depth <= 0 || below(4) == 0) return leaf(depth);
    Number a = number(depth - 1);
    switch (below(19)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const Number b = limited(number(depth - 1), kMaxBound / 2);
        a = limited(a, kMaxBound / 2);
        return {fmt::format("({} {} {})", a.text, one_of("+", "-", "-"), b.text),
                a.bound + b.bound};
      }
      case 4: {
        const Number b = limited(number(depth - 1), 40000);
        a = limited(a, 40000);
        return {fmt::format("({} * {})", a.text, b.text), a.bound * b.bound};
      }
      case 5:
        return {fmt::format("({} / {})", a.text, one_of("2", "7", "16", "100", "(-3)", "128")),
                a.bound};
      case 6: {
        const int divisor = 1 + below(200);
        return {fmt::format("({} % {})", a.text, divisor), divisor};
      }
      case 7:
        return {fmt::format("({} / max(1, {}))", a.text, number(depth - 1).text), a.bound};
      case 8: {
        const Number b = number(depth - 1);
        return {fmt::format("({} % (1 + abs({})))", a.text, limited(b, kMaxBound / 2).text),
                a.bound};
      }
      case 9:
        return {fmt::format("({} >> {})", a.text, below(7)), a.bound};
      case 10: {
        const int distance = below(5);
        a = limited(a, kMaxBound >> 5);
        return {fmt::format("({} << {})", a.text, distance), a.bound << distance};
      }
      case 11:
      case 12: {
        // The bits of a negative number reach up to a power of two above its size.
        const Number b = limited(number(depth - 1), 1 << 28);
        a = limited(a, 1 << 28);
        return {fmt::format("({} {} {})", a.text, one_of("&", "|", "^"), b.text),
                2 * std::max(a.bound, b.bound) + 2};
      }
      case 13: {
        const Number b = number(depth - 1);
        return {fmt::format("{}({}, {})", one_of("min", "max"), a.text, b.text),
                std::max(a.bound, b.bound)};
      }
      case 14:
        return {fmt::format("abs({})", a.text), a.bound};
      case 15: {
        const int low = below(100);
        return {fmt::format("clamp({}, {}, {})", a.text, low, low + below(100)), 200};
      }
      case 16: {
        const Number b = number(depth - 1);
        return {fmt::format("select({}, {}, {})", truth(1), a.text, b.text),
                std::max(a.bound, b.bound)};
      }
      case 17:
        return {fmt::format("({}{})", one_of("-", "+"), a.text), a.bound};
      default:
        return {fmt::format("(~{})", a.text), a.bound + 1};
    }
  }

  std::string comparison(int depth) {
    return fmt::format("{} {} {}", number(depth).text,
                       one_of("<", "<=", ">", ">=", ">=", "<", "==", "!="), number(depth).text);
  }

  // What people write.
  std::string known_mask() {
    return one_of("q_idx >= kv_idx", "q_idx >= kv_idx && q_idx - kv_idx < s0",
                  "abs(q_idx - kv_idx) <= s1", "segment(b, q_idx) == segment(b, kv_idx)",
                  "kv_idx < lengths[b]", "q_idx / 50 == kv_idx / 50", "q_idx < s0 || kv_idx < s1",
                  "(q_idx - kv_idx) % 4 == 0", "bool(flags[kv_idx])");
  }

  std::string truth(int depth) {
    if (!truths_.empty() && below(4) == 0) {
      return truths_[static_cast<std::size_t>(below(static_cast<int>(truths_.size())))];
    }
    if (depth <= 0 || below(5) == 0) {
      return below(3) == 0 ? "(" + known_mask() + ")" : "(" + comparison(1) + ")";
    }
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        return fmt::format("({} && {})", truth(depth - 1), truth(depth - 1));
      case 3:
      case 4:
        return fmt::format("({} || {})", truth(depth - 1), truth(depth - 1));
      case 5:
        return fmt::format("!{}", truth(depth - 1));
      case 6:
        return fmt::format("({} {} {})", truth(depth - 1), one_of("==", "!=", "&", "|", "^"),
                           truth(depth - 1));
      case 7: {
        const std::string divisor = leaf(1).text;
        return fmt::format("({} != 0 && {} {} {} > {})", divisor, number(1).text, one_of("/", "%"),
                           divisor, below(9));
      }
      case 8:
        return fmt::format("({} ? {} : {})", truth(1), truth(depth - 1), truth(depth - 1));
      case 9:
        return fmt::format("({} && weights[{}] {} 0.5f)", truth(depth - 1),
                           one_of("q_idx", "kv_idx"), one_of("<", ">"));
      case 10:
        return fmt::format("({} + {} >= 1)", truth(depth - 1), truth(depth - 1));
      default:
        return "(" + comparison(depth - 1) + ")";
    }
  }

  std::string statement() {
    const std::string name = fmt::format("v{}", numbers_.size() + truths_.size());
    switch (below(8)) {
      case 0:
      case 1: {
        const Number value = number(2);
        numbers_.push_back({name, value.bound});
        return fmt::format("{} {} = {};\n", one_of("int", "const int"), name, value.text);
      }
      case 2: {
        const std::string value = truth(2);
        truths_.push_back(name);
        return fmt::format("bool {} = {};\n", name, value);
      }
      case 3:
        return fmt::format("if ({}) return {};\n", truth(1), one_of("true", "false", truth(1)));
      case 4: {
        const std::string first = truth(1), second = truth(1), condition = truth(1);
        truths_.push_back(name);
        return fmt::format("bool {0} = {1};\nif ({2}) {{ {0} = {3}; }} else {{ {0} {4} {3}; }}\n",
                           name, first, condition, second, one_of("&=", "|=", "^="));
      }
      case 5: {
        const Number step = limited(number(1), 1'000'000);
        numbers_.push_back({name, 10'000'000});
        return fmt::format(
            "int {0} = {1};\nfor (int i = 0; i < {2}; ++i) {{ {0} {3} {4}; {5} }}\n", name,
            below(9), 1 + below(4), one_of("+=", "-="), step.text,
            one_of("", fmt::format("if ({} > 300) break;", name), fmt::format("{}++;", name)));
      }
      case 6: {
        const Number argument = limited(number(1), 20'000);
        numbers_.push_back({name, 400'020'000});
        return fmt::format(
            "auto f{0} = [](int x) {{ return x * {1} + 7; }};\nint {0} = f{0}({2});\n", name,
            one_of("x", "3", "(x > 5 ? 2 : 1)"), argument.text);
      }
      default: {
        Number value = number(1);
        const std::string change =
            one_of("/= 3", "%= 17", ">>= 2", "&= 63", "= min(" + name + ", 9)");
        numbers_.push_back({name, std::max<std::int64_t>(value.bound, 64)});
        return fmt::format("int {0} = {1};\n{0} {2};\n", name, value.text, change);
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<Number> numbers_;      // local variables in sight
  std::vector<std::string> truths_;  // likewise
};

// The mask that `which` chooses, by halves: a row of conditions would cost more than the masks.
std::string choice(const std::vector<std::string>& masks, int begin, int end) {
  if (end - begin == 1) return "{\n" + masks[static_cast<std::size_t>(begin)] + "\n}\n";
  const int middle = (begin + end) / 2;
  return fmt::format("if (which < {}) {}else {}", middle, choice(masks, begin, middle),
                     choice(masks, middle, end));
}

}  // namespace

Spec random_masks(std::uint64_t seed, int count) {
  Writer writer(seed);
  std::vector<std::string> masks;
  for (int i = 0; i < count; ++i) masks.push_back(writer.mask());
  const auto side = [&] { return std::int64_t{16} * (1 + writer.below(16)); };
  const std::int64_t block_q = side();
  const Sorted sorted = writer.below(2) == 0 ? Sorted::promised : Sorted::random;
  return {.name = fmt::format("random_masks_{}", seed),
          .dtype = f32,
          .head_dim = 16,
          .mask_mod = choice(masks, 0, count) + "return false;",
          .buffers =
              {{"segment",
                {.dtype = i32,
                 .shape = {NamedDim::batch, NamedDim::kv_len},
                 .range = {{0, 7}},
                 .sorted = sorted}},
               {"levels", {.dtype = i32, .shape = {FreeDim{}}, .range = {{-100, 100}}}},
               {"flags", {.dtype = boolean, .shape = {NamedDim::kv_len}, .sorted = sorted}},
               {"lengths", {.dtype = i32, .shape = {NamedDim::batch}, .range = {{0, 500}}}},
               {"grid",
                {.dtype = i32, .shape = {NamedDim::q_len, NamedDim::kv_len}, .range = {{-5, 5}}}},
               {"wide",
                {.dtype = i64,
                 .shape = {NamedDim::batch, NamedDim::num_q_heads, NamedDim::kv_len},
                 .range = {{-1000, 1000}},
                 .sorted = sorted}},
               {"weights", {.dtype = f32, .shape = {NamedDim::kv_len}}}},
          .scalars = {{"which", {.dtype = i32, .default_value = 0}},
                      {"s0", {.dtype = i32, .default_value = 100}},
                      {"s1", {.dtype = i32, .default_value = 20}}},
          .block = {block_q, writer.below(2) == 0 ? block_q : side()}};
}

}  // namespace tilewright::masks
