// Calls the library in one way: `at_exit WAY`. Prints "right", or "wrong: ..." and what went wrong.
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/wait.h>
#include <tilewright.hpp>
#include <unistd.h>

namespace {

using namespace tilewright;

constexpr std::int64_t kHeads = 6, kRows = 70, kColumns = 90, kWidth = 16;

void say(const std::string& text) {
  const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
  static_cast<void>(written);
}

// Never destroyed, so that every way may use it to the end.
struct Call {
  Attention plain{{.dtype = f32, .head_dim = kWidth}, {.device = Device::cpu()}};
  Attention masked{{.dtype = f32, .head_dim = kWidth, .mask_mod = "q_idx >= kv_idx"},
                   {.device = Device::cpu()}};
  Shape shape{.num_q_heads = kHeads, .num_kv_heads = kHeads, .q_len = kRows, .kv_len = kColumns};
  BlockMask mask = masked.block_mask(shape);
  Tensor q = Tensor::zeros(f32, {1, kHeads, kRows, kWidth});
  Tensor k = Tensor::zeros(f32, {1, kHeads, kColumns, kWidth});
  Tensor v = Tensor::zeros(f32, {1, kHeads, kColumns, kWidth});

  Call() {
    auto* values = static_cast<float*>(v.data());
    for (std::int64_t i = 0; i < v.numel(); ++i) {
      values[i] = static_cast<float>(i / kWidth % kColumns);
    }
  }
};

Call& the_call() {
  static Call& call = *new Call;
  return call;
}

// Scores are all 0, so a row of out is the mean of the columns' numbers that it keeps.
bool is_right(const Tensor& out, bool causal) {
  const auto* values = static_cast<const float*>(out.data());
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const auto row = static_cast<float>(i / kWidth % kRows);
    const float expected = causal ? row / 2 : (kColumns - 1) / 2.0f;
    if (!(std::fabs(values[i] - expected) < 1e-3f)) return false;
  }
  return true;
}

bool check_calls(bool builds_mask) {
  Call& call = the_call();
  Tensor out = Tensor::zeros(f32, {1, kHeads, kRows, kWidth});
  const ForwardTensors tensors{.q = call.q, .k = call.k, .v = call.v, .out = out};
  call.plain.forward(tensors);
  if (!is_right(out, false)) return false;
  if (builds_mask) {
    const BlockMask mask = call.masked.block_mask(call.shape);
    if (!(mask == call.mask)) return false;
    const Bindings bindings = call.plain.bind({});
    static_cast<void>(call.plain.builds());
  }
  call.masked.forward(tensors, call.mask);
  return is_right(out, true);
}

bool constructs() {
  const Attention attention({.dtype = f32, .head_dim = kWidth}, {.device = Device::cpu()});
  try {
    static_cast<void>(Device::parse("cpuu"));
    return false;
  } catch (const Error&) {
  }
  static_cast<void>(spec_from_json(R"({"dtype": "f32", "head_dim": 16})"));
  return true;
}

void verify(const char* where, bool builds_mask = true) {
  try {
    say(check_calls(builds_mask) ? "right\n" : std::string("wrong: values ") + where + "\n");
  } catch (const std::exception& error) {
    say(std::string("wrong: ") + where + ": " + error.what() + "\n");
  }
}

// As verify(), but silent where all is right: it is not what the test is about.
void require_right(const char* where) {
  if (!check_calls(true)) say(std::string("wrong: values ") + where + "\n");
}

void verify_at_exit() {
  verify("at exit");
}

// Calls when it is destroyed.
struct Last {
  ~Last() { verify("in a destructor"); }
  int touched = 0;
};

Last& last_of_thread() {
  thread_local Last last;
  return last;
}

void first_of_static_objects() {
  static Last last;
  ++last.touched;
}

void call_at_end_of_thread(bool before, bool after) {
  std::thread([&] {
    if (before) require_right("in a thread");
    ++last_of_thread().touched;
    if (after) require_right("in a thread");
  }).join();
}

void call_from_thread_key(bool calls_before) {
  static pthread_key_t key;
  pthread_key_create(&key, [](void*) { verify("in a key's destructor"); });
  std::thread([&] {
    pthread_setspecific(key, &key);
    if (calls_before) require_right("in a thread");
  }).join();
}

// Runs on while main returns and static objects are destroyed.
void call_from_detached_thread() {
  static std::mutex& mutex = *new std::mutex;
  static auto& begun = *new std::condition_variable;
  static bool has_begun = false;
  std::thread([] {
    for (int i = 0;; ++i) {
      if (!check_calls(true)) say("wrong: values in a detached thread\n");
      const std::lock_guard lock(mutex);
      has_begun = true;
      begun.notify_all();
    }
  }).detach();
  std::unique_lock lock(mutex);
  begun.wait(lock, [] { return has_begun; });
  std::atexit([] { ::usleep(50'000); });
  say("right\n");
}

// What a thread leaves shows to the leak check.
void call_from_many_threads() {
  for (int i = 0; i < 200; ++i) {
    std::thread([] { static_cast<void>(check_calls(true)); }).join();
  }
  verify("after many threads");
}

void call_from_pool_threads() {
  ThreadPool pool(3);
  std::mutex mutex;
  std::condition_variable all;
  int there = 0;
  pool.parallel_for(3, [&](std::int64_t, int) {  // one item for each thread: they wait for all
    ++last_of_thread().touched;
    std::unique_lock lock(mutex);
    ++there;
    all.notify_all();
    all.wait(lock, [&] { return there == 3; });
  });
}

int run_in_child(bool (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      good = body();
    } catch (const std::exception& error) {
      say(std::string("wrong: in a forked child: ") + error.what() + "\n");
    }
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

void report_child(int status) {
  say(status == 0 ? "right\n" : "wrong: status of the child " + std::to_string(status) + "\n");
}

const std::map<std::string, void (*)()>& ways() {
  static const auto& all = *new std::map<std::string, void (*)()>{
      {"main", [] { verify("in main"); }},
      {"atexit", [] { std::atexit(verify_at_exit); }},
      {"quick_exit",
       [] {
         std::at_quick_exit(verify_at_exit);
         std::quick_exit(0);
       }},
      {"static_destructor", [] { require_right("in main"); }},
      {"thread_local_before", [] { call_at_end_of_thread(false, true); }},
      {"thread_local_after", [] { call_at_end_of_thread(true, false); }},
      {"thread_local_first_call", [] { call_at_end_of_thread(false, false); }},
      {"thread_key", [] { call_from_thread_key(true); }},
      {"thread_key_first_call", [] { call_from_thread_key(false); }},
      {"detached", call_from_detached_thread},
      {"many_threads", call_from_many_threads},
      {"pool_thread", call_from_pool_threads},
      {"exit_in_thread",
       [] {
         std::atexit(verify_at_exit);
         std::thread([] { std::exit(0); }).join();
       }},
      {"exit_in_body",
       [] {
         std::atexit(verify_at_exit);
         static ThreadPool& pool = *new ThreadPool(3);
         pool.parallel_for(1, [](std::int64_t, int) { std::exit(0); });
       }},
      {"exit_in_pool_thread",
       [] {
         std::atexit(verify_at_exit);
         static ThreadPool pool(3);
         static std::atomic<int> there = 0;
         pool.parallel_for(3, [](std::int64_t, int worker) {
           ++there;
           while (there < 3) std::this_thread::yield();
           if (worker == 1) std::exit(0);
         });
       }},
      {"fork", [] { report_child(run_in_child([] { return check_calls(true); })); }},
      {"fork_constructs", [] { report_child(run_in_child(constructs)); }},
      {"construct_in_atexit",
       [] { std::atexit([] { say(constructs() ? "right\n" : "wrong: accepted\n"); }); }},
      {"static_attention",
       [] {
         static Attention attention({.dtype = f32, .head_dim = kWidth}, {.device = Device::cpu()});
         static Last last;
         ++last.touched;
       }},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "main";
  const auto found = ways().find(way);
  if (found == ways().end()) {
    std::fprintf(stderr, "wrong: there is no way \"%s\"\n", way.c_str());
    return 2;
  }
  if (way == "static_destructor") first_of_static_objects();
  require_right("before the end");
  found->second();
  return 0;
}
