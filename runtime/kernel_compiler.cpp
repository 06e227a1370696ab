#include "runtime/kernel_compiler.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/compiler_messages.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/host_compiler.hpp"

namespace tilewright {
namespace {

constexpr const char* kRegisters = "registers";
constexpr const char* kSpillBytes = "spill_bytes";
constexpr const char* kStaticSharedBytes = "static_shared_bytes";

class HostKernelCompiler final : public KernelCompiler {
 public:
  const std::string& identity() const override { return compiler_.identity(); }

  Output compile(const Spec& spec, const KernelSource& source) const override {
    HostCompiler::Result result = compiler_.compile(source.text, source.options);
    if (!result.succeeded) {
      throw compile_error(spec, source, parse_host_messages(result.log), result.log);
    }
    return {std::move(result.binary), {{"compiler", compiler_.version()}}};
  }

 private:
  HostCompiler compiler_ = HostCompiler::find();
};

class NvrtcKernelCompiler final : public KernelCompiler {
 public:
  explicit NvrtcKernelCompiler(const Target& target) : nvrtc_(cuda::Nvrtc::get()) {
    const std::vector<int>& known = nvrtc_.architectures();
    if (std::find(known.begin(), known.end(), target.sm()) != known.end()) return;
    throw Error(ErrorCode::compiler,
                fmt::format("NVRTC {}.{} does not compile for {}", nvrtc_.major(), nvrtc_.minor(),
                            target.name()),
                fmt::format("it is {}; install a newer one (pip install nvidia-cuda-nvrtc) or name "
                            "one in TILEWRIGHT_NVRTC",
                            nvrtc_.path()));
  }

  const std::string& identity() const override { return nvrtc_.identity(); }

  Output compile(const Spec& spec, const KernelSource& source) const override {
    cuda::Nvrtc::Result result = nvrtc_.compile(source.text, source.target.name(), source.options);
    if (!result.succeeded) {
      throw compile_error(spec, source, parse_nvrtc_messages(result.log, source.text), result.log);
    }
    return {std::move(result.cubin), facts(result.log)};
  }

 private:
  cache::Metadata facts(const std::string& log) const {
    int registers = 0;
    int spill_bytes = 0;
    int static_shared_bytes = 0;
    for (const cuda::KernelResources& kernel : cuda::parse_ptxas_log(log)) {
      registers = std::max(registers, kernel.registers);
      spill_bytes = std::max(spill_bytes, kernel.spill_bytes);
      static_shared_bytes = std::max(static_shared_bytes, kernel.static_shared_bytes);
    }
    return {{"compiler", fmt::format("NVRTC {}.{}", nvrtc_.major(), nvrtc_.minor())},
            {kRegisters, std::to_string(registers)},
            {kSpillBytes, std::to_string(spill_bytes)},
            {kStaticSharedBytes, std::to_string(static_shared_bytes)}};
  }

  const cuda::Nvrtc& nvrtc_;
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

std::optional<GpuResources> gpu_resources(const KernelSource& source,
                                          const cache::Metadata& facts) {
  const auto registers = number(facts, kRegisters);
  const auto spill_bytes = number(facts, kSpillBytes);
  const auto static_shared_bytes = number(facts, kStaticSharedBytes);
  if (!registers || !spill_bytes || !static_shared_bytes) return std::nullopt;
  return GpuResources{.registers = *registers,
                      .spill_bytes = *spill_bytes,
                      .shared_bytes = *static_shared_bytes + source.launch.shared_bytes};
}

}  // namespace tilewright
