#include "cache/http.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/signal_blocked.hpp"

namespace tilewright::cache {
namespace {

// From curl's public interface, which keeps its numbers.
enum Option : int {
  kWriteData = 10001,
  kUrl = 10002,
  kReadData = 10009,
  kErrorBuffer = 10010,
  kCaFile = 10065,
  kWriteFunction = 20011,
  kReadFunction = 20012,
  kUserAgent = 10018,
  kHttpHeader = 10023,
  kUpload = 46,
  kNoSignal = 99,
  kUploadBytes = 30115,
  kTimeoutMs = 155,
  kConnectTimeoutMs = 156,
  kProtocols = 181,
  kQuickExit = 322,  // from 7.87: a name server that stalls is not waited for
};
constexpr int kResponseCode = 0x200002;
constexpr int kCurlOk = 0;
constexpr int kCurlTimedOut = 28;
constexpr std::size_t kErrorBytes = 256;
constexpr long kGlobalDefault = 3;
constexpr long kHttpAndHttps = 1 | 2;

struct Download {
  std::vector<std::byte> bytes;
  std::size_t max_bytes = 0;
  bool is_too_long = false;
};

// Called by C code, so nothing may be thrown. Less than `size` makes curl give up.
std::size_t receive(const char* data, std::size_t, std::size_t size, void* user) noexcept {
  auto& download = *static_cast<Download*>(user);
  if (size > download.max_bytes - download.bytes.size()) {
    download.is_too_long = true;
    return 0;
  }
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    download.bytes.insert(download.bytes.end(), bytes.begin(), bytes.end());
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return size;
}

std::size_t send(char* data, std::size_t, std::size_t room, void* user) noexcept {
  auto& rest = *static_cast<std::span<const std::byte>*>(user);
  const std::size_t size = std::min(room, rest.size());
  std::memcpy(data, rest.data(), size);
  rest = rest.subspan(size);
  return size;
}

}  // namespace

const Http& Http::get() {
  static const Http& http = *new Http({"libcurl.so.4", "libcurl-gnutls.so.4"});
  return http;
}

Http::Http(const std::vector<std::string>& names) {
  std::string reasons;
  for (const std::string& name : names) {
    const DynamicLibrary library = DynamicLibrary::open(name);
    if (library && bind(library) && curl_.global_init(kGlobalDefault) == kCurlOk) return;
    reasons += reasons.empty() ? "" : "; ";
    reasons += library ? name + " is not a libcurl that can be used" : library.reason();
  }
  problem_ = fmt::format("libcurl cannot be opened ({}); install it (Debian: libcurl4)", reasons);
}

bool Http::bind(const DynamicLibrary& library) {
  const auto find = [&](auto& function, const char* name) {
    function =
        library.function<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
    return function != nullptr;
  };
  return find(curl_.global_init, "curl_global_init") && find(curl_.init, "curl_easy_init") &&
         find(curl_.set_option, "curl_easy_setopt") && find(curl_.perform, "curl_easy_perform") &&
         find(curl_.get_info, "curl_easy_getinfo") && find(curl_.clean_up, "curl_easy_cleanup") &&
         find(curl_.error_text, "curl_easy_strerror") && find(curl_.append, "curl_slist_append") &&
         find(curl_.free_list, "curl_slist_free_all");
}

HttpAnswer Http::ask(const HttpRequest& request) const {
  using Milliseconds = std::chrono::milliseconds;
  if (!problem_.empty()) return {.body = {}, .problem = problem_};
  const auto left =
      std::chrono::duration_cast<Milliseconds>(request.deadline - HttpRequest::Clock::now());
  if (left <= Milliseconds(0)) return {.body = {}, .problem = "out of time", .timed_out = true};

  // A connection that closes while it is written to would end the process: curl leaves the signal
  // alone where it was told to use none, and TLS libraries write as they like.
  const SignalBlocked no_signal(SIGPIPE);
  const std::unique_ptr<void, void (*)(void*)> handle(curl_.init(), curl_.clean_up);
  // Without it curl asks for leave before it sends a large body, and waits a second for servers
  // that never learnt to answer.
  const std::unique_ptr<void, void (*)(void*)> headers(curl_.append(nullptr, "Expect:"),
                                                       curl_.free_list);
  if (!handle || !headers) return {.body = {}, .problem = "libcurl is out of memory"};

  Download download{.bytes = {}, .max_bytes = request.max_bytes};
  std::span<const std::byte> upload = request.upload.value_or(std::span<const std::byte>());
  char reason[kErrorBytes] = "";
  const auto set = [&](Option option, auto value) {
    curl_.set_option(handle.get(), option, value);
  };
  set(kUrl, request.url.c_str());
  set(kProtocols, kHttpAndHttps);
  if (!request.ca_file.empty()) set(kCaFile, request.ca_file.c_str());
  set(kUserAgent, "tilewright");
  set(kHttpHeader, headers.get());
  set(kErrorBuffer, static_cast<char*>(reason));
  set(kNoSignal, 1L);
  set(kQuickExit, 1L);
  set(kTimeoutMs, static_cast<long>(left.count()));
  set(kConnectTimeoutMs,
      static_cast<long>(std::clamp(request.connect_timeout, Milliseconds(1), left).count()));
  set(kWriteFunction, &receive);
  set(kWriteData, static_cast<void*>(&download));
  if (request.upload) {
    set(kUpload, 1L);
    set(kUploadBytes, static_cast<std::int64_t>(upload.size()));
    set(kReadFunction, &send);
    set(kReadData, static_cast<void*>(&upload));
  }

  const int code = curl_.perform(handle.get());
  HttpAnswer answer{.body = std::move(download.bytes), .problem = {}};
  curl_.get_info(handle.get(), kResponseCode, &answer.status);
  if (code == kCurlOk) return answer;
  answer.timed_out = code == kCurlTimedOut;
  answer.problem = *reason != '\0' ? reason : curl_.error_text(code);
  if (download.is_too_long) {
    answer.problem = fmt::format("it sends more than the {} bytes expected", request.max_bytes);
  }
  return answer;
}

}  // namespace tilewright::cache
