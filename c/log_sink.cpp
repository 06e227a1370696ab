#include "c/log_sink.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "c/tilewright.h"

namespace tilewright::capi {

struct LogSink::Target {
  Callback callback;
  void* user;
  int running = 0;  // calls on all threads
  bool is_gone = false;
};

namespace {

struct Registry {
  std::mutex mutex;
  std::condition_variable call_ended;
  std::vector<std::shared_ptr<LogSink::Target>> live;
};

Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

// A call of a callback on this thread, the innermost first.
struct RunningCall {
  std::shared_ptr<LogSink::Target> target;
  const RunningCall* outer;
};
thread_local const RunningCall* innermost = nullptr;

int calls_on_this_thread(const LogSink::Target& target) {
  int count = 0;
  for (const RunningCall* call = innermost; call; call = call->outer) {
    if (call->target.get() == &target) ++count;
  }
  return count;
}

std::shared_ptr<LogSink::Target> begin_call(const std::shared_ptr<LogSink::Target>& preferred) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.live.empty()) return nullptr;
  std::shared_ptr<LogSink::Target> target = preferred->is_gone ? all.live.front() : preferred;
  ++target->running;
  return target;
}

void end_call(LogSink::Target& target) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  --target.running;
  all.call_ended.notify_all();
}

void deliver(const std::shared_ptr<LogSink::Target>& preferred, Severity severity,
             std::string_view message) {
  const std::string text(message);  // with a final zero
  const RunningCall call{begin_call(preferred), innermost};
  if (!call.target) return;
  innermost = &call;
  try {
    call.target->callback(call.target->user, severity == Severity::note ? TW_NOTE : TW_WARNING,
                          text.c_str());
  } catch (...) {
    // The work goes on, whatever became of the message about it.
  }
  innermost = call.outer;
  end_call(*call.target);
}

}  // namespace

LogSink::LogSink(Callback callback, void* user)
    : target_(std::make_shared<Target>(Target{callback, user})) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.live.push_back(target_);
}

LogSink::~LogSink() {
  Registry& all = registry();
  std::unique_lock lock(all.mutex);
  target_->is_gone = true;
  all.live.erase(std::find(all.live.begin(), all.live.end(), target_));
  all.call_ended.wait(lock, [&] { return target_->running == calls_on_this_thread(*target_); });
}

DiagnosticsSink LogSink::diagnostics() const {
  return [target = target_](Severity severity, std::string_view message) {
    deliver(target, severity, message);
  };
}

}  // namespace tilewright::capi
