// What profilers show of a kernel, and that a name changes nothing else.
#include "runtime/library/kernel_names.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "generator/render/templates.hpp"
#include "runtime/library/kernel_facts.hpp"
#include "runtime/library/kernel_library.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using Catch::Matchers::Matches;

namespace {

const Spec kSpec{.name = "causal",
                 .dtype = bf16,
                 .head_dim = 64,
                 .score_mod = "score * cap",
                 .mask_mod = "q_idx >= kv_idx",
                 .scalars = {{"cap", {.dtype = f32, .default_value = 2.0}}},
                 .gradients = {"q", "k", "v"}};
const Target kTarget = Target::parse("sm_90a");

KernelSource render(const KernelVariant& id, const Target& target = kTarget,
                    const Spec& spec = kSpec) {
  return render_kernel(spec, target, id, *default_template_loader());
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("kernel names: variant, own words where there are several, and eight digits") {
  REQUIRE_THAT(kernel_names(render({.masked = true})).at(0),
               Matches("tw_forward_masked_[0-9a-f]{8}"));
  const auto expect_parts = [](bool aligned, const std::vector<std::string>& parts) {
    const std::vector<std::string> backward =
        kernel_names(render({.role = KernelRole::backward, .masked = true, .aligned = aligned}));
    REQUIRE(backward.size() == parts.size());
    for (const std::string& part : parts) {
      const bool is_named = std::any_of(backward.begin(), backward.end(), [&](const auto& name) {
        const std::string variant = aligned ? "backward_masked_" : "backward_masked_unaligned_";
        return name.starts_with("tw_" + variant + part + "_");
      });
      CHECK(is_named);
    }
  };
  expect_parts(true, {"prepare", "main", "store_dq"});
  expect_parts(false, {"prepare", "columns", "rows", "finish"});
  Spec packed = kSpec;
  packed.layout = Layout::packed;
  packed.outputs.lse = true;
  const std::vector<std::string> of_packed =
      kernel_names(render({.role = KernelRole::backward}, kTarget, packed));
  CHECK(std::set(of_packed.begin(), of_packed.end()).size() == of_packed.size());
  REQUIRE_THAT(kernel_names(render({.masked = true}, Target::parse("cpu-x86-64-v3"))).at(0),
               Matches("tw_forward_masked_[0-9a-f]{8}"));
}

TEST_CASE("kernel names: source, target and options decide the digits, and nothing else") {
  const KernelSource base = render({.masked = true});
  std::set<std::vector<std::string>> names = {kernel_names(base)};
  const std::vector<std::function<void(KernelSource&)>> changes = {
      [](KernelSource& s) { s.text += "\n"; },
      [](KernelSource& s) { s.target = Target::parse("sm_100a"); },
      [](KernelSource& s) { s.options.emplace_back("-lineinfo"); }};
  for (const auto& change : changes) {
    KernelSource changed = base;
    change(changed);
    names.insert(kernel_names(changed));
  }
  CHECK(names.size() == 1 + changes.size());

  KernelSource reordered = base;
  std::reverse(reordered.options.begin(), reordered.options.end());
  CHECK(kernel_names(reordered) == kernel_names(base));
  Spec renamed = kSpec;
  renamed.name = "another";
  CHECK(kernel_names(render({.masked = true}, kTarget, renamed)) == kernel_names(base));
}

TEST_CASE("kernel names: every entry point of every kernel is renamed, in its own line") {
  for (const KernelVariant& id : kernel_set(kSpec, kTarget)) {
    CAPTURE(id.name());
    const KernelSource source = render(id);
    const KernelSource named_source = with_names(source);
    const std::string& named = named_source.text;
    REQUIRE(std::count(named.begin(), named.end(), '\n') ==
            std::count(source.text.begin(), source.text.end(), '\n'));
    std::string back = named;
    const std::vector<std::string> names = kernel_names(source);
    REQUIRE(names.size() == source.entry_points.size());
    REQUIRE(named_source.entry_points == names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      REQUIRE(dynamic_shared_bytes(named_source, names[i]) ==
              dynamic_shared_bytes(source, source.entry_points[i]));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      REQUIRE(contains(named, names[i] + "("));
      REQUIRE(!contains(named, " " + source.entry_points[i] + "("));
      for (std::size_t at = back.find(names[i]); at != std::string::npos;
           at = back.find(names[i])) {
        back.replace(at, names[i].size(), source.entry_points[i]);
      }
    }
    REQUIRE(back == source.text);
  }
}

TEST_CASE("kernel names: a longer identifier and a CPU's kernel stay as they are") {
  KernelSource source = render({.masked = true});
  source.text = "void tilewright_forward(); int tilewright_forward_2, my_tilewright_forward;";
  CHECK(with_names(source).text == "void " + kernel_names(source).at(0) +
                                       "(); int tilewright_forward_2, my_tilewright_forward;");
  const KernelSource cpu = render({.masked = true}, Target::parse("cpu-x86-64-v3"));
  CHECK(with_names(cpu).text == cpu.text);
}

TEST_CASE("kernel names: a binary has the names that are recorded with it") {
  if (test::nvrtc_is_missing()) return;
  const Toolchain toolchain{.store = std::make_shared<cache::Store>(cache::Store::Options{})};
  const KernelVariant id{.role = KernelRole::backward, .masked = true};
  const KernelBinary binary = build_kernel(kSpec, kTarget, id, toolchain);
  REQUIRE(binary.build.names == kernel_names(render(id)));
  const auto* const bytes = reinterpret_cast<const char*>(binary.entry->payload.data());
  const std::string cubin(bytes, binary.entry->payload.size());
  for (const std::string& name : binary.build.names) CHECK(contains(cubin, name));
  CHECK(!contains(cubin, "tilewright_backward"));
}

TEST_CASE("kernel names: lines are for profilers alone, and have an entry of their own") {
  if (test::nvrtc_is_missing()) return;
  const auto store = std::make_shared<cache::Store>(cache::Store::Options{});
  const KernelVariant id{.role = KernelRole::mask_exact};
  const auto build = [&](bool line_info, bool jit) {
    return build_kernel(kSpec, kTarget, id, {.store = store, .jit = jit, .line_info = line_info});
  };
  const auto has_lines = [](const KernelBinary& binary) {
    const auto* const bytes = reinterpret_cast<const char*>(binary.entry->payload.data());
    return contains(std::string(bytes, binary.entry->payload.size()), ".debug_line");
  };
  const KernelBinary plain = build(false, true);
  const KernelBinary with_lines = build(true, true);
  CHECK(!has_lines(plain));
  CHECK(has_lines(with_lines));
  CHECK(plain.build.names != with_lines.build.names);
  CHECK(plain.source.text == with_lines.source.text);
}
