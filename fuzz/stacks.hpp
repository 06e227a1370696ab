#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace tilewright::verify::fuzz {

/// A file without a name that a process and its forked children share; -1 where there is none.
int make_stack_file();

/// From now on each thread of this process that gets SIGURG appends its stack to a file, and what
/// the process is doing (base/activity.hpp). SIGURG, as a process that does not expect it ignores
/// it.
void answer_with_stacks(int file);

/// Asks each thread of a process that called answer_with_stacks() for its stack, one after the
/// other, for at most two seconds each, and returns the answers: functions and, where the system
/// has addr2line, lines. The process goes on afterwards.
std::string ask_for_stacks(pid_t process, int file);

/// A process, its descendants and the orphans of its session: number, name, state, processor time,
/// command line, and for each thread its name, its state, and the system call or the place in the
/// kernel where it sleeps.
std::string describe_processes(pid_t session);

/// A process and all that it started, directly or not, as long as their parents live.
std::vector<pid_t> with_descendants(pid_t process);

}  // namespace tilewright::verify::fuzz
