#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/files.hpp"
#include "cli/inputs.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec_json.hpp"

namespace tilewright::cli {
namespace {

class RunVerb : public Verb {
 public:
  RunVerb()
      : Verb("run", "run a spec on tensors from a file, or on random ones",
             "tilewright run examples/alibi.json --inputs random:1,8,2,1024,1024 "
             "--outputs out.safetensors") {}

  void declare(CLI::App& app) override {
    add_spec_argument(app, spec_);
    app.add_option("--outputs", outputs_,
                   "the safetensors file to write: out, and lse and gradients if asked for")
        ->required();
    app.add_option("--device", device_, "auto, cpu, cuda or cuda:N (default auto)");
    app.add_option(
        "--mask", mask_,
        "a safetensors file with the block mask, of a packed spec with lists over positions "
        "(default: mask_mod is evaluated)");
    app.add_flag("--deterministic", deterministic_,
                 "of a spec with gradients: equal bits over runs, as a CPU always gives");
    arguments_.declare_call(app);
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = spec_from_file(spec_);
    const Device device = Device::parse(device_);
    require_gradients(spec, deterministic_);
    require_writable(outputs_, "--outputs", {spec_, arguments_.inputs, mask_});
    const Stopwatch watch;
    Progress progress(1, json_);
    progress.update("making the inputs", 0);
    CallInputs inputs = CallInputs::load(spec, arguments_);
    const double inputs_ms = watch.ms();
    progress.update("making the kernels, running", 0);
    Call call = run_call(spec, device, inputs, mask_, deterministic_);
    call.inputs_ms = inputs_ms;
    progress.update("writing the outputs", 0);
    const Stopwatch write_watch;
    write_outputs(inputs, outputs_);
    call.write_ms = write_watch.ms();
    progress.end();
    report(inputs, call);
    return kDone;
  }

 private:
  static std::map<std::string, TensorView> gradients_of(const CallInputs& inputs) {
    return inputs.gradients() == nullptr ? std::map<std::string, TensorView>()
                                         : inputs.gradients()->outputs();
  }

  void report(const CallInputs& inputs, const Call& call) const {
    if (json_) {
      Json facts = to_json(call, inputs);
      facts["outputs"] = {{"file", outputs_}, {"out", inputs.out().describe()}};
      if (inputs.lse()) facts["outputs"]["lse"] = inputs.lse()->describe();
      if (inputs.max_scores()) facts["outputs"]["max_scores"] = inputs.max_scores()->describe();
      if (inputs.weights()) facts["outputs"]["weights"] = inputs.weights()->describe();
      for (const auto& [name, view] : gradients_of(inputs)) {
        facts["outputs"][name] = view.describe();
      }
      return print_json(facts);
    }
    std::string wrote = "out " + inputs.out().describe();
    if (inputs.lse()) wrote += ", lse " + inputs.lse()->describe();
    if (inputs.max_scores()) wrote += ", max_scores " + inputs.max_scores()->describe();
    if (inputs.weights()) wrote += ", weights " + inputs.weights()->describe();
    for (const auto& [name, view] : gradients_of(inputs))
      wrote += ", " + name + " " + view.describe();
    print(fmt::format("{}wrote {}: {}\n", describe(call, inputs), outputs_, wrote));
  }

  std::string spec_;
  InputArguments arguments_;
  std::string outputs_;
  std::string mask_;
  std::string device_ = "auto";
  bool deterministic_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_run_verb() {
  return std::make_unique<RunVerb>();
}

}  // namespace tilewright::cli
