#include "cache/remote_options.hpp"

#include <charconv>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"

namespace tilewright::cache {
namespace {

constexpr double kMostSeconds = 3600;

std::string_view value_of_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// Where the host begins: after "http://" or "https://". Nothing for another scheme.
std::optional<std::size_t> authority_begin(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (url.starts_with(scheme)) return scheme.size();
  }
  return std::nullopt;
}

RemoteMode parse_mode(std::string_view text) {
  if (text.empty() || text == "read") return RemoteMode::read;
  if (text == "readwrite") return RemoteMode::read_write;
  throw Error(ErrorCode::usage, fmt::format("TILEWRIGHT_REMOTE_CACHE_MODE is \"{}\"", text),
              "set it to \"read\" or \"readwrite\"");
}

std::chrono::milliseconds parse_seconds(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0.001) ||
      seconds > kMostSeconds) {
    throw Error(ErrorCode::usage, fmt::format("TILEWRIGHT_REMOTE_CACHE_TIMEOUT is \"{}\"", text),
                "give seconds, such as 3 or 0.5, at most 3600");
  }
  return std::chrono::milliseconds(static_cast<long>(seconds * 1000));
}

}  // namespace

std::string_view to_string(RemoteMode mode) {
  return mode == RemoteMode::read ? "read" : "readwrite";
}

std::optional<RemoteOptions> remote_options_from_environment() {
  if (::getuid() != ::geteuid() || ::getgid() != ::getegid()) return std::nullopt;
  const std::string_view url = value_of_variable("TILEWRIGHT_REMOTE_CACHE");
  RemoteOptions options{.url = std::string(url),
                        .mode = parse_mode(value_of_variable("TILEWRIGHT_REMOTE_CACHE_MODE"))};
  if (const std::string_view text = value_of_variable("TILEWRIGHT_REMOTE_CACHE_TIMEOUT");
      !text.empty()) {
    options.timeout = parse_seconds(text);
  }
  if (url.empty()) return std::nullopt;
  for (const char* variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (options.ca_file.empty()) options.ca_file = value_of_variable(variable);
  }
  return checked(std::move(options));
}

RemoteOptions checked(RemoteOptions options) {
  while (options.url.ends_with('/')) options.url.pop_back();
  const std::optional<std::size_t> begin = authority_begin(options.url);
  const bool has_host = begin && options.url.size() > *begin && options.url[*begin] != '/';
  if (!has_host || options.url.find_first_of(" ?#\t\r\n") != std::string::npos) {
    throw Error(ErrorCode::usage,
                fmt::format("\"{}\" is no URL of a remote cache", without_credentials(options.url)),
                "give one such as http://cache.example:8080 or https://cache.example/kernels");
  }
  if (options.timeout.count() <= 0 || options.connect_timeout.count() <= 0) {
    throw Error(ErrorCode::usage, "the time-outs of a remote cache must be positive",
                "leave them out for 3 s, of which 1 s to connect");
  }
  return options;
}

std::string without_credentials(std::string_view url) {
  const std::size_t begin = authority_begin(url).value_or(0);
  const std::string_view authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  return std::string(url.substr(0, begin)).append(url.substr(begin + at + 1));
}

}  // namespace tilewright::cache
