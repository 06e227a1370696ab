#pragma once

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tilewright::test {

struct NginxOptions {
  bool is_read_only = false;                   ///< refuses PUT
  std::filesystem::path certificate = {};      ///< PEM; none: http
  std::filesystem::path certificate_key = {};  ///< PEM
};

/// nginx as the remote cache that docs/cache.md describes: WebDAV's PUT, on a free port of the
/// loopback, without privileges, with all of its files in one folder. Ends with its scope.
class Nginx {
 public:
  /// Debian's, or none.
  static std::string program() {
    for (const char* path : {"/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"}) {
      if (::access(path, X_OK) == 0) return path;
    }
    return {};
  }

  explicit Nginx(std::filesystem::path folder, NginxOptions options = {})
      : folder_(std::move(folder)), options_(std::move(options)) {
    ::setenv("no_proxy", "127.0.0.1", 1);
    std::filesystem::create_directories(folder_ / "kept");
    // Another process may take a port between our look and nginx's.
    for (int tries = 0; tries < 5; ++tries) {
      port_ = free_port();
      write_configuration();
      start();
      if (answers()) return;
      stop();
    }
    std::ifstream log(folder_ / "error.log");
    throw std::runtime_error("nginx does not start: " +
                             std::string(std::istreambuf_iterator<char>(log), {}));
  }
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;
  ~Nginx() { stop(); }

  std::string url() const {
    return (has_tls() ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
  }
  std::filesystem::path kept() const { return folder_ / "kept"; }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  static int free_port() {
    const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    ::bind(number, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(number, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(number);
    return ntohs(address.sin_port);
  }

  bool has_tls() const { return !options_.certificate.empty(); }

  void write_configuration() const {
    const std::string folder = folder_.native();
    std::ofstream(folder_ / "nginx.conf")
        << "daemon off;\nmaster_process off;\npid " << folder << "/pid;\nerror_log " << folder
        << "/error.log;\nevents {}\nhttp {\n  access_log off;\n  client_body_temp_path " << folder
        << "/body;\n  proxy_temp_path " << folder << "/proxy;\n  fastcgi_temp_path " << folder
        << "/fastcgi;\n  uwsgi_temp_path " << folder << "/uwsgi;\n  scgi_temp_path " << folder
        << "/scgi;\n  server {\n    listen 127.0.0.1:" << port_ << (has_tls() ? " ssl" : "")
        << ";\n    root " << folder << "/kept;\n    client_max_body_size 256m;\n"
        << (options_.is_read_only ? "" : "    dav_methods PUT;\n    create_full_put_path on;\n")
        << (has_tls()
                ? "    ssl_certificate " + options_.certificate.native() +
                      ";\n    ssl_certificate_key " + options_.certificate_key.native() + ";\n"
                : "")
        << "  }\n}\n";
  }

  void start() {
    const std::string path = program();
    const std::string configuration = (folder_ / "nginx.conf").native();
    const std::string log = (folder_ / "error.log").native();
    std::vector<const char*> words = {path.c_str(), "-c",        configuration.c_str(),
                                      "-e",         log.c_str(), nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (::posix_spawn(&process_, path.c_str(), &actions, nullptr,
                      const_cast<char* const*>(words.data()), ::environ) != 0) {
      process_ = -1;
    }
    ::posix_spawn_file_actions_destroy(&actions);
  }

  bool answers() const {
    for (int tries = 0; tries < 500; ++tries) {
      if (process_ < 0 || ::waitpid(process_, nullptr, WNOHANG) != 0) return false;
      const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_in address = loopback(port_);
      const int result =
          ::connect(number, reinterpret_cast<const sockaddr*>(&address), sizeof address);
      ::close(number);
      if (result == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  void stop() {
    if (process_ < 0) return;
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  std::filesystem::path folder_;
  NginxOptions options_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace tilewright::test
