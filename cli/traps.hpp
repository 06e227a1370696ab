#pragma once

namespace tilewright::cli {

/// From now on an integer division by zero in a snippet, which ends a process on x86, ends this one
/// with a message and the status of a wrong snippet. Nothing is unwound: no file is being written
/// while a kernel runs.
/// @param json also write the error as JSON to stdout
void report_divisions_by_zero(bool json);

}  // namespace tilewright::cli
