#include "tests/mutants/population.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "generator/render/embedded_templates.hpp"
#include "tests/mutants/trial.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::mutants;

Mutant find(const std::string& file, const std::string& before, const std::string& after) {
  for (const Mutant& mutant : all_mutants()) {
    const Mutation& mutation = mutant.mutation;
    if (mutation.file == file && mutation.before == before && mutation.after == after) {
      return mutant;
    }
  }
  throw Error(ErrorCode::internal, "no such mutant: " + before);
}

std::vector<Subject> first_subject() {
  std::vector<Subject> all = subjects(Device::Kind::cpu);
  all.resize(1);
  return all;
}

}  // namespace

TEST_CASE("the population: at least 120 mutants, of every group and by every operator") {
  std::map<Group, int> groups;
  std::set<Operator> operators;
  std::set<std::string> ids;
  int on_cpu = 0;
  for (const Mutant& mutant : population()) {
    ++groups[mutant.group];
    operators.insert(mutant.mutation.kind);
    CHECK(ids.insert(mutant.mutation.id()).second);
    if (runs_on_cpu(mutant.group)) ++on_cpu;
  }
  CHECK(on_cpu >= 120);
  for (const Group group : kGroups) CHECK(groups[group] >= 20);
  CHECK(operators.size() == 9);
}

TEST_CASE("the population: each mutant changes one template, once") {
  for (const Mutant& mutant : population()) {
    const auto templates = mutated_templates(mutant.mutation);
    int changed = 0;
    for (const EmbeddedTemplate& file : embedded_templates()) {
      const std::string text = templates->load(file.name).value();
      if (text == file.text) continue;
      ++changed;
      CHECK(file.name == mutant.mutation.file);
      CHECK(text.size() + mutant.mutation.removed.size() ==
            file.text.size() + mutant.mutation.inserted.size());
    }
    CAPTURE(mutant.mutation.describe());
    CHECK(changed == 1);
  }
}

TEST_CASE("equivalent.json: every entry is a mutant that is tried, with a reason") {
  const Equivalents equivalents(TILEWRIGHT_SOURCE_DIR "/tests/mutants/equivalent.json",
                                all_mutants());
  CHECK(equivalents.size() > 0);
  std::size_t tried = 0;
  for (const Mutant& mutant : population()) {
    if (!equivalents.reason(mutant.mutation).empty()) ++tried;
  }
  CHECK(tried >= equivalents.size());
  CHECK_THROWS_AS(Equivalents("/nonexistent", all_mutants()), Error);
  CHECK_THROWS_AS(
      Equivalents(TILEWRIGHT_SOURCE_DIR "/tests/mutants/equivalent.json", std::vector<Mutant>{}),
      Error);
}

TEST_CASE("a trial: a wrong rescale is killed, what changes no subject is not reached") {
  const Mutation wrong =
      find("cpu/softmax.hpp", "sum[i] += s[kv + i];", "sum[i] += s[kv - i];").mutation;
  const Trial killed = try_mutant(wrong, first_subject(), {.device = Device::cpu()});
  CHECK(killed.fate == Fate::killed);
  CHECK(killed.calls >= 1);
  const Mutation elsewhere =
      find("cuda/attention/softmax.hpp", "softmax.sum[i] *= alpha[i];", ";").mutation;
  CHECK(try_mutant(elsewhere, first_subject(), {.device = Device::cpu()}).fate ==
        Fate::not_reached);
}

TEST_CASE("a trial: a kernel that computes the same survives, one that is no C++ is set apart") {
  Mutation same = find("cpu/softmax.hpp", "sum[i] += s[kv + i];", "sum[i] += s[kv - i];").mutation;
  same.inserted = "  +  ";
  CHECK(try_mutant(same, first_subject(), {.device = Device::cpu()}).fate == Fate::survived);
  same.inserted = " no_such_name ";
  CHECK(try_mutant(same, first_subject(), {.device = Device::cpu()}).fate ==
        Fate::does_not_compile);
}

TEST_CASE(
    "a trial: an error that a call ends with has noticed the mutant, unless it is a compiler's") {
  for (const ErrorCode code : {ErrorCode::compiler, ErrorCode::snippet, ErrorCode::kernel_template,
                               ErrorCode::missing_kernel}) {
    CHECK(fate_of(Error(code, "")) == Fate::does_not_compile);
  }
  for (const ErrorCode code : {ErrorCode::tensor, ErrorCode::block_mask, ErrorCode::device,
                               ErrorCode::memory, ErrorCode::internal}) {
    CHECK(fate_of(Error(code, "")) == Fate::killed);
  }
}
