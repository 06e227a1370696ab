#pragma once

#include <string>

namespace tilewright::verify::fuzz {

/// What nvidia-smi says of each GPU (utilisation, memory, clock, throttling) and of the processes
/// on it (the share of the multiprocessors that each uses): it tells a kernel that never ends from
/// a host that waits. Says why there is nothing to say where nvidia-smi is missing, fails or takes
/// more than 10 seconds. Lines are indented by two spaces.
std::string describe_gpus();

}  // namespace tilewright::verify::fuzz
