#include "base/activity.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include <sys/syscall.h>
#include <unistd.h>

namespace tilewright {
namespace {

constexpr std::size_t kMostBytes = 160;

// Written by the thread whose activity it is and read by handlers at any time, so all of it is
// atomic; a line that is read while it changes may mix two activities.
struct RunningActivity {
  std::atomic<int> thread = 0;  // 0: free
  std::atomic<std::int64_t> begun_ms = 0;
  std::array<std::atomic<char>, kMostBytes> text = {};  // ends with 0
};

constinit std::array<RunningActivity, 64> running;

std::int64_t now_ms() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Builds a line without memory of the heap.
class Line {
 public:
  void add(char c) {
    if (size_ < bytes_.size()) bytes_[size_++] = c;
  }
  void add(std::string_view text) {
    for (const char c : text) add(c);
  }
  void add(std::int64_t number) {
    std::array<char, 24> digits = {};
    std::size_t count = 0;
    do digits[count++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0) add(digits[--count]);
  }
  void write_to(int descriptor) const {
    const ssize_t ignored = ::write(descriptor, bytes_.data(), size_);
    static_cast<void>(ignored);
  }

 private:
  std::array<char, kMostBytes + 80> bytes_ = {};
  std::size_t size_ = 0;
};

}  // namespace

Activity::Activity(std::string_view does, std::string_view what) noexcept {
  const auto thread = static_cast<int>(::syscall(SYS_gettid));
  for (std::size_t i = 0; i < running.size(); ++i) {
    int is_free = 0;
    if (!running[i].thread.compare_exchange_strong(is_free, thread)) continue;
    running[i].begun_ms = now_ms();
    std::size_t size = 0;
    const auto add = [&](char c) {
      if (size + 1 < kMostBytes) running[i].text[size++].store(c, std::memory_order_relaxed);
    };
    for (const char c : does) add(c);
    if (!what.empty()) add(' ');
    for (const char c : what) add(c);
    running[i].text[size].store('\0', std::memory_order_release);
    slot_ = static_cast<int>(i);
    return;
  }
}

Activity::~Activity() {
  if (slot_ >= 0) running[static_cast<std::size_t>(slot_)].thread.store(0);
}

void write_activities(int descriptor) noexcept {
  for (const RunningActivity& activity : running) {
    const int thread = activity.thread.load();
    if (thread == 0) continue;
    const std::int64_t ms = std::max<std::int64_t>(0, now_ms() - activity.begun_ms);
    Line line;
    line.add("  thread ");
    line.add(std::int64_t{thread});
    line.add(" for ");
    line.add(ms / 1000);
    line.add('.');
    line.add(ms / 100 % 10);
    line.add(" s: ");
    for (const auto& c : activity.text) {
      if (c == '\0') break;
      line.add(c);
    }
    line.add('\n');
    line.write_to(descriptor);
  }
}

}  // namespace tilewright
