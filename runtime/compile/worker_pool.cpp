#include "runtime/compile/worker_pool.hpp"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "base/activity.hpp"
#include "runtime/compile/worker_process.hpp"

namespace tilewright {

// A worker that only reads files of one library serves no other compiler.
class WorkerPool::Worker : public WorkerProcess {
 public:
  using WorkerProcess::WorkerProcess;

  bool can_serve(const WorkerRequest& request) const {
    return confined_to_.empty() || confined_to_ == confinement_of(request);
  }
  void note_confinement(const WorkerRequest& request) {
    if (confined_to_.empty()) confined_to_ = confinement_of(request);
  }

 private:
  static std::string confinement_of(const WorkerRequest& request) {
    const bool confines = request.task == WorkerRequest::Task::nvrtc && !request.words.empty();
    return confines ? request.words[0] : std::string();
  }

  std::string confined_to_;
};

WorkerPool::WorkerPool(std::filesystem::path program, std::size_t most_workers)
    : program_(std::move(program)),
      most_workers_(std::max<std::size_t>(most_workers, 1)),
      process_(::getpid()) {}

WorkerPool::~WorkerPool() {
  const std::lock_guard lock(mutex_);
  forget_workers_of_parent();
}

WorkerPool* WorkerPool::shared() {
  const WorkerLocation location = find_worker();
  if (location.program.empty()) return nullptr;
  static std::mutex mutex;
  // Never destroyed: threads may compile until the process ends, and its end ends the workers.
  static auto& pools = *new std::map<std::filesystem::path, WorkerPool>;
  const std::lock_guard lock(mutex);
  const std::size_t most = std::max(2u, std::thread::hardware_concurrency());
  return &pools.try_emplace(location.program, location.program, most).first->second;
}

WorkerResponse WorkerPool::run(const WorkerRequest& request, const std::string& what) {
  // A worker that waited for long may have ended meanwhile; a new one has not.
  for (;;) {
    refuse_if_silent();
    std::unique_ptr<Worker> worker = take(request);
    const bool was_idle = worker != nullptr;
    std::optional<WorkerResponse> response;
    try {
      if (!was_idle) worker = std::make_unique<Worker>(program_);
      response = worker->ask(request, what, was_idle);
    } catch (const NoWorker& problem) {
      if (problem.is_silent()) note_silent(problem.error());
      give_back(nullptr);
      throw;
    } catch (...) {
      give_back(nullptr);
      throw;
    }
    if (response) worker->note_confinement(request);
    give_back(response ? std::move(worker) : nullptr);
    if (!response) continue;
    if (response->limit_reached) throw LimitReached(*std::move(response->error));
    if (response->error) throw Error(*std::move(response->error));
    return *std::move(response);
  }
}

// A program that does not greet is not tried again for a while, as each try would wait for it.
void WorkerPool::note_silent(const Error& problem) {
  const std::lock_guard lock(mutex_);
  silent_ = problem;
  silent_until_ = std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

void WorkerPool::refuse_if_silent() {
  const std::lock_guard lock(mutex_);
  if (silent_ && std::chrono::steady_clock::now() < silent_until_) throw NoWorker(*silent_, true);
}

void WorkerPool::warm_up(std::size_t count) {
  std::size_t missing = 0;
  {
    const std::lock_guard lock(mutex_);
    forget_workers_of_parent();
    const std::size_t there = idle_.size() + busy_;
    missing = std::min(count, most_workers_) - std::min({count, most_workers_, there});
    busy_ += missing;
  }
  for (; missing > 0; --missing) {
    std::unique_ptr<Worker> worker;
    try {
      worker = std::make_unique<Worker>(program_);
    } catch (const Error&) {
      // The caller that needs it gets the error again.
    }
    give_back(std::move(worker));
  }
}

std::vector<pid_t> WorkerPool::idle_workers() {
  const std::lock_guard lock(mutex_);
  forget_workers_of_parent();
  std::vector<pid_t> ids;
  for (const std::unique_ptr<Worker>& worker : idle_) ids.push_back(worker->id());
  return ids;
}

// Null: the caller is to start one.
std::unique_ptr<WorkerPool::Worker> WorkerPool::take(const WorkerRequest& request) {
  std::unique_lock lock(mutex_);
  forget_workers_of_parent();
  if (busy_ >= most_workers_) {
    const Activity activity("waits for a compile worker that is free");
    changed_.wait(lock, [&] { return busy_ < most_workers_; });
  }
  ++busy_;
  const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                  [&](const auto& worker) { return worker->can_serve(request); });
  if (found != idle_.rend()) {
    std::unique_ptr<Worker> worker = std::move(*found);
    idle_.erase(std::next(found).base());
    return worker;
  }
  // Those that serve another compiler make room.
  while (!idle_.empty() && idle_.size() + busy_ > most_workers_) idle_.erase(idle_.begin());
  return nullptr;
}

void WorkerPool::give_back(std::unique_ptr<Worker> worker) {
  {
    const std::lock_guard lock(mutex_);
    if (busy_ > 0) --busy_;
    if (worker && process_ == ::getpid()) idle_.push_back(std::move(worker));
  }
  changed_.notify_one();
}

void WorkerPool::forget_workers_of_parent() {
  if (process_ == ::getpid()) return;
  process_ = ::getpid();
  busy_ = 0;
  for (const std::unique_ptr<Worker>& worker : idle_) worker->disown();
  idle_.clear();
}

std::optional<WorkerResponse> run_in_worker(const WorkerRequest& request, const std::string& what) {
  WorkerPool* const pool = WorkerPool::shared();
  if (!pool) return std::nullopt;
  try {
    return pool->run(request, what);
  } catch (const NoWorker& problem) {
    const WorkerLocation location = find_worker();
    if (location.is_given) throw problem.error();
    return std::nullopt;
  }
}

WorkerFacts examine_worker() {
  WorkerFacts facts{.location = find_worker()};
  if (facts.location.program.empty()) return facts;
  try {
    WorkerPool(facts.location.program, 1)
        .run({.limits = {.wall = std::chrono::seconds(10)}}, "nothing");
    facts.isolates = true;
  } catch (const NoWorker& problem) {
    facts.problem = problem.error().message();
  } catch (const Error& error) {
    facts.problem = error.message();
  }
  return facts;
}

std::vector<std::string> current_environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; entry && *entry; ++entry) variables.emplace_back(*entry);
  return variables;
}

}  // namespace tilewright
