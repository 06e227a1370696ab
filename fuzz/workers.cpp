#include "fuzz/workers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "cache/store.hpp"
#include "fuzz/failure_files.hpp"
#include "fuzz/gpu_state.hpp"
#include "fuzz/kernel_output.hpp"
#include "fuzz/stacks.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/compile/session.hpp"

namespace tilewright::verify::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

// ---- messages: eight bytes of length, then the text

bool write_all(int descriptor, const char* data, std::size_t size) {
  while (size > 0) {
    // MSG_NOSIGNAL: the other side may be gone.
    const ssize_t written = ::send(descriptor, data, size, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int descriptor, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(descriptor, data, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_text(int descriptor, const std::string& text) {
  const std::uint64_t size = text.size();
  return write_all(descriptor, reinterpret_cast<const char*>(&size), sizeof size) &&
         write_all(descriptor, text.data(), text.size());
}

std::optional<std::string> receive_text(int descriptor) {
  std::uint64_t size = 0;
  if (!read_all(descriptor, reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
  std::string text(size, '\0');
  if (!read_all(descriptor, text.data(), text.size())) return std::nullopt;
  return text;
}

nlohmann::json json_of(const Error::Details& error) {
  nlohmann::json json = {{"code", error.code},
                         {"message", error.message},
                         {"notes", error.notes},
                         {"hint", error.hint}};
  if (error.place) {
    json["place"] = {error.place->file, error.place->line, error.place->column,
                     error.place->excerpt};
  }
  return json;
}

Error::Details error_from(const nlohmann::json& json) {
  Error::Details error{.code = json.at("code"),
                       .message = json.at("message"),
                       .place = {},
                       .notes = json.at("notes"),
                       .hint = json.at("hint")};
  if (json.contains("place")) {
    const nlohmann::json& place = json.at("place");
    error.place = {place.at(0), place.at(1), place.at(2), place.at(3)};
  }
  return error;
}

std::string to_message(const Outcome& outcome) {
  nlohmann::json json = {{"failure", to_string(outcome.failure)},
                         {"message", outcome.message},
                         {"key", outcome.key},
                         {"others", nlohmann::json::array()},
                         {"share_of_bound", outcome.share_of_bound},
                         {"kernels_compiled", outcome.kernels_compiled},
                         {"spills", outcome.spills},
                         {"relation_ran", outcome.relation_ran},
                         {"ms", outcome.ms}};
  for (const Finding& other : outcome.others) json["others"].push_back({other.message, other.key});
  if (outcome.error) json["error"] = json_of(*outcome.error);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Outcome from_message(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  Outcome outcome{.failure = failure_from_string(json.at("failure").get<std::string>()),
                  .message = json.at("message"),
                  .key = json.at("key"),
                  .share_of_bound = json.at("share_of_bound"),
                  .kernels_compiled = json.at("kernels_compiled"),
                  .spills = json.at("spills"),
                  .relation_ran = json.at("relation_ran"),
                  .ms = json.at("ms")};
  for (const nlohmann::json& other : json.at("others")) {
    outcome.others.push_back({.message = other.at(0), .key = other.at(1)});
  }
  if (json.contains("error")) outcome.error = error_from(json.at("error"));
  return outcome;
}

// ---- the child

Outcome run_text(CaseRunner& runner, const std::string& text) {
  try {
    return runner.run(case_from_json(text));
  } catch (const Error& error) {
    return {.failure = Failure::error, .message = error.what(), .error = details_of(error)};
  } catch (const std::exception& error) {
    return {.failure = Failure::error, .message = error.what()};
  }
}

[[noreturn]] void serve(int descriptor, int stacks, RunOptions options) {
  // Ctrl-C is for the parent, which ends with a verdict and closes the connection. Compilers that
  // this process starts stay in its session, where the parent finds them.
  std::signal(SIGINT, SIG_IGN);
  ::setsid();
  answer_with_stacks(stacks);
  ThreadPool one_thread(1);
  options.threads = &one_thread;
  if (!options.kernels.store) {
    options.kernels.store = std::make_shared<cache::Store>(cache::Store::Options{});
  }
  CaseRunner runner(options);
  KernelOutput output;
  while (const auto text = receive_text(descriptor)) {
    Outcome outcome = run_text(runner, *text);
    const std::string printed = output.take();
    if (!outcome.ok() && !printed.empty()) outcome.message += "\nkernels printed: " + printed;
    if (!send_text(descriptor, to_message(outcome))) break;
  }
  // Not exit(): what the parent registered is not this process's to run.
  ::_exit(0);
}

// ---- the parent

// A compile worker leads its own session, and might go on until its compile ends.
void kill_with_compilers(pid_t process) {
  for (const pid_t descendant : with_descendants(process)) {
    if (descendant != process && ::getsid(descendant) == descendant) {
      ::kill(descendant, SIGKILL);
      kill_session(descendant);
    }
  }
  ::kill(process, SIGKILL);
  kill_session(process);
}

}  // namespace

struct Workers::Worker {
  pid_t process = -1;
  int descriptor = -1;
  std::deque<FuzzCase> cases;  // the first one is being run
  Clock::time_point started = {};
  int stack_file = -1;  // where the process writes its stacks when it is asked
  std::string late;     // what was reported of the case that is being run
};

Workers::Workers(Options options) : options_(std::move(options)) {
  for (int i = 0; i < std::max(1, options_.count); ++i) {
    workers_.push_back(std::make_unique<Worker>());
    start(*workers_.back());
  }
}

Workers::~Workers() {
  for (const auto& worker : workers_) {
    if (worker->process <= 0) continue;
    if (worker->cases.empty()) {
      ::close(worker->descriptor);
    } else {
      kill_with_compilers(worker->process);
      ::close(worker->descriptor);
    }
    ::waitpid(worker->process, nullptr, 0);
    if (worker->stack_file >= 0) ::close(worker->stack_file);
  }
}

void Workers::start(Worker& worker) {
  std::array<int, 2> pair = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    throw Error(ErrorCode::internal, fmt::format("socketpair: {}", std::strerror(errno)));
  }
  if (worker.stack_file < 0) worker.stack_file = make_stack_file();
  const pid_t process = ::fork();
  if (process < 0) {
    throw Error(ErrorCode::internal, fmt::format("fork: {}", std::strerror(errno)),
                "ulimit -u limits the number of processes");
  }
  if (process == 0) {
    // Another worker's connection held open here would hide that worker's end from the parent.
    for (const auto& other : workers_) {
      if (other->descriptor >= 0) ::close(other->descriptor);
    }
    ::close(pair[0]);
    serve(pair[1], worker.stack_file, options_.run);
  }
  ::close(pair[1]);
  worker.process = process;
  worker.descriptor = pair[0];
}

std::size_t Workers::idle() const {
  return static_cast<std::size_t>(std::count_if(
      workers_.begin(), workers_.end(), [](const auto& worker) { return worker->cases.empty(); }));
}

std::size_t Workers::pending() const {
  std::size_t sum = 0;
  for (const auto& worker : workers_) sum += worker->cases.size();
  return sum;
}

void Workers::drop_waiting() {
  for (const auto& worker : workers_) {
    if (worker->cases.size() > 1)
      worker->cases.erase(worker->cases.begin() + 1, worker->cases.end());
  }
}

void Workers::submit(std::vector<FuzzCase> cases) {
  const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                   [](const auto& one) { return one->cases.empty(); });
  if (worker == workers_.end()) throw Error(ErrorCode::internal, "every worker is busy");
  (*worker)->cases.assign(std::make_move_iterator(cases.begin()),
                          std::make_move_iterator(cases.end()));
  send_next(**worker);
}

// A process that is gone shows when its answer is read.
void Workers::send_next(Worker& worker) {
  if (worker.cases.empty()) return;
  worker.started = Clock::now();
  worker.late.clear();
  send_text(worker.descriptor, to_json(worker.cases.front()));
}

std::optional<Workers::Finished> Workers::wait(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (true) {
    std::vector<pollfd> polled;
    std::vector<Worker*> busy;  // who began first is first
    for (const auto& worker : workers_) {
      if (!worker->cases.empty()) busy.push_back(worker.get());
    }
    std::ranges::sort(busy, {}, &Worker::started);
    for (const Worker* worker : busy) {
      polled.push_back({.fd = worker->descriptor, .events = POLLIN, .revents = 0});
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (busy.empty() || left.count() <= 0) return std::nullopt;
    const auto slice = std::min<std::int64_t>(left.count(), 200);
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(slice));
    if (ready < 0) return std::nullopt;  // a signal: the caller may want to stop
    // An answer that waits for a busy parent is none that never came.
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) return take(*busy[i]);
      const Clock::duration took = Clock::now() - busy[i]->started;
      if (took > options_.time_limit) return stop(*busy[i]);
      if (took > options_.late_after && busy[i]->late.empty()) report_late(*busy[i]);
    }
  }
}

void Workers::report_late(Worker& worker) {
  const FuzzCase& fuzz_case = worker.cases.front();
  std::vector<std::string> kernels;
  for (const KernelVariant& id : kernels_of_call(fuzz_case.spec)) kernels.push_back(id.name());
  worker.late = fmt::format(
      "a case of process {} has run for {} s and goes on; what the process does, its threads' "
      "stacks, all processes that work for it, and the GPUs:\n{}{}{}  kernels of the case: {} for "
      "{}\n  the case: {}\n",
      worker.process,
      std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - worker.started).count(),
      ask_for_stacks(worker.process, worker.stack_file), describe_processes(worker.process),
      fuzz_case.target == "cuda" ? describe_gpus() : "", fmt::join(kernels, ", "), fuzz_case.target,
      to_json(fuzz_case));
  if (options_.late) options_.late(worker.late);
}

Workers::Finished Workers::stop(Worker& worker) {
  std::vector<std::string> processes;
  for (const pid_t process : with_descendants(worker.process)) {
    if (::getsid(process) != process) continue;  // described with its session
    for (std::string& one : describe_session(process)) processes.push_back(std::move(one));
  }
  std::string message = fmt::format("it ran for more than {} s; {}", options_.time_limit.count(),
                                    fmt::join(processes, ", "));
  if (!worker.late.empty()) message += "\nearlier " + worker.late;
  return give_up(worker, Failure::time_out, std::move(message));
}

Workers::Finished Workers::take(Worker& worker) {
  const std::optional<std::string> text = receive_text(worker.descriptor);
  if (!text) return give_up(worker, Failure::crash, {});
  Finished finished{std::move(worker.cases.front()), from_message(*text)};
  worker.cases.pop_front();
  // After such an error a GPU refuses all that the process asks of it.
  if (finished.outcome.error && finished.outcome.error->code == ErrorCode::device) {
    end(worker);
    start(worker);
  }
  send_next(worker);
  return finished;
}

// Returns how it ended.
int Workers::end(Worker& worker) {
  ::close(worker.descriptor);
  worker.descriptor = -1;
  kill_with_compilers(worker.process);
  int status = 0;
  ::waitpid(worker.process, &status, 0);
  return status;
}

// The case that was being run is finished; a new process goes on with those after it.
Workers::Finished Workers::give_up(Worker& worker, Failure failure, std::string message) {
  const int status = end(worker);
  if (failure == Failure::crash) {
    const bool has_divided =
        WIFSIGNALED(status) && (WTERMSIG(status) == SIGFPE || WTERMSIG(status) == SIGILL);
    message = WIFSIGNALED(status) ? fmt::format("the process that ran it ended by signal {} ({})",
                                                WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                  : fmt::format("the process that ran it ended with status {}",
                                                WEXITSTATUS(status));
    if (has_divided) message += ": a snippet divided an integer by zero";
  }
  const std::chrono::duration<double, std::milli> took = Clock::now() - worker.started;
  Finished finished{std::move(worker.cases.front()),
                    {.failure = failure, .message = std::move(message), .ms = took.count()}};
  worker.cases.pop_front();
  start(worker);
  send_next(worker);
  return finished;
}

Outcome run_isolated(const FuzzCase& fuzz_case, const RunOptions& options,
                     std::chrono::seconds time_limit) {
  Workers workers({.run = options, .count = 1, .time_limit = time_limit});
  workers.submit({fuzz_case});
  while (true) {
    if (auto finished = workers.wait(std::chrono::seconds(1))) return finished->outcome;
  }
}

}  // namespace tilewright::verify::fuzz
