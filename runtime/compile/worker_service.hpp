#pragma once

namespace tilewright {

/// What the hidden verb that starts a worker is called: `tilewright compile-worker`.
inline constexpr const char* kWorkerVerb = "compile-worker";

/// The life of a worker: answers requests on its stdin, a socket, until the other end is closed or
/// nothing was asked for half a minute. A crash, or a limit that is reached, ends it; the process
/// that asked sees that. Returns the exit status.
int serve_compiles();

}  // namespace tilewright
