#include "fuzz/failure_files.hpp"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/target.hpp"

namespace tilewright::verify::fuzz {

namespace fs = std::filesystem;

namespace {

std::vector<KernelVariant> kernels_of(const FuzzCase& c) {
  return is_run(c) ? kernels_of_call(c.spec) : std::vector<KernelVariant>{*c.kernel};
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

std::vector<KernelVariant> kernels_of_call(const Spec& spec) {
  std::vector<KernelVariant> kernels = {forward_kernel(spec, Target::host_cpu())};
  if (!spec.mask_mod.empty()) kernels.push_back(mask_kernel(spec));
  if (!spec.gradients.empty()) kernels.push_back(backward_kernel(spec));
  return kernels;
}

FailureFolder::FailureFolder(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) refuse(error.message());
  if (::access(folder_.c_str(), W_OK | X_OK) != 0) refuse(std::strerror(errno));
}

void FailureFolder::refuse(const std::string& why) const {
  throw Error(ErrorCode::disk,
              fmt::format("cannot write to the folder {}: {}", folder_.string(), why),
              "give another one with --out");
}

// Groups may come from one case, or come to be the same one.
std::string FailureFolder::stem_of(const FuzzCase& fuzz_case) const {
  const std::string plain = fmt::format("fuzz-{}-{}", fuzz_case.run_seed, fuzz_case.number);
  std::string stem = plain;
  for (int i = 2;; ++i) {
    const auto other = kept_.find(stem);
    if (other == kept_.end() || other->second == to_json(fuzz_case)) return stem;
    stem = fmt::format("{}-{}", plain, i);
  }
}

FailureFiles FailureFolder::write(const FuzzCase& fuzz_case) {
  const std::string stem = stem_of(fuzz_case);
  FailureFiles files{.fuzz_case = folder_ / (stem + ".json"), .sources = {}, .replay = {}};
  kept_[stem] = to_json(fuzz_case);
  write_text(files.fuzz_case, kept_[stem]);
  const Target target = target_of(fuzz_case);
  for (const KernelVariant& id : kernels_of(fuzz_case)) {
    try {
      const KernelSource source =
          render_kernel(fuzz_case.spec, target, id, *default_template_loader());
      files.sources.push_back(
          folder_ / fmt::format("{}-{}.{}", stem, id.name(), target.is_cpu() ? "cpp" : "cu"));
      write_text(files.sources.back(), source.text);
    } catch (const Error& failed) {
      if (failed.code() == ErrorCode::disk) throw;
      // What cannot be rendered is what the case shows.
    }
  }
  files.replay = "tilewright fuzz --replay " + quoted(files.fuzz_case.string());
  return files;
}

void FailureFolder::write_text(const fs::path& path, const std::string& text) {
  write_text_file(path, text);
  written_.insert(path);
  replaced_.erase(path);
}

void FailureFolder::start_over() {
  kept_.clear();
  replaced_.merge(written_);
  written_.clear();
}

void FailureFolder::remove_replaced() {
  std::error_code ignored;
  for (const fs::path& path : replaced_) fs::remove(path, ignored);
  replaced_.clear();
}

FailureFiles write_failure(const fs::path& folder, const FuzzCase& fuzz_case) {
  return FailureFolder(folder).write(fuzz_case);
}

}  // namespace tilewright::verify::fuzz
