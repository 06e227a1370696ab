#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "../render/engine/value.hpp"
#include "tactic.hpp"

namespace tilewright {

/// One parameter of a tactic: everything that is said about it, once.
template <typename T>
struct TacticField {
  std::string_view name;  ///< in a spec's forced tactic, in describe() and as a template's variable
  std::variant<std::int64_t T::*, bool T::*> member;
  std::int64_t least = 0;  ///< allowed are multiples of step from least to greatest
  std::int64_t greatest = 1;
  std::int64_t step = 1;
  std::string_view constant;  ///< of the rendered kernel: "kQTile"; empty if it has none
  std::string_view meaning;   ///< as the table in docs/spec.md says it
  bool is_described = true;   ///< whether describe() shows it

  bool is_bool() const { return std::holds_alternative<bool T::*>(member); }
  std::int64_t of(const T& tactic) const {
    return std::visit([&](auto m) { return static_cast<std::int64_t>(tactic.*m); }, member);
  }
  void set(T& tactic, std::int64_t value) const {
    if (const auto* flag = std::get_if<bool T::*>(&member)) {
      tactic.** flag = value != 0;
    } else {
      tactic.*std::get<std::int64_t T::*>(member) = value;
    }
  }
};

/// The parameters of a tactic, in the order in which describe() and messages name them.
template <typename T>
std::span<const TacticField<T>> tactic_fields();

template <>
std::span<const TacticField<CpuTactic>> tactic_fields();
template <>
std::span<const TacticField<PortableTactic>> tactic_fields();
template <>
std::span<const TacticField<HopperTactic>> tactic_fields();
template <>
std::span<const TacticField<DecodeTactic>> tactic_fields();

/// Replaces parameters by the forced ones.
/// @throws Error with code spec for a parameter that the tactic does not have, with those that it
///         has, and for a value that the parameter does not take
template <typename T>
void force_fields(const TacticSpec& forced, T& tactic);

extern template void force_fields(const TacticSpec&, CpuTactic&);
extern template void force_fields(const TacticSpec&, PortableTactic&);
extern template void force_fields(const TacticSpec&, HopperTactic&);

/// The template variables of a tactic: each parameter by its name, and `tactic_constants`, a list
/// of {type, name, value} of those that are constants of the rendered kernel.
template <typename T>
jinja::Map tactic_variables(const T& tactic);

extern template jinja::Map tactic_variables(const CpuTactic&);
extern template jinja::Map tactic_variables(const PortableTactic&);
extern template jinja::Map tactic_variables(const HopperTactic&);
extern template jinja::Map tactic_variables(const DecodeTactic&);

/// The tactics that a spec may force, of all targets.
const std::vector<std::string>& all_tactic_names();

/// @throws Error with code spec: "tactic: <message>"
[[noreturn]] void fail_tactic(const std::string& message, std::string hint = {});

/// @throws Error with code spec unless a parameter is a multiple of `step` from `least` to
///         `greatest`
void require_range(std::string_view name, std::int64_t value, std::int64_t least,
                   std::int64_t greatest, std::int64_t step = 1);

/// @throws Error with code spec unless a parameter divides a side of the block mask's tiles
void require_divides(std::string_view name, std::int64_t value, std::string_view side_name,
                     std::int64_t side, std::string hint = "leave it out or change block");

}  // namespace tilewright
