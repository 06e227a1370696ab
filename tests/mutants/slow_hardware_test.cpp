#include "tests/mutants/slow_hardware.hpp"

#include <string>

#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "runtime/compile/kernel_compiler.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using namespace tilewright::mutants;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("slow hardware: kernels of the sleepy templates compile, and sleep") {
  if (test::nvrtc_is_missing()) return;
  const Target target = Target::parse("sm_90a");
  const auto templates = sleepy_templates(embedded_template_loader());
  for (const Spec& spec : specs_with_many_q_tiles()) {
    CAPTURE(spec.name);
    const KernelSource source =
        render_kernel(spec, target, kernel_set(spec, target).front(), *templates);
    CHECK_THAT(source.text, ContainsSubstring("  sleep_at_times();") &&
                                ContainsSubstring("if (threadIdx.x == 0) sleep_long();"));
    CHECK_NOTHROW(find_compiler(target)->compile(spec, source));
  }
}

TEST_CASE("slow hardware: outputs are staged both ways, by blocks with many q tiles and with one") {
  const Target target = Target::parse("sm_90a");
  const auto text_of = [&](const Spec& spec) {
    return render_kernel(spec, target, kernel_set(spec, target).front(),
                         *embedded_template_loader())
        .text;
  };
  const auto specs = specs_with_many_q_tiles();
  CHECK_THAT(text_of(specs.at(0)), ContainsSubstring("kOutOverQ = false"));
  CHECK_THAT(text_of(specs.at(1)), ContainsSubstring("kOutOverQ = true"));
  CHECK_THAT(text_of(spec_with_stages()), ContainsSubstring("kStages = 3"));
}

TEST_CASE("slow hardware: Q has one place in blocks that do one tile, and lies in registers") {
  const Target target = Target::parse("sm_90a");
  const Spec one_place = spec_with_many_blocks_of_one_place();
  const Tactic tactic = choose_cuda_tactic(one_place, target, {});
  CHECK(tactic.name() == "hopper");
  CHECK(tactic.parameters().at("q_stages") == 1);
  CHECK(tactic.parameters().at("persistent") == 0);
  const Spec in_registers = spec_with_q_in_registers();
  const Tactic portable = choose_cuda_tactic(in_registers, target, {});
  CHECK(portable.parameters().at("q_in_registers") == 1);
  CHECK(portable.parameters().at("warps") > 1);  // whose rows of Q others bring
}
