#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace tilewright {

/// The processes of a session that have not ended, read from /proc; none where that is not mounted.
/// Children stay in it when they take a separate process group, and when their parent ends.
std::vector<pid_t> processes_of_session(pid_t session);

/// What each of them does, for people who wonder why it does not end: "cc1plus, 118.20 s of
/// processor time: running", "tilewright, 3.10 s of processor time: futex_wait_queue, do_poll".
/// After the colon stands each thread: running, sleeping, or where in the kernel it sleeps if the
/// kernel says so.
std::vector<std::string> describe_session(pid_t session);

/// Kills every process of a session but the calling one. To be called before the session's leader
/// is reaped: until then no other process gets its number.
void kill_session(pid_t session);

}  // namespace tilewright
