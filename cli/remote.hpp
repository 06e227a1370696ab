#pragma once

#include <string>

#include "cli/output.hpp"

namespace tilewright::cli {

/// What is known of the remote cache that TILEWRIGHT_REMOTE_CACHE names.
struct RemoteReport {
  std::string text;     ///< one line, without its end
  std::string problem;  ///< why it does not serve; empty where it does, and where there is none
  std::string advice;   ///< what to do about that
  Json facts;           ///< null where there is none
};

/// Asks the server, which may take as long as its time-out.
/// @throws Error with code usage where the variables cannot be understood
RemoteReport examine_remote();

}  // namespace tilewright::cli
