#include "runtime/api/loop_scope.hpp"

#include <utility>

namespace tilewright {
namespace {

thread_local bool inside_a_loop = false;

}  // namespace

LoopScope::LoopScope() noexcept : before_(std::exchange(inside_a_loop, true)) {}

LoopScope::~LoopScope() {
  inside_a_loop = before_;
}

bool LoopScope::is_active() noexcept {
  return inside_a_loop;
}

}  // namespace tilewright
