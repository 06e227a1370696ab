#include "generator/tactic/tactic_fields.hpp"

#include <set>
#include <string>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

template <typename T>
std::string table_of(std::string_view tactic) {
  std::string table;
  for (const TacticField<T>& field : tactic_fields<T>()) {
    const std::string range = std::to_string(field.least) + " to " + std::to_string(field.greatest);
    const std::string allowed =
        field.step == 1 ? range : "multiples of " + std::to_string(field.step) + " from " + range;
    table += "| `" + std::string(tactic) + "` | `" + std::string(field.name) + "` | " + allowed +
             " | " + std::string(field.meaning) + " |\n";
  }
  return table;
}

// Every value that a parameter may be forced to comes back from it, and from no other parameter.
template <typename T>
void check_fields() {
  std::set<std::string_view> names;
  for (const TacticField<T>& field : tactic_fields<T>()) {
    CAPTURE(field.name);
    CHECK(names.insert(field.name).second);
    for (const std::int64_t value : {field.least, field.greatest}) {
      T tactic;
      force_fields({.name = "", .parameters = {{std::string(field.name), value}}}, tactic);
      for (const TacticField<T>& other : tactic_fields<T>()) {
        CHECK(other.of(tactic) == (other.name == field.name ? value : 0));
      }
    }
    for (const std::int64_t value : {field.least - 1, field.greatest + 1}) {
      T tactic;
      const TacticSpec forced{.name = "", .parameters = {{std::string(field.name), value}}};
      CHECK_THROWS_WITH(
          force_fields(forced, tactic),
          ContainsSubstring(std::string(field.name) + " is " + std::to_string(value)));
      CHECK(tactic == T{});
    }
  }
}

}  // namespace

TEST_CASE("tactic fields: each sets its own member, within its range") {
  check_fields<CpuTactic>();
  check_fields<PortableTactic>();
  check_fields<HopperTactic>();
}

TEST_CASE("tactic fields: docs/spec.md has the table") {
  const std::string page = read_text_file(TILEWRIGHT_SOURCE_DIR "/docs/spec.md");
  CHECK_THAT(page,
             ContainsSubstring(table_of<CpuTactic>("cpu") + table_of<PortableTactic>("portable") +
                               table_of<HopperTactic>("hopper")));
}

TEST_CASE("tactic fields: kernels have each constant with the value that was forced") {
  const auto text = [](const TacticSpec& tactic, const KernelVariant& variant = {}) {
    Spec spec{.dtype = bf16, .head_dim = 64};
    spec.tactic = tactic;
    return render_kernel(spec, Target::parse("sm_90a"), variant, *default_template_loader()).text;
  };
  CHECK_THAT(text({"portable", {{"stages", 3}, {"q_in_registers", 1}, {"blocks_per_sm", 1}}}),
             ContainsSubstring("constexpr int kStages = 3;\n") &&
                 ContainsSubstring("constexpr bool kQInRegisters = true;\n") &&
                 ContainsSubstring("__launch_bounds__(tw_kernel::kThreads, 1)"));
  CHECK_THAT(text({"hopper", {{"q_stages", 1}, {"out_over_q", 1}, {"bounded_waits", 1}}}),
             ContainsSubstring("constexpr int kQStages = 1;\n") &&
                 ContainsSubstring("constexpr bool kOutOverQ = true;\n") &&
                 ContainsSubstring("constexpr bool kBoundedWaits = true;\n"));
  // Loads through registers take half a tile.
  CHECK_THAT(text({"portable", {{"kv_tile", 64}}}), ContainsSubstring("kKvTile = 64;"));
  CHECK_THAT(text({"portable", {{"kv_tile", 64}}}, {.aligned = false}),
             ContainsSubstring("kKvTile = 32;"));
}
