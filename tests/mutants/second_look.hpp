#pragma once

#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "tests/mutants/population.hpp"

namespace tilewright::mutants {

/// A mutant whose results were all right is run once more, for some calls, by what finds mistakes
/// that need not show in a result: on a CPU kernels that end the process where they do what C++
/// leaves undefined, on a GPU compute-sanitizer's racecheck. That is asked of
///   the portable template and masks   about mutants that change a barrier or a wait; any hazard
///   Hopper's                          about all mutants; lanes that race (racecheck.hpp)
/// Each way is left out, with a line that says so, where it finds something in the templates as
/// they are, which could not be told from a mutant's. Safe to use from many threads.
class SecondLook {
 public:
  /// program: this one, which takes --one and the options that main.cpp names; device: its name,
  /// "cpu" or "cuda:0"; racecheck: compute-sanitizer, or empty
  SecondLook(std::string program, std::string device, std::string racecheck);

  /// What is wrong with the mutant, as a sentence; empty where nothing is found.
  std::string at(const Mutant& mutant);

 private:
  enum Way { sanitized, hazards, lanes, none };

  Way way_for(const Mutant& mutant) const;
  bool is_silent_about_original(Way way);
  std::string look(Way way, const std::string& id) const;
  std::string look_sanitized(const std::string& id) const;
  std::string look_for_races(Way way, const std::string& id) const;

  std::string program_;
  std::string device_;
  std::string racecheck_;
  std::array<std::once_flag, none> asked_;
  std::array<bool, none> is_silent_ = {};
};

}  // namespace tilewright::mutants
