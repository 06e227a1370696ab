#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tilewright::test {

/// What a test's server answers, truthfully or not.
struct Reply {
  int status = 200;
  std::string body = {};
  std::optional<std::size_t> announced_bytes = {};  ///< none: those of the body
  std::chrono::milliseconds stall{0};               ///< before the first byte
  std::chrono::milliseconds pause_per_byte{0};      ///< of the body
  bool hangs_up = false;                            ///< says nothing at all
};

/// A request as it arrived.
struct Asked {
  std::string method;
  std::string path;
  std::string body;
};

/// An HTTP server on a free port of the loopback, one connection after another in threads of their
/// own, one request for each. It ends, and lets go of the clients that it stalls, at the end of its
/// scope.
class HttpServer {
 public:
  using Handler = std::function<Reply(const Asked&)>;

  explicit HttpServer(Handler handler) : handler_(std::move(handler)) {
    // What the machine's proxies are for is not this.
    ::setenv("no_proxy", "127.0.0.1", 1);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || ::bind(listener_, any, size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, any, &size) != 0) {
      throw std::runtime_error("no server can be started on the loopback");
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() {
    is_ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (std::thread& thread : threads_) thread.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  std::vector<Asked> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::size_t count() const { return asked().size(); }

 private:
  void accept_all() {
    while (!is_ending_) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection >= 0) threads_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int connection) {
    if (const std::optional<Asked> asked = read_request(connection)) {
      {
        const std::lock_guard lock(mutex_);
        asked_.push_back(*asked);
      }
      answer(connection, handler_(*asked));
    }
    ::close(connection);
  }

  static std::optional<Asked> read_request(int connection) {
    std::string text;
    std::size_t body = std::string::npos;
    std::size_t bytes = 0;
    while (body == std::string::npos || text.size() < body + bytes) {
      char buffer[16384];
      const ssize_t size = ::recv(connection, buffer, sizeof buffer, 0);
      if (size <= 0) return std::nullopt;
      text.append(buffer, static_cast<std::size_t>(size));
      const std::size_t end = text.find("\r\n\r\n");
      if (body != std::string::npos || end == std::string::npos) continue;
      body = end + 4;
      const std::size_t length = text.find("Content-Length: ");
      if (length < end) bytes = std::stoul(text.substr(length + 16));
    }
    const std::size_t space = text.find(' ');
    return Asked{text.substr(0, space),
                 text.substr(space + 1, text.find(' ', space + 1) - space - 1), text.substr(body)};
  }

  void answer(int connection, const Reply& reply) const {
    wait(reply.stall);
    if (reply.hangs_up) return;
    send(connection, "HTTP/1.1 " + std::to_string(reply.status) + " x\r\nConnection: close\r\n" +
                         "Content-Length: " +
                         std::to_string(reply.announced_bytes.value_or(reply.body.size())) +
                         "\r\n\r\n");
    if (reply.pause_per_byte.count() == 0) return send(connection, reply.body);
    for (const char& byte : reply.body) {
      if (is_ending_) return;
      wait(reply.pause_per_byte);
      send(connection, {&byte, 1});
    }
  }

  static void send(int connection, std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
      if (size <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(size));
    }
  }

  void wait(std::chrono::milliseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!is_ending_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> is_ending_{false};
  std::thread acceptor_;
  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;
};

/// A server that keeps what is put, as a remote cache does.
class KeepingServer {
 public:
  std::string url() const { return server_.url(); }
  std::vector<Asked> asked() const { return server_.asked(); }

  std::map<std::string, std::string> kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
  }
  /// Changes what is kept, unknown to the client that put it.
  void replace(const std::function<void(std::map<std::string, std::string>&)>& change) {
    const std::lock_guard lock(mutex_);
    change(kept_);
  }

 private:
  Reply answer(const Asked& asked) {
    const std::lock_guard lock(mutex_);
    if (asked.method == "PUT") {
      kept_[asked.path] = asked.body;
      return {.status = 200};
    }
    const auto found = kept_.find(asked.path);
    if (found == kept_.end()) return {.status = 404, .body = "there is no such thing"};
    return {.body = found->second};
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::string> kept_;
  HttpServer server_{[this](const Asked& asked) { return answer(asked); }};
};

}  // namespace tilewright::test
