#include "tests/cli/command.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>

#include <unistd.h>

#include "runtime/api/safetensors.hpp"
#include "runtime/compile/process.hpp"

namespace tilewright::test {
namespace {

namespace fs = std::filesystem;

Ended ended(const ProcessResult& result) {
  const int status = result.exit_status.value_or(1000 + result.signal.value_or(0));
  return {.status = status, .out = result.output, .err = result.errors};
}

}  // namespace

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "tilewright-cli-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the test");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

nlohmann::json Ended::json() const {
  return nlohmann::json::parse(out);
}

std::string Folder::write(std::string_view name, std::string_view text) const {
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Ended start(std::vector<std::string> arguments, const Environment& environment,
            std::chrono::seconds timeout) {
  arguments.insert(arguments.begin(), TILEWRIGHT_EXECUTABLE);
  ProcessOptions options;
  options.environment = environment;
  options.timeout = timeout;
  return ended(run_process(arguments, options));
}

Ended on_cpu(const std::vector<std::string>& arguments) {
  return start(arguments, {{"TILEWRIGHT_DEVICE", "cpu"}});
}

Ended shell(const std::string& script) {
  ProcessOptions options;
  options.environment = {{"tilewright", TILEWRIGHT_EXECUTABLE}};
  return ended(run_process({"bash", "-c", script}, options));
}

std::string write_zeros(const Folder& folder, std::string_view name,
                        const std::vector<Zeros>& zeros) {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, TensorView> views;
  for (const Zeros& each : zeros) {
    const auto [place, added] = tensors.emplace(each.name, Tensor::zeros(each.dtype, each.shape));
    views.emplace(each.name, place->second.view());
  }
  write_safetensors(folder.path(name), views);
  return folder.path(name);
}

std::string raw_safetensors(std::uint64_t header_length, std::string_view header,
                            std::size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header_length >> (8 * i));
  return bytes + std::string(header) + std::string(data_bytes, '\0');
}

}  // namespace tilewright::test
