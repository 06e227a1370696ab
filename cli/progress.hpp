#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tilewright::cli {

/// Where progress goes: on a terminal one line of stderr that is written over, five times a second;
/// elsewhere a line every ten seconds; nowhere with --json off a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool json);

  bool is_quiet() const { return quiet_; }
  /// How often update() is worth a call.
  std::chrono::milliseconds interval() const;
  /// Writes the line over, or another line. The line is cut to the terminal's width.
  void update(std::string_view text);
  /// A line that stays.
  void line(std::string_view text);
  /// Wipes the line that is written over.
  void wipe();

 private:
  bool terminal_;
  bool quiet_;
  bool is_shown_ = false;
};

/// "[######..................] 3 of 12, forward_masked; 24 s, about 72 s left". Without an estimate
/// before two seconds have passed.
/// @param share of the work that is done, 0 to 1
std::string progress_text(double share, std::string_view what, double seconds);

/// Says how far long work is, on its own thread, from the second second on. Safe to use from many
/// threads.
class Progress {
 public:
  Progress(std::size_t steps, bool json);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next step begins.
  void step(std::string_view name);
  /// For work without equal steps.
  void update(std::string_view what, double share);
  /// Ends the words before the results are printed; the destructor does so too.
  void end();

 private:
  void say_until_the_end();

  using Clock = std::chrono::steady_clock;

  std::size_t steps_;
  std::size_t begun_ = 0;
  double share_ = 0;
  std::string what_;
  bool ended_ = false;
  Clock::time_point start_ = Clock::now();
  ProgressLine line_;
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tilewright::cli
