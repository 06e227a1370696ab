#include "tests/compile_matrix/resource_table.hpp"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::compile_matrix;
using Catch::Matchers::ContainsSubstring;

namespace {

const Spec kCausal{.name = "causal", .dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};

Wish wish_of(const Spec& spec, const char* target = "sm_90a", const char* kernel = "forward") {
  return {spec, Target::parse(target), KernelVariant::parse(kernel)};
}

Outcome outcome_of(std::int64_t registers, const char* compiler = "V13.0.88") {
  return {.error = {},
          .compiler = compiler,
          .resources = {.registers = registers, .spill_bytes = 8, .shared_bytes = 49152},
          .cubin_bytes = 54321};
}

// What comes back of a table that is written to a file.
ResourceTable reread(const std::string& text) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("tilewright_table_" + std::to_string(getpid()) + ".tsv");
  write_text_file(path, text);
  const ResourceTable table = ResourceTable::read(path);
  std::filesystem::remove(path);
  return table;
}

}  // namespace

TEST_CASE("kernel resources: a table that was written is read back equal") {
  ResourceTable table;
  table.add(wish_of(kCausal), outcome_of(168));
  table.add(wish_of(kCausal, "sm_90a", "mask_exact"), outcome_of(40));
  const ResourceTable again = reread(table.text());
  REQUIRE(again.compiler() == "V13.0.88");
  REQUIRE(again.text() == table.text());
  REQUIRE(again.differences(table, {wish_of(kCausal), wish_of(kCausal, "sm_90a", "mask_exact")})
              .empty());
  REQUIRE_THAT(table.text(), ContainsSubstring("\nbf16\t64\tcausal\t"));
}

TEST_CASE("kernel resources: a changed figure, a missing row and a stale one are differences") {
  Spec wide = kCausal;
  wide.head_dim = 128;
  ResourceTable recorded;
  recorded.add(wish_of(kCausal), outcome_of(168));
  ResourceTable fresh;
  fresh.add(wish_of(kCausal), outcome_of(169));
  const std::vector<std::string> changed = recorded.differences(fresh, {wish_of(kCausal)});
  REQUIRE(changed.size() == 1);
  REQUIRE_THAT(changed[0], ContainsSubstring("was 168 49152 8 54321, is 169 49152 8 54321"));

  const std::vector<std::string> rows = recorded.differences(ResourceTable(), {wish_of(wide)});
  REQUIRE(rows.size() == 2);
  REQUIRE_THAT(rows[0], ContainsSubstring("128 causal"));
  REQUIRE_THAT(rows[0], ContainsSubstring("has no row"));
  REQUIRE_THAT(rows[1], ContainsSubstring("no kernel any more"));
}

TEST_CASE("kernel resources: another tactic of the same kernel is another row") {
  Spec forced = kCausal;
  forced.tactic = TacticSpec{"portable", {{"kv_tile", 16}}};
  ResourceTable recorded;
  recorded.add(wish_of(kCausal), outcome_of(168));
  REQUIRE(recorded.differences(ResourceTable(), {wish_of(forced)}).size() == 2);
}

TEST_CASE("kernel resources: rows are in the order of their numbers") {
  Spec wide = kCausal;
  wide.head_dim = 128;
  ResourceTable table;
  table.add(wish_of(wide, "sm_100a"), outcome_of(1));
  table.add(wish_of(wide, "sm_90a"), outcome_of(2));
  table.add(wish_of(kCausal, "sm_120"), outcome_of(3));
  const std::string text = table.text();
  REQUIRE(text.find("sm_120") < text.find("sm_90a"));
  REQUIRE(text.find("sm_90a") < text.find("sm_100a"));
}

TEST_CASE("kernel resources: every target, size and kind of kernel has its rows, once") {
  Spec snippets = kCausal;
  snippets.score_mod = "score * 2";
  const std::vector<Wish> wishes = ResourceTable::wishes(snippets);
  const auto count = [&](auto&& is_meant) {
    return std::count_if(wishes.begin(), wishes.end(), is_meant);
  };
  for (const char* kernel : {"mask_lists", "mask_exact", "mask_proved"}) {
    REQUIRE(count([&](const Wish& wish) { return wish.kernel.name() == kernel; }) == 6);
    REQUIRE(count([&](const Wish& wish) {
              return wish.kernel.name() == kernel && ResourceTable::is_in_sample(wish);
            }) == 6);
  }
  for (const std::int64_t head_dim : {64, 96, 128, 192, 256}) {
    for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"}) {
      const auto forward = count([&](const Wish& wish) {
        return wish.spec.dtype == bf16 && wish.spec.head_dim == head_dim &&
               wish.target.name() == target && wish.kernel.name() == "forward_masked";
      });
      REQUIRE(forward >= 2);  // with and without snippets
    }
  }
  REQUIRE(count(ResourceTable::is_in_sample) >= 12);
}

TEST_CASE("kernel resources: a file without a table is an error") {
  REQUIRE_THROWS_AS(reread("# Something else\n"), Error);
}
