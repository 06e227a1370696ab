// tw_options: log, threads, cache and JIT; tw_precompile and tw_explain.
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "tests/c/calls.hpp"

using namespace tilewright::c_abi;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const char* const kPlain = R"({"dtype": "f32", "head_dim": 32})";

// A folder that ends with the test.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::temp_directory_path() / (name + "_" + std::to_string(getpid()))) {
    fs::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Log {
  std::vector<std::string> messages;
  std::vector<std::int32_t> severities;
  static void add(void* log, std::int32_t severity, const char* message) {
    static_cast<Log*>(log)->messages.emplace_back(message);
    static_cast<Log*>(log)->severities.push_back(severity);
  }
};

struct Pool {
  std::atomic<int> loops = 0;
  static std::int32_t size(void*) { return 2; }
  static void run(void* pool, std::int64_t items,
                  void (*body)(void* context, std::int64_t item, std::int32_t worker),
                  void* context) {
    ++static_cast<Pool*>(pool)->loops;
    std::thread other([=] {
      for (std::int64_t item = 1; item < items; item += 2) body(context, item, 1);
    });
    for (std::int64_t item = 0; item < items; item += 2) body(context, item, 0);
    other.join();
  }
};

ErrorHandle creation_error(tw_status status, const tw_options& options) {
  return fail(status, [&](tw_error** error) {
    tw_attention* made = nullptr;
    return tw_attention_create(kPlain, &options, &made, error);
  });
}

}  // namespace

TEST_CASE("C: the program's threads serve, and no other ones") {
  Pool pool;
  tw_options options = cpu_options();
  options.parallel_for = Pool::run;
  options.pool_size = Pool::size;
  options.pool = &pool;
  const AttentionHandle lent = attention(kPlain, options), own = attention(kPlain);
  std::vector<float> x = numbers(4 * 200 * 32), by_lent(x.size()), by_own(x.size());
  auto call = sized<tw_call>();
  call.q = call.k = call.v = tensor(x, {1, 4, 200, 32});
  call.out = tensor(by_lent, {1, 4, 200, 32});
  succeed(tw_forward, lent.get(), &call);
  CHECK(pool.loops > 0);
  call.out = tensor(by_own, {1, 4, 200, 32});
  succeed(tw_forward, own.get(), &call);
  CHECK(by_lent == by_own);

  options.pool_size = nullptr;
  CHECK_THAT(tw_error_message(creation_error(TW_USAGE, options).get()),
             ContainsSubstring("pool_size is NULL"));
}

TEST_CASE("C: lent threads are asked for on the thread of the call, before each loop") {
  struct Lent {
    std::thread::id caller = std::this_thread::get_id();
    int size = 0, loops = 0, elsewhere = 0;
  } lent;
  tw_options options = cpu_options();
  options.pool = &lent;
  options.pool_size = [](void* pool) -> std::int32_t {
    auto& it = *static_cast<Lent*>(pool);
    it.elsewhere += std::this_thread::get_id() != it.caller;
    return it.size = 2 + it.loops % 3;
  };
  options.parallel_for = [](void* pool, std::int64_t items,
                            void (*body)(void*, std::int64_t, std::int32_t), void* context) {
    auto& it = *static_cast<Lent*>(pool);
    it.elsewhere += std::this_thread::get_id() != it.caller;
    ++it.loops;
    for (std::int64_t item = 0; item < items; ++item) body(context, item, it.size - 1);
  };
  const AttentionHandle made = attention(
      R"({"dtype": "f32", "head_dim": 32, "mask_mod": "(q_idx * kv_idx) % 3 == 0"})", options);
  const tw_shape sizes = shape(4, 200, 200);
  const MaskHandle mask = make<MaskHandle>(tw_mask_create, made.get(), &sizes, nullptr, nullptr);
  const int loops = lent.loops;
  CHECK(loops > 0);
  std::vector<float> x = numbers(4 * 200 * 32), out(x.size());
  auto call = sized<tw_call>();
  call.q = call.k = call.v = tensor(x, {1, 4, 200, 32});
  call.out = tensor(out, {1, 4, 200, 32});
  call.mask = mask.get();
  succeed(tw_forward, made.get(), &call);
  CHECK(lent.loops > loops);
  succeed(tw_forward, made.get(), &call);
  CHECK(lent.elsewhere == 0);
}

TEST_CASE("C: decode is an option, which changes no call on a CPU") {
  tw_options options = cpu_options();
  options.decode = 1;
  const AttentionHandle decodes = attention(kPlain, options), plain = attention(kPlain);
  std::vector<float> q = numbers(4 * 32), x = numbers(4 * 200 * 32), a(q.size()), b(q.size());
  auto call = sized<tw_call>();
  call.q = tensor(q, {1, 4, 1, 32});
  call.k = call.v = tensor(x, {1, 4, 200, 32});
  call.out = tensor(a, {1, 4, 1, 32});
  call.workspace = x.data();  // of no use on a CPU
  call.workspace_bytes = 1;
  succeed(tw_forward, decodes.get(), &call);
  call.workspace = nullptr;
  call.out = tensor(b, {1, 4, 1, 32});
  succeed(tw_forward, plain.get(), &call);
  CHECK(a == b);
}

TEST_CASE("C: an executor that leaves items out, or throws, is an error") {
  tw_options options = cpu_options();
  options.pool_size = Pool::size;
  options.parallel_for = [](void*, std::int64_t, void (*)(void*, std::int64_t, std::int32_t),
                            void*) {};
  std::vector<float> x = numbers(4 * 200 * 32), out(x.size());
  auto call = sized<tw_call>();
  call.q = call.k = call.v = tensor(x, {1, 4, 200, 32});
  call.out = tensor(out, {1, 4, 200, 32});
  const AttentionHandle idle = attention(kPlain, options);
  CHECK_THAT(tw_error_message(fail(TW_USAGE, tw_forward, idle.get(), &call).get()),
             ContainsSubstring("ran 0 of"));
  options.parallel_for = [](void*, std::int64_t, void (*)(void*, std::int64_t, std::int32_t),
                            void*) { throw 1; };
  const AttentionHandle throws = attention(kPlain, options);
  fail(TW_INTERNAL, tw_forward, throws.get(), &call);
}

TEST_CASE("C: warnings go to the log of a living attention, and to none afterwards") {
  const Folder folder("tilewright_c_log");
  std::ofstream(folder.path()) << "a file where a folder should be";
  const std::string cache = folder.path() / "cache";
  Log first, second;
  tw_options options = cpu_options();
  options.cache_dir = cache.c_str();
  options.log = Log::add;
  options.log_user = &first;
  AttentionHandle made = attention(kPlain, options);
  REQUIRE(first.messages.size() == 1);
  CHECK_THAT(first.messages[0], ContainsSubstring(cache));
  CHECK(first.severities[0] == TW_WARNING);
  made.reset();
  options.log_user = &second;
  made = attention(kPlain, options);
  CHECK(first.messages.size() == 1);
  CHECK(second.messages.size() == 1);
}

TEST_CASE("C: cache_dir holds the kernels, with which jit may be off") {
  const Folder folder("tilewright_c_cache");
  const std::string cache = folder.path();
  tw_options options = cpu_options();
  options.cache_dir = cache.c_str();
  options.jit = TW_JIT_OFF;
  creation_error(TW_MISSING_KERNEL, options);
  options.jit = TW_JIT_ON;
  CHECK_THAT(text(tw_attention_builds, attention(kPlain, options).get()),
             ContainsSubstring(R"("source":"built")"));
  options.jit = TW_JIT_OFF;
  CHECK_THAT(text(tw_attention_builds, attention(kPlain, options).get()),
             !ContainsSubstring("built"));
  options.jit = 2;
  creation_error(TW_USAGE, options);
}

TEST_CASE("C: a manifest is precompiled into a bundle, and the program may end it") {
  const Folder folder("tilewright_c_precompile");
  fs::create_directories(folder.path());
  const std::string manifest = folder.path() / "manifest.json", cache = folder.path() / "cache",
                    bundle = folder.path() / "kernels.twb";
  std::ofstream(manifest) << R"({"specs": [{"spec": {"dtype": "f32", "head_dim": 16}}]})";
  auto options = sized<tw_precompile_options>();
  options.cache_dir = cache.c_str();
  std::vector<std::string> steps;
  options.progress_user = &steps;
  options.progress = [](void* user, const tw_precompile_step* step) -> std::int32_t {
    static_cast<std::vector<std::string>*>(user)->emplace_back(step->target);
    return step->made > step->total ? 1 : 0;
  };
  const char* const targets[] = {"cpu-x86-64-v3"};
  succeed(tw_precompile, manifest.c_str(), targets, size_t{1}, bundle.c_str(), &options);
  CHECK(fs::file_size(bundle) > 192);
  REQUIRE_FALSE(steps.empty());
  CHECK(steps[0] == "cpu-x86-64-v3");

  fail(TW_USAGE, tw_precompile, manifest.c_str(), nullptr, size_t{0}, nullptr, nullptr);
  options.progress = [](void*, const tw_precompile_step*) -> std::int32_t { return 1; };
  fail(TW_USAGE, tw_precompile, manifest.c_str(), targets, size_t{1}, bundle.c_str(), &options);
}

TEST_CASE("C: explain gives the command line's JSON") {
  const auto explained = [](const char* spec, char* buffer, std::size_t* size) {
    return tw_explain(spec, "sm_90a", buffer, size, nullptr);
  };
  const std::string json = text(explained, R"json({"dtype": "bf16", "head_dim": 64,
      "score_mod": "score + 0.5f * (kv_idx - q_idx)"})json");
  CHECK_THAT(json, ContainsSubstring(R"("name": "score_slope")") &&
                       ContainsSubstring(R"("kernel": "forward")"));
}
