#include "runtime/api/communicator.hpp"

namespace tilewright {

void Communicator::connect(std::span<const int>, std::span<const int>) {}

void Communicator::wait(Stream) {}

}  // namespace tilewright
