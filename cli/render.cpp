#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/kernels.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/library/kernel_names.hpp"

namespace tilewright::cli {
namespace {

class RenderVerb : public Verb {
 public:
  RenderVerb()
      : Verb("render", "print the source of a kernel",
             "tilewright render examples/alibi.json --kernel mask_exact") {}

  void declare(CLI::App& app) override {
    add_spec_argument(app, spec_);
    app.add_option("--target", target_, "what it is rendered for (default: this machine)");
    app.add_option("--kernel", kernel_, "which kernel (default: the one that `run` would use)");
    app.add_flag("--lines", lines_, "with #line directives, for profilers and debuggers");
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = spec_from_file(spec_);
    const Target target = target_or_default(spec, target_);
    const KernelVariant id = kernel_or_default(spec, target, kernel_);
    const KernelSource source = render_kernel(spec, target, id, *default_template_loader());
    const KernelSource named = with_names(source);
    const std::string text = lines_ ? with_line_directives(named) : named.text;
    if (json_) {
      print_json({{"kernel", id.name()},
                  {"target", target.name()},
                  {"entry_points", source.entry_points},
                  {"names", kernel_names(source)},
                  {"options", source.options},
                  {"templates", source.template_files},
                  {"text", text}});
    } else {
      print_verbatim(text);
    }
    return kDone;
  }

 private:
  std::string spec_;
  std::string target_;
  std::string kernel_;
  bool lines_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_render_verb() {
  return std::make_unique<RenderVerb>();
}

}  // namespace tilewright::cli
