#pragma once

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"
#include "verify/check.hpp"

// What a check finds of a kernel that may be faulty.

namespace tilewright::test {

inline verify::CheckOptions check_options(std::shared_ptr<const jinja::Loader> templates) {
  verify::CheckOptions options;
  options.attention.device = Device::parse("cuda");
  options.attention.kernels.templates = std::move(templates);
  options.interpretations = Toolchain();
  options.check_undefined = false;
  return options;
}

/// Empty where the call is right, else what was noticed.
template <typename Check>
std::string findings_here(const Check& check) {
  try {
    const verify::Report report = check();
    return report.ok ? "" : report.reasons().at(0);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device) return error.message();
    throw;
  } catch (const std::length_error&) {  // of the host's copy of lists
    return "the kernels counted more tiles than a vector holds";
  } catch (const std::bad_alloc&) {
    return "the kernels counted more tiles than memory holds";
  }
}

/// The same in a process of its own, as a faulty kernel may write anywhere.
template <typename Check>
std::string findings_of(const Check& check) {
  constexpr std::string_view kNotTried = "not tried: ";
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGABRT, SIG_DFL);
    std::signal(SIGILL, SIG_DFL);  // an array's bounds, see nvrtc.cpp
    std::string found;
    try {
      found = findings_here(check);
    } catch (const std::exception& error) {
      found = std::string(kNotTried) + error.what();
    }
    const bool is_written = write(ends[1], found.data(), found.size()) >= 0;
    _exit(is_written ? 0 : 1);
  }
  close(ends[1]);
  std::string found(4096, '\0');
  found.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[0], found.data(), 4096))));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (found.starts_with(kNotTried)) FAIL(found);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? found : "it crashed";
}

/// Each kernel with a fault is compiled: a run takes the day's share of them, and looks whether the
/// others still fit their templates.
/// @param findings of templates, empty where they are right
template <typename Findings>
void check_each_is_seen(const std::vector<Fault>& faults, const Findings& findings) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    CAPTURE(faults[i].what);
    const auto templates = std::make_shared<const FaultyTemplates>(faults[i]);
    if (!is_due(i, is_full_run() ? 2 : 4)) continue;
    const std::string found = findings(templates);
    INFO(found);
    CHECK(!found.empty());
  }
}

}  // namespace tilewright::test
