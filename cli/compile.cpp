#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/files.hpp"
#include "cli/kernels.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/target_note.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/library/kernel_library.hpp"

namespace tilewright::cli {
namespace {

namespace fs = std::filesystem;

// A kernel for a CPU is a shared object: registers and shared memory are a GPU's words.
Json kernel_json(const KernelBuild& build) {
  Json kernel = {{"name", build.kernel},
                 {"names", build.names},
                 {"source", build.source},
                 {"ms", build.render_ms + build.compile_ms + build.load_ms},
                 {"render_ms", build.render_ms},
                 {"compile_ms", build.compile_ms},
                 {"registers", nullptr},
                 {"spill_bytes", nullptr},
                 {"shared_bytes", nullptr},
                 {"cubin_bytes", nullptr},
                 {"performance_warnings", nullptr},
                 {"bytes", build.bytes},
                 {"compiles", build.bytes > 0}};
  if (!build.gpu) return kernel;
  kernel["registers"] = build.gpu->registers;
  kernel["spill_bytes"] = build.gpu->spill_bytes;
  kernel["shared_bytes"] = build.gpu->shared_bytes;
  kernel["cubin_bytes"] = build.bytes;
  kernel["performance_warnings"] = build.gpu->performance_warnings;
  return kernel;
}

std::vector<std::string> table_head(const Target& target) {
  if (target.is_cpu()) return {"kernel", "from", "time", "size"};
  return {"kernel", "from", "time", "size", "registers", "spilled", "shared"};
}

std::vector<std::string> table_row(const KernelBuild& build) {
  std::vector<std::string> row = {
      build.kernel, build.source, format_ms(build.render_ms + build.compile_ms + build.load_ms),
      build.bytes > 0 ? format_bytes(build.bytes) : "not for this snippet"};
  if (!build.gpu) return row;
  row.push_back(std::to_string(build.gpu->registers));
  row.push_back(format_bytes(static_cast<std::uint64_t>(build.gpu->spill_bytes)));
  row.push_back(format_bytes(static_cast<std::uint64_t>(build.gpu->shared_bytes)));
  return row;
}

// A kernel of which ptxas says so still runs, so this is no failure.
void warn_of_slow_kernels(const Target& target, const std::vector<KernelBinary>& binaries) {
  const DiagnosticsSink warn = diagnostics_to_stderr();
  for (const KernelBinary& binary : binaries) {
    if (!binary.build.gpu) continue;
    for (const std::string& line : binary.build.gpu->performance_warnings) {
      warn(Severity::warning,
           fmt::format("{} for {} will be slow: {}", binary.build.kernel, target.name(), line));
    }
  }
}

class CompileVerb : public Verb {
 public:
  CompileVerb()
      : Verb("compile", "compile a spec's kernels into the cache",
             "tilewright compile examples/alibi.json --target cpu-x86-64-v3 -o alibi.so") {}

  void declare(CLI::App& app) override {
    add_spec_argument(app, spec_);
    app.add_option("--target", target_, "what for (default: this machine)");
    app.add_option("--kernel", kernel_, "only this kernel (default: all of them)");
    app.add_option("-o,--output", output_,
                   "write the binary of --kernel, or of the kernel that `run` would use; a folder "
                   "(or a name ending in /) gets every kernel's");
    app.add_flag("--list", list_, "name the kernels and compile nothing");
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = spec_from_file(spec_);
    const Target target = target_or_default(spec, target_);
    const std::vector<KernelVariant> ids =
        kernel_.empty() ? kernel_set(spec, target)
                        : std::vector<KernelVariant>{kernel_or_default(spec, target, kernel_)};
    if (list_) return list(spec, target, ids);
    notes_ = say_target_notes(std::span(&target, 1));
    prepare_output();
    const std::vector<KernelBinary> binaries = build(spec, target, ids);
    write_output(spec, target, binaries);
    report(target, binaries);
    return kDone;
  }

 private:
  ExitStatus list(const Spec& spec, const Target& target,
                  const std::vector<KernelVariant>& ids) const {
    if (!output_.empty()) {
      throw Error(ErrorCode::usage, "--list compiles nothing, so there is nothing for -o to write",
                  "leave one of the two out");
    }
    Json kernels = Json::array();
    std::string text;
    for (const KernelVariant& id : ids) {
      const bool is_default = id == forward_kernel(spec, target);
      kernels.push_back({{"name", id.name()}, {"default", is_default}});
      text += id.name() + (is_default ? "  (what `run` uses)\n" : "\n");
    }
    if (json_) {
      print_json({{"target", target.name()}, {"kernels", kernels}});
    } else {
      print(text);
    }
    return kDone;
  }

  bool into_folder() const { return output_.ends_with('/') || fs::is_directory(output_); }

  void prepare_output() const {
    if (output_.empty()) return;
    if (!into_folder()) return require_writable(output_, "-o", {spec_});
    make_folder(output_, "-o");
    require_writable(fs::path(output_) / "kernel.so", "-o");
  }

  std::vector<KernelBinary> build(const Spec& spec, const Target& target,
                                  const std::vector<KernelVariant>& ids) const {
    std::vector<KernelBinary> binaries;
    Progress progress(ids.size(), json_);
    for (const KernelVariant& id : ids) {
      progress.step(id.name());
      binaries.push_back(build_kernel(spec, target, id, command_line_toolchain()));
    }
    return binaries;
  }

  void write_output(const Spec& spec, const Target& target,
                    const std::vector<KernelBinary>& binaries) const {
    if (output_.empty()) return;
    const bool only_one = binaries.size() == 1;
    bool is_written = false;
    for (const KernelBinary& binary : binaries) {
      const std::string& name = binary.build.kernel;
      if (!binary.compiles()) continue;
      if (into_folder()) {
        const char* const extension = binary.source.target.is_cpu() ? ".so" : ".cubin";
        write_file(fs::path(output_) / (name + extension), binary.entry->payload);
        is_written = true;
      } else if (only_one || binary.source.variant == forward_kernel(spec, binary.source.target)) {
        write_file(output_, binary.entry->payload);
        is_written = true;
      }
    }
    if (is_written) return;
    throw Error(ErrorCode::usage,
                fmt::format("-o \"{}\" was not written: this spec has no kernel {}", output_,
                            kernel_.empty() ? forward_kernel(spec, target).name() : kernel_),
                "`tilewright compile SPEC` without -o lists what compiles");
  }

  void report(const Target& target, const std::vector<KernelBinary>& binaries) const {
    Json kernels = Json::array();
    Table table(table_head(target));
    for (const KernelBinary& binary : binaries) {
      kernels.push_back(kernel_json(binary.build));
      table.add(table_row(binary.build));
    }
    if (json_) {
      print_json({{"target", target.name()}, {"notes", notes_}, {"kernels", kernels}});
    } else {
      print(fmt::format("target {}\n{}", target.name(), table.text()));
      if (!output_.empty()) print(fmt::format("wrote {}\n", output_));
    }
    warn_of_slow_kernels(target, binaries);
  }

  std::string spec_;
  std::string target_;
  std::string kernel_;
  std::string output_;
  std::vector<std::string> notes_;
  bool list_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_compile_verb() {
  return std::make_unique<CompileVerb>();
}

}  // namespace tilewright::cli
