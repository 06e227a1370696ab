#include "runtime/compile/kernel_compiler.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/messages/compiler_messages.hpp"
#include "runtime/compile/host_compiler.hpp"
#include "runtime/compile/worker_pool.hpp"
#include "runtime/cuda/find_nvrtc.hpp"

namespace tilewright {
namespace {

constexpr const char* kRegisters = "registers";
constexpr const char* kSpillBytes = "spill_bytes";
constexpr const char* kSharedBytes = "shared_bytes";
constexpr const char* kPerformanceWarnings = "performance_warnings";  // a line each

// The first of them, should there be more than a cache entry holds.
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (text.size() + line.size() + 1 > cache::kMaxMetadataValue) break;
    text += line + '\n';
  }
  return text;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

// "forward for sm_90a", for messages.
std::string label_of(const KernelSource& source) {
  return fmt::format("{} for {}", source.variant.name(), source.target.name());
}

class HostKernelCompiler final : public KernelCompiler {
 public:
  const std::string& identity() const override { return compiler_.identity(); }

  Output compile(const Spec& spec, const KernelSource& source) const override {
    HostCompiler::Result result = run(source);
    if (!result.succeeded) {
      throw compile_error(spec, source, parse_host_messages(result.log), result.log);
    }
    return {std::move(result.binary), {{"compiler", compiler_.version()}}};
  }

 private:
  HostCompiler::Result run(const KernelSource& source) const {
    std::error_code ignored;
    std::optional<WorkerResponse> response =
        run_in_worker({.task = WorkerRequest::Task::host,
                       .limits = compile_limits(),
                       .environment = current_environment(),
                       .directory = std::filesystem::current_path(ignored).string(),
                       .words = compiler_.words(),
                       .compiler = compiler_.version(),
                       .options = source.options,
                       .source = source.text},
                      label_of(source));
    if (!response) return compiler_.compile(source.text, source.options);
    return {response->succeeded, std::move(response->binary), std::move(response->log),
            response->milliseconds};
  }

  HostCompiler compiler_ = HostCompiler::find();
};

class NvrtcKernelCompiler final : public KernelCompiler {
 public:
  explicit NvrtcKernelCompiler(const Target& target) : nvrtc_(cuda::find_nvrtc()) {
    const std::vector<int>& known = nvrtc_.architectures;
    if (std::find(known.begin(), known.end(), target.sm()) != known.end()) return;
    throw Error(ErrorCode::compiler,
                fmt::format("NVRTC {}.{} does not compile for {}", nvrtc_.major, nvrtc_.minor,
                            target.name()),
                fmt::format("it is {}; install a newer one (pip install nvidia-cuda-nvrtc) or name "
                            "one in TILEWRIGHT_NVRTC",
                            nvrtc_.path));
  }

  const std::string& identity() const override { return nvrtc_.identity; }

  Output compile(const Spec& spec, const KernelSource& source) const override {
    cuda::Nvrtc::Result result = run(source);
    if (!result.succeeded) {
      throw compile_error(spec, source, parse_nvrtc_messages(result.log, source.text), result.log);
    }
    return {std::move(result.cubin), facts(source, result.log)};
  }

 private:
  cuda::Nvrtc::Result run(const KernelSource& source) const {
    std::optional<WorkerResponse> response = run_in_worker({.task = WorkerRequest::Task::nvrtc,
                                                            .limits = compile_limits(),
                                                            .environment = current_environment(),
                                                            .words = {nvrtc_.path},
                                                            .compiler = nvrtc_.identity,
                                                            .target = source.target.name(),
                                                            .options = source.options,
                                                            .source = source.text},
                                                           label_of(source));
    if (!response) return run_here(source);
    return {response->succeeded, std::move(response->binary), std::move(response->log),
            response->milliseconds};
  }

  cuda::Nvrtc::Result run_here(const KernelSource& source) const {
    const cuda::Nvrtc& nvrtc = cuda::Nvrtc::at(nvrtc_.path);
    if (nvrtc.identity() == nvrtc_.identity) {
      return nvrtc.compile(source.text, source.target.name(), source.options);
    }
    throw Error(ErrorCode::compiler,
                fmt::format("\"{}\" was replaced while it was in use", nvrtc_.path),
                "start the program again");
  }

  cache::Metadata facts(const KernelSource& source, const std::string& log) const {
    int registers = 0;
    int spill_bytes = 0;
    std::int64_t shared_bytes = 0;
    for (const cuda::KernelResources& kernel : cuda::parse_ptxas_log(log)) {
      registers = std::max(registers, kernel.registers);
      spill_bytes = std::max(spill_bytes, kernel.spill_bytes);
      shared_bytes = std::max(
          shared_bytes, kernel.static_shared_bytes + dynamic_shared_bytes(source, kernel.entry));
    }
    return {{"compiler", fmt::format("NVRTC {}.{}", nvrtc_.major, nvrtc_.minor)},
            {kRegisters, std::to_string(registers)},
            {kSpillBytes, std::to_string(spill_bytes)},
            {kSharedBytes, std::to_string(shared_bytes)},
            {kPerformanceWarnings, joined(cuda::performance_warnings(log))}};
  }

  cuda::NvrtcFacts nvrtc_;
};

std::optional<std::int64_t> number(const cache::Metadata& facts, const char* name) {
  const auto found = facts.find(name);
  if (found == facts.end()) return std::nullopt;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::unique_ptr<const KernelCompiler> find_compiler(const Target& target) {
  if (target.is_cpu()) return std::make_unique<const HostKernelCompiler>();
  return std::make_unique<const NvrtcKernelCompiler>(target);
}

std::optional<GpuResources> gpu_resources(const cache::Metadata& facts) {
  const auto registers = number(facts, kRegisters);
  const auto spill_bytes = number(facts, kSpillBytes);
  const auto shared_bytes = number(facts, kSharedBytes);
  const auto warnings = facts.find(kPerformanceWarnings);
  if (!registers || !spill_bytes || !shared_bytes || warnings == facts.end()) {
    return std::nullopt;
  }
  return GpuResources{.registers = *registers,
                      .spill_bytes = *spill_bytes,
                      .shared_bytes = *shared_bytes,
                      .performance_warnings = lines_of(warnings->second)};
}

}  // namespace tilewright
