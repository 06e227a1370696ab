#include "runtime/cuda/empty_kernel.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "generator/render/templates.hpp"
#include "runtime/cuda/arguments.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace tilewright::cuda {
namespace {

constexpr std::size_t kForwardBytes = sizeof(abi::cuda::ForwardArguments);
constexpr std::size_t kSnippetBytes = 96;  // a buffer, a scalar and the sizes of a call

}  // namespace

std::vector<std::byte> EmptyKernel::compile(std::string_view target) {
  const auto size = [](std::size_t bytes) { return static_cast<std::int64_t>(bytes); };
  const jinja::Rendered rendered = jinja::render(
      *default_template_loader(), "cuda/kernels/empty.cu.jinja",
      {{"forward_bytes", size(kForwardBytes)}, {"snippet_bytes", size(kSnippetBytes)}});
  Nvrtc::Result result = Nvrtc::get().compile(rendered.text, target, {"--std=c++17"});
  if (result.succeeded) return std::move(result.cubin);
  throw Error(ErrorCode::compiler, "the empty kernel does not compile: " + result.log);
}

EmptyKernel::EmptyKernel(const Driver& driver, std::span<const std::byte> cubin)
    : driver_(driver), parameters_(std::max(kForwardBytes, kSnippetBytes)) {
  const DriverFunctions& f = driver.functions();
  driver.check(f.module_load(&module_, cubin.data()), "loading the empty kernel");
  driver.check(f.module_function(&function_, module_, "empty"), "finding the empty kernel");
}

EmptyKernel::~EmptyKernel() {
  driver_.functions().module_unload(module_);
}

void EmptyKernel::launch(Stream stream) {
  void* parameters[] = {parameters_.data(), parameters_.data()};
  driver_.check(
      driver_.functions().launch(function_, 1, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr),
      "launching the empty kernel");
}

}  // namespace tilewright::cuda
