#include "tests/mutants/second_look.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "tests/mutants/trial_report.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::mutants;

namespace {

// A program in place of this one, or of compute-sanitizer: runs `original` where its words hold
// "original", else `mutant`; both are a shell's.
class Program {
 public:
  Program(const std::string& original, const std::string& mutant) {
    std::ofstream(path()) << fmt::format(
        "#!/bin/sh\ncase \"$*\" in *original*) {};; *) {};; esac\n", original, mutant);
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }

  std::string path() const { return (folder_.path() / "program").string(); }

 private:
  TemporaryDirectory folder_{"second-look"};
};

std::string says(Fate fate) {
  const std::string name(to_string(fate));
  return fmt::format("printf 'trial:\\t{}\\t3\\twhat is wrong\\n'", name);
}

std::string hazard(int first, int second) {
  return fmt::format(
      "echo 'Error: Potential RAW hazard detected at __shared__ 0x10 in block (0,0,0) :'; "
      "echo '    Write Thread ({},0,0) at f+0x10'; echo '    Read Thread ({},0,0) at f+0x20'; "
      "exit 9",
      first, second);
}

Mutant any_of(Group group, bool may_race) {
  const std::vector<Mutant> all = all_mutants();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Mutant& mutant) {
    return mutant.group == group && mutant.mutation.may_race() == may_race;
  });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("second look: on a CPU what ends by a trap, or is wrong, is found") {
  const Mutant mutant = any_of(Group::cpu, false);
  const std::string fine = says(Fate::survived);
  const auto look = [&](const std::string& original, const std::string& mutated) {
    const Program program(original, mutated);
    return SecondLook(program.path(), "cpu", "").at(mutant);
  };
  CHECK(look(fine, fine) == "");
  CHECK(look(fine, "kill -ILL $$") == "does what C++ leaves undefined");
  CHECK(look(fine, says(Fate::killed)) == "looked at again: what is wrong");
  // What traps without a mistake tells nothing.
  CHECK(look("kill -ILL $$", "kill -ILL $$") == "");
}

TEST_CASE(
    "second look: on a GPU racecheck is asked, of Hopper's kernel for lanes of a warp alone") {
  const Program program(says(Fate::survived), "exit 1");
  const auto look = [&](Group group, bool may_race, const std::string& mutated) {
    const Program racecheck(says(Fate::survived), mutated);
    return SecondLook(program.path(), "cuda:0", racecheck.path()).at(any_of(group, may_race));
  };
  CHECK(look(Group::portable, true, hazard(3, 70)) == "racecheck reports a hazard");
  CHECK(look(Group::portable, false, hazard(3, 70)) == "");
  CHECK(look(Group::hopper, false, hazard(3, 70)) == "");
  CHECK(look(Group::hopper, false, hazard(3, 4)) ==
        "racecheck reports a RAW hazard between threads 3 and 4, lanes of a warp");
  CHECK(SecondLook(program.path(), "cuda:0", "").at(any_of(Group::portable, true)) == "");
}

TEST_CASE("second look: a trial that was reported is read again") {
  const Trial trial = read_trial("more\n" + report_of({Fate::killed, 7, "out\nis wrong"}) + "more");
  CHECK(trial.fate == Fate::killed);
  CHECK(trial.calls == 7);
  CHECK(trial.detail == "out is wrong");
  CHECK_THROWS_AS(read_trial("nothing"), Error);
}
