#pragma once

namespace tilewright::cli {

/// From now on what a kernel raises on its own thread ends this process with a message and the
/// documented status: an integer division by zero (status of a wrong snippet; SIGFPE, or SIGILL
/// where the compiler knew it), an instruction that this processor lacks, and a read or write
/// outside the process's memory or of a mapped file that became shorter. Elsewhere, and in a child
/// that was forked, these signals do what they did. Nothing is unwound: no file is being written
/// while a kernel runs.
/// @param json also write the error as JSON to stdout
void report_traps(bool json);

/// From now on SIGTERM, SIGINT and SIGHUP remove the temporary files that are being written next to
/// outputs, and then end the process as they did.
void clean_up_at_signals();

}  // namespace tilewright::cli
