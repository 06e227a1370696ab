#pragma once

#include <functional>
#include <string>

namespace tilewright::mutants {

/// A kernel that never ends keeps the GPU from those of other processes, whose calls then take too
/// long as well, and a race may end well at first. So all of a mutant's calls are run by this.
///
/// Calls `work` while no other process has the lock. Where that takes longer than `seconds`, prints
/// `last_words` and ends the process, with status 0; the next owner of the lock begins once that
/// one is gone wholly, as taking a kernel that never ends off the GPU takes a driver seconds.
/// @param lock_file made where it is not there
void run_with_gpu_alone(const std::string& lock_file, unsigned seconds,
                        const std::string& last_words, const std::function<void()>& work);

}  // namespace tilewright::mutants
