#include "verify/fuzz/failure_files.hpp"

#include <cctype>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "generator/kernel_source.hpp"
#include "generator/target.hpp"
#include "generator/templates.hpp"

namespace tilewright::verify::fuzz {
namespace {

std::vector<KernelId> kernels_of(const FuzzCase& c) {
  if (!is_run(c)) return {{c.kernel}};
  const std::string lse = c.spec.outputs.lse ? "_lse" : "";
  if (c.spec.mask_mod.empty()) return {{"forward" + lse}};
  return {{"forward_masked" + lse}, mask_kernel(c.spec)};
}

// A GPU's own target is not in the case; sources for different ones differ in their tactic alone.
Target target_of(const FuzzCase& c) {
  if (c.target == "cuda") {
    return Target::parse(c.spec.tactic && c.spec.tactic->name == "hopper" ? "sm_90a" : "sm_80");
  }
  return Target::parse(c.target);
}

// For a shell.
std::string quoted(const std::string& word) {
  bool is_plain = !word.empty();
  for (const char c : word) {
    const bool is_safe = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         std::string_view("/._-+=:,").find(c) != std::string_view::npos;
    is_plain = is_plain && is_safe;
  }
  if (is_plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

FailureFiles write_failure(const std::filesystem::path& folder, const FuzzCase& fuzz_case) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ErrorCode::disk,
                fmt::format("cannot make the folder {}: {}", folder.string(), error.message()),
                "give another one with --out");
  }
  const std::string stem = fmt::format("fuzz-{}-{}", fuzz_case.run_seed, fuzz_case.number);
  FailureFiles files{.fuzz_case = folder / (stem + ".json"), .sources = {}, .replay = {}};
  write_text_file(files.fuzz_case, to_json(fuzz_case));
  const Target target = target_of(fuzz_case);
  for (const KernelId& id : kernels_of(fuzz_case)) {
    try {
      const KernelSource source =
          render_kernel(fuzz_case.spec, target, id, *default_template_loader());
      files.sources.push_back(
          folder / fmt::format("{}-{}.{}", stem, id.name, target.is_cpu() ? "cpp" : "cu"));
      write_text_file(files.sources.back(), source.text);
    } catch (const Error& failed) {
      if (failed.code() == ErrorCode::disk) throw;
      // What cannot be rendered is what the case shows.
    }
  }
  files.replay = "tilewright fuzz --replay " + quoted(files.fuzz_case.string());
  return files;
}

}  // namespace tilewright::verify::fuzz
