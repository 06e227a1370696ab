#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "circuit_breaker.hpp"

namespace tilewright::cache {

enum class RemoteMode { read, read_write };

/// "read", "readwrite".
std::string_view to_string(RemoteMode mode);

/// A server of Bazel's HTTP remote cache protocol, and how long it may take.
struct RemoteOptions {
  std::string url;  ///< http://host:port/path or https://...; /ac/ and /cas/ are below it
  RemoteMode mode = RemoteMode::read;
  /// For a whole look-up, and for a whole upload: compiling waits no longer for the server.
  std::chrono::milliseconds timeout = std::chrono::seconds(3);
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(1);
  CircuitBreaker::Limits breaker = {};
  std::string ca_file = {};  ///< for https: PEM certificates to trust; empty: those of the system
};

/// What $TILEWRIGHT_REMOTE_CACHE (the URL), $TILEWRIGHT_REMOTE_CACHE_MODE ("read", which is the
/// default, or "readwrite") and $TILEWRIGHT_REMOTE_CACHE_TIMEOUT (seconds) say, and as the ca_file
/// $CURL_CA_BUNDLE or else $SSL_CERT_FILE, as for the command curl. Nothing where no URL is set,
/// and in a set-user-id program, whose environment is another user's.
/// @throws Error with code usage where one of them cannot be understood
std::optional<RemoteOptions> remote_options_from_environment();

/// The options with the URL in one form: no slash at its end.
/// @throws Error with code usage for a URL of another scheme or without a host, and for times that
/// are not positive
RemoteOptions checked(RemoteOptions options);

/// A URL without the name and password that may stand in it, for messages.
std::string without_credentials(std::string_view url);

}  // namespace tilewright::cache
