#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/api/tensor.hpp"

namespace tilewright::test {

/// A folder for one test, removed at its end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(std::string_view name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view text) const;
  /// Names of everything in it, sorted.
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

/// How one start of the executable ended.
struct Ended {
  int status = -1;  ///< 1000 + signal where a signal ended it
  std::string out;
  std::string err;

  nlohmann::json json() const;
};

using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// Starts the built executable, without a shell. It is killed after `timeout`.
Ended start(std::vector<std::string> arguments, const Environment& environment = {},
            std::chrono::seconds timeout = std::chrono::minutes(2));

/// The same where the machine's device is the CPU.
Ended on_cpu(const std::vector<std::string>& arguments);

/// Starts bash, where `$tilewright` is the executable.
Ended shell(const std::string& script);

/// A file with tensors of zeros: {{"q", f32, {1, 2, 3, 16}}, ...}
struct Zeros {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
};
std::string write_zeros(const Folder& folder, std::string_view name,
                        const std::vector<Zeros>& tensors);

/// A safetensors file of any header and data, however wrong.
std::string raw_safetensors(std::uint64_t header_length, std::string_view header,
                            std::size_t data_bytes);

}  // namespace tilewright::test
