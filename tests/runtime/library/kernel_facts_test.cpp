// What decides which kernel is found, one mutation for each ingredient, and what must not matter.
#include "runtime/library/kernel_facts.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "cache/key.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

const Spec kBase{.name = "base",
                 .dtype = bf16,
                 .head_dim = 64,
                 .score_mod = "score * cap + slopes[h]",
                 .mask_mod = "q_idx >= kv_idx",
                 .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}},
                 .scalars = {{"cap", {.dtype = f32, .default_value = 2.0}}}};
const Target kTarget = Target::parse("sm_90a");
const KernelVariant kKernel{.masked = true};

KernelSource render(const Spec& spec, const Target& target = kTarget,
                    const KernelVariant& id = kKernel) {
  return render_kernel(spec, target, id, *default_template_loader());
}

cache::Digest request(const Spec& spec) {
  return kernel_request(render(spec)).digest;
}

struct Mutation {
  const char* name;
  std::function<void(Spec&)> apply;
  // false: only the memo tells it. Extents are run-time values, and a CPU has products of one kind.
  bool is_rendered = true;
};

// Each must give other kernels.
const std::vector<Mutation> kThatMatter = {
    {"dtype", [](Spec& s) { s.dtype = f16; }},
    {"head_dim", [](Spec& s) { s.head_dim = 128; }},
    {"v_head_dim", [](Spec& s) { s.v_head_dim = 32; }},
    {"kv_dtype", [](Spec& s) { s.kv_dtype = f16; }},
    {"out_dtype", [](Spec& s) { s.out_dtype = f32; }},
    {"score_mod", [](Spec& s) { s.score_mod = "score * cap - slopes[h]"; }},
    {"mask_mod", [](Spec& s) { s.mask_mod = "q_idx > kv_idx"; }},
    {"buffer's dtype", [](Spec& s) { s.buffers["slopes"].dtype = f16; }},
    {"buffer's shape", [](Spec& s) { s.buffers["slopes"].shape = {std::int64_t{4}}; }, false},
    {"buffer's bounds",
     [](Spec& s) {
       s.buffers["slopes"].shape = {FreeDim{}};
       s.buffers["slopes"].bounds = Bounds::trusted;
     }},
    {"scalar's dtype", [](Spec& s) { s.scalars["cap"].dtype = DType::i32; }},
    {"block",
     [](Spec& s) {
       s.block = {64, 64};
     }},
    {"precise_math", [](Spec& s) { s.precise_math = true; }},
    {"f32_products", [](Spec& s) { s.f32_products = F32Products::tf32; }, false},
};

// None may give another kernel.
const std::vector<Mutation> kThatDoNotMatter = {
    {"name", [](Spec& s) { s.name = "another"; }},
    {"scale", [](Spec& s) { s.scale = 0.5; }},
    {"scalar's default", [](Spec& s) { s.scalars["cap"].default_value.reset(); }},
    {"buffer's range",
     [](Spec& s) {
       s.buffers["slopes"].range = {{0.0, 1.0}};
     }},
    {"buffer's order", [](Spec& s) { s.buffers["slopes"].sorted = true; }},
};

}  // namespace

TEST_CASE("kernel facts: every field of a spec that matters is in the request and in the memo") {
  std::set<cache::Digest> requests = {request(kBase)};
  std::set<cache::Digest> memos = {kernel_memo(kBase, kTarget, kKernel)};
  std::size_t count = 1;
  std::size_t rendered = 1;
  for (const Mutation& mutation : kThatMatter) {
    Spec spec = kBase;
    mutation.apply(spec);
    INFO(mutation.name);
    requests.insert(request(spec));
    memos.insert(kernel_memo(spec, kTarget, kKernel));
    rendered += mutation.is_rendered ? 1 : 0;
    REQUIRE(requests.size() == rendered);
    REQUIRE(memos.size() == ++count);
    REQUIRE(spec_ingredients(spec) != spec_ingredients(kBase));
  }
}

TEST_CASE(
    "kernel facts: a promise of order is in the requests of what proves a mask, and no other") {
  Spec spec = kBase;
  spec.buffers["doc"] = {.dtype = i32, .shape = {NamedDim::kv_len}, .sorted = true};
  spec.mask_mod = "doc[q_idx] == doc[kv_idx]";
  Spec promised = spec;
  promised.buffers["doc"].sorted = Sorted::promised;
  CHECK(spec_ingredients(spec) != spec_ingredients(promised));
  for (const char* name : {"sm_90a", "cpu-x86-64-v3"}) {
    const Target target = Target::parse(name);
    for (const KernelVariant& id : kernel_set(spec, target)) {
      CAPTURE(name, id.name());
      const bool proves = id.role == KernelRole::mask_proved || id.role == KernelRole::mask_lists;
      CHECK((render(spec, target, id).text != render(promised, target, id).text) == proves);
      CHECK(kernel_memo(spec, target, id) != kernel_memo(promised, target, id));
    }
  }
}

TEST_CASE("kernel facts: what never reaches a kernel is in neither, for any kernel") {
  for (const Mutation& mutation : kThatDoNotMatter) {
    Spec spec = kBase;
    mutation.apply(spec);
    INFO(mutation.name);
    for (const char* name : {"sm_90a", "cpu-x86-64-v3"}) {
      const Target target = Target::parse(name);
      for (const KernelVariant& id : kernel_set(kBase, target)) {
        REQUIRE(render(spec, target, id).text == render(kBase, target, id).text);
        REQUIRE(kernel_memo(spec, target, id) == kernel_memo(kBase, target, id));
      }
    }
    REQUIRE(spec_ingredients(spec) == spec_ingredients(kBase));
  }
}

TEST_CASE("kernel facts: kernel, target, options, source and format are in the request") {
  const KernelSource base = render(kBase);
  const cache::Digest digest = kernel_request(base).digest;
  std::set<std::string> tags;
  for (const cache::Ingredient& i : kernel_request(base).ingredients) {
    tags.insert(i.tag);
    // Each ingredient counts by itself, also the format, which only a new version changes.
    std::vector<cache::Ingredient> changed = kernel_request(base).ingredients;
    for (cache::Ingredient& other : changed) {
      if (other.tag == i.tag) other.value += "x";
    }
    REQUIRE(cache::make_request(changed).digest != digest);
  }
  REQUIRE(tags == std::set<std::string>{"format", "kernel", "options", "source", "target"});

  KernelSource source = base;
  source.text += ' ';
  REQUIRE(kernel_request(source).digest != digest);
  source = base;
  source.options.emplace_back("-lineinfo");
  REQUIRE(kernel_request(source).digest != digest);
  source = base;
  source.target = Target::parse("sm_90");
  REQUIRE(kernel_request(source).digest != digest);
  source = base;
  source.variant = KernelVariant{};
  REQUIRE(kernel_request(source).digest != digest);

  REQUIRE(kernel_memo(kBase, Target::parse("sm_90"), kKernel) !=
          kernel_memo(kBase, kTarget, kKernel));
  REQUIRE(kernel_memo(kBase, kTarget, KernelVariant::parse("forward")) !=
          kernel_memo(kBase, kTarget, kKernel));
}

TEST_CASE("kernel facts: a compiler is in the key and not in the request") {
  const cache::Request wanted = kernel_request(render(kBase));
  REQUIRE(cache::make_key(wanted, "compiler 1") != cache::make_key(wanted, "compiler 2"));
  REQUIRE(cache::make_key(wanted, "compiler 1") == cache::make_key(wanted, "compiler 1"));
}

TEST_CASE("kernel facts: working directory, time, thread and the order of options do not matter") {
  const KernelSource base = render(kBase);
  const cache::Digest digest = kernel_request(base).digest;
  const cache::Digest memo = kernel_memo(kBase, kTarget, kKernel);

  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path("/");
  const cache::Digest elsewhere = request(kBase);
  std::filesystem::current_path(here);
  REQUIRE(elsewhere == digest);

  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cache::Digest later;
  std::thread([&] { later = request(kBase); }).join();
  REQUIRE(later == digest);
  REQUIRE(kernel_memo(kBase, kTarget, kKernel) == memo);

  KernelSource source = base;
  std::reverse(source.options.begin(), source.options.end());
  REQUIRE(kernel_request(source).digest == digest);
}

TEST_CASE("kernel facts: a description of a kernel says what its rendering says, but the text") {
  for (const char* name : {"sm_80", "sm_90a", "sm_120", "cpu-x86-64-v3", "cpu-x86-64-v4"}) {
    const Target target = Target::parse(name);
    for (const KernelVariant& id : kernel_set(kBase, target)) {
      const KernelSource rendered = render(kBase, target, id);
      const KernelSource described = kernel_metadata(kBase, target, id);
      REQUIRE(described.text.empty());
      REQUIRE(described.variant == rendered.variant);
      REQUIRE(described.target == rendered.target);
      REQUIRE(described.options == rendered.options);
      REQUIRE(described.entry_points == rendered.entry_points);
      REQUIRE(described.launch.q_tile == rendered.launch.q_tile);
      REQUIRE(described.launch.kv_box_rows == rendered.launch.kv_box_rows);
      REQUIRE(described.launch.passing_rows == rendered.launch.passing_rows);
      REQUIRE(described.launch.is_persistent == rendered.launch.is_persistent);
      REQUIRE(described.launch.threads == rendered.launch.threads);
      REQUIRE(described.launch.shared_bytes == rendered.launch.shared_bytes);
    }
  }
}

TEST_CASE("kernel facts: what is recorded beside a binary gives its request again") {
  const KernelSource source = render(kBase);
  const cache::Metadata metadata = kernel_metadata(kBase, source);
  REQUIRE(recorded_request(metadata)->digest == kernel_request(source).digest);
  REQUIRE(metadata.at("spec") == "base");
  REQUIRE(spec_from_json(metadata.at("spec_json")) == kernel_spec(kBase));
  REQUIRE_FALSE(recorded_request({{"kernel", "forward"}}));
}
