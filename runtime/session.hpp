#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace tilewright {

/// The processes of a session that have not ended, read from /proc; none where that is not mounted.
/// Children stay in it when they take a process group of their own, and when their parent ends.
std::vector<pid_t> processes_of_session(pid_t session);

/// What each of them does: "tilewright is running after 118.20 s of processor time", "cc1plus
/// sleeps in futex_wait_queue after 0.31 s of processor time"; where it sleeps only if the kernel
/// says so. For people who wonder why they do not end.
std::vector<std::string> describe_session(pid_t session);

/// Kills every process of a session but the calling one. To be called before the session's leader
/// is reaped: until then its number is nobody else's.
void kill_session(pid_t session);

}  // namespace tilewright
