#include "generator/render/engine/refused.hpp"

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_name.hpp"

namespace tilewright::jinja {
namespace {

struct Refused {
  std::string_view names;  // with a space before and after each
  std::string_view instead;
};

constexpr std::string_view kInCpp =
    "let C++ compute it, with constexpr in the kernel, or pass it as a variable";
constexpr std::string_view kDefined =
    "every variable of a kernel exists; ask `is none` for what may be absent";

constexpr std::array kFilterNames = {
    Refused{" default d ", kDefined},
    Refused{" count ", "write `|length`"},
    Refused{" first ", "write `items[0]`"},
    Refused{" last ", "write `items[items|length - 1]`"},
    Refused{" abs ", "write `-x if x < 0 else x`"},
    Refused{" ceil_div ", "write `(x + n - 1) // n`"},
    Refused{" string ", "write `x ~ \"\"`"},
    Refused{" cpp_float float ", "write the C++ literal in quotes: \"0.5f\""},
    Refused{" indent ", "a splice is indented as the line that prints it"},
    Refused{" items ", "loop over a list of maps: `item.name`, `item.value`"},
    Refused{" upper lower trim replace quote int round hex pow2 list sort sum ", kInCpp}};

constexpr std::array kTestNames = {
    Refused{" defined undefined ", kDefined},
    Refused{" even odd divisibleby ", "write `x % n == 0`"},
    Refused{" in ", "write `x == a or x == b`"},
    Refused{" true false ", "write `x` or `not x`"},
    Refused{" eq ne lt le gt ge ", "write `==`, `!=`, `<`, `<=`, `>` or `>=`"},
    Refused{" pow2 ", kInCpp},
    Refused{" boolean number integer float string list mapping callable ",
            "a variable has one type, which the comment above the kernel names"}};

constexpr std::array kTagNames = {
    Refused{" raw endraw ", "write the text as it is, and C++ braces with a space: { {"},
    Refused{" with endwith ", "write {% set name = value %}, which holds to the end of the block"},
    Refused{" do ", "lists and maps never change: pass the one that is wanted as a variable"},
    Refused{" break continue ", "write {% if condition %} around the rest of the loop's body"},
    Refused{" macro call endmacro endcall extends block endblock import from ",
            "write the text in a file of its own and {% include %} it, after {% set %} of what it "
            "reads"},
    Refused{" filter endfilter autoescape endautoescape trans endtrans ",
            "text is written as it stands: leave the tag out"}};

constexpr std::array kRefusedOperators = {Refused{" in ", "write `x == a or x == b`"},
                                          Refused{" / ", "write `//`, which rounds down"},
                                          Refused{" ** ", "write the product"},
                                          Refused{" & ", "write `and`"},
                                          Refused{" ! ", "write `not`, or `!=` to compare"},
                                          Refused{" ? ", "write `a if condition else b`"}};

const Refused* find_in(std::span<const Refused> table, std::string_view name) {
  const std::string word = fmt::format(" {} ", name);
  for (const Refused& refused : table) {
    if (refused.names.find(word) != std::string_view::npos) return &refused;
  }
  return nullptr;
}

// A name of Jinja's; else a misspelling: then the nearest of ours, or all of them.
Complaint refuse(std::string_view kind, std::string_view name, std::span<const Refused> of_jinja,
                 const std::vector<std::string>& ours) {
  if (const Refused* refused = find_in(of_jinja, name)) {
    return {fmt::format("the {} `{}` of Jinja is not supported", kind, name),
            std::string(refused->instead)};
  }
  std::string hint = did_you_mean(name, ours);
  if (hint.empty()) hint = fmt::format("there is {}", one_of(ours));
  return {fmt::format("no {} is called \"{}\"", kind, name), std::move(hint)};
}

}  // namespace

Complaint refused_filter(std::string_view name) {
  return refuse("filter", name, kFilterNames, {"length", "join", "min", "max"});
}

Complaint refused_test(std::string_view name) {
  return refuse("test", name, kTestNames, {"none"});
}

Complaint refused_tag(std::string_view name) {
  return refuse("tag", name, kTagNames,
                {"if", "elif", "else", "endif", "for", "endfor", "set", "include"});
}

Complaint refused_call(std::string_view name) {
  return {fmt::format("`{}` cannot be called: range is the only function", name),
          std::string(kInCpp)};
}

std::optional<Complaint> refused_operator(std::string_view token) {
  const Refused* const refused = find_in(kRefusedOperators, token);
  if (!refused) return std::nullopt;
  return Complaint{fmt::format("the operator `{}` is not supported", token),
                   std::string(refused->instead)};
}

}  // namespace tilewright::jinja
