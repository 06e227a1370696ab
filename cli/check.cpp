#include "verify/check.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/memory.hpp"
#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/check_memory.hpp"
#include "cli/check_text.hpp"
#include "cli/expected.hpp"
#include "cli/files.hpp"
#include "cli/inputs.hpp"
#include "cli/mask_lists.hpp"
#include "cli/nan_note.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/random_lengths.hpp"
#include "cli/verb.hpp"
#include "generator/snippet/dropout_note.hpp"
#include "generator/snippet/notes.hpp"
#include "generator/snippet/scale_note.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/decode_gain.hpp"
#include "runtime/api/thread_pool.hpp"
#include "verify/fast_math.hpp"
#include "verify/gradients.hpp"
#include "verify/report_json.hpp"

namespace tilewright::cli {
namespace {

Json to_json(const std::vector<SnippetNote>& notes) {
  Json list = Json::array();
  for (const SnippetNote& note : notes) {
    list.push_back({{"message", note.message},
                    {"file", note.place.file},
                    {"line", note.place.line},
                    {"column", note.place.column},
                    {"hint", note.hint}});
  }
  return list;
}

// What is right C++ and may mean something else than its author thinks.
void say(const std::vector<SnippetNote>& notes) {
  const DiagnosticsSink diagnostics = diagnostics_to_stderr();
  for (const SnippetNote& note : notes) diagnostics(Severity::note, to_string(note));
}

// Whether dlse may be what gradients from elsewhere differ by. All but dv depend on it: dq and dk
// then are both wrong, and ours, which lack it too, are right.
bool may_lack_dlse(const Gradients& ours, const Gradients& theirs) {
  for (const char* const name : {"dq", "dk"}) {
    const auto one = theirs.find(name);
    if (one != theirs.end() && one->second.shows_right()) return false;
  }
  return std::any_of(theirs.begin(), theirs.end(), [&](const auto& one) {
    return one.first != "dv" && !one.second.ok && ours.at(one.first).ok;
  });
}

// What a call without dlse lacks where that may be why gradients from elsewhere are wrong.
std::string advice_on_dlse(const AllGradients& gradients, bool file_has_dlse) {
  if (!may_lack_dlse(gradients.ours, gradients.theirs)) return {};
  const std::string found = file_has_dlse
                                ? "the file of --expect holds dlse, which is read from the file of "
                                  "--inputs alone, so this call has none"
                                : "this call has no dlse";
  return found +
         ": where lse takes part in the loss of your result, put its gradient as dlse (F32, the "
         "shape of lse) into the file of --inputs, beside q, k, v and dout";
}

// Elements of out and of the gradients.
std::vector<NanCount> nan_counts(const verify::Report& report, const Gradients& gradients) {
  std::vector<NanCount> counts = {{"out", report.nan, report.judged()}};
  for (const auto& [name, verdict] : gradients) {
    counts.push_back({name, verdict.nan, verdict.judged()});
  }
  return counts;
}

CheckSizes sizes_of(const Spec& spec, const CallInputs& inputs) {
  const auto elements = [](const TensorView& view) { return static_cast<double>(view.numel()); };
  const verify::Problem& problem = inputs.problem();
  CheckSizes sizes{.q = elements(problem.q),
                   .k = elements(problem.k),
                   .v = elements(problem.v),
                   .out = elements(inputs.out().view()),
                   .has_gradients = inputs.gradients() != nullptr,
                   .has_16_bits = spec.dtype != DType::f32,
                   .kv_heads = static_cast<double>(inputs.shape().num_kv_heads)};
  if (inputs.weights()) sizes.weights = elements(inputs.weights()->view());
  sizes.rows = sizes.out / static_cast<double>(spec.value_head_dim());
  if (!sizes.has_gradients) return sizes;
  for (const auto& [name, view] : inputs.gradients()->outputs()) {
    if (!name.starts_with("d_")) continue;
    sizes.named += elements(view);
    sizes.greatest_named = std::max(sizes.greatest_named, elements(view));
  }
  return sizes;
}

class CheckVerb : public Verb {
 public:
  CheckVerb()
      : Verb("check", "run a spec and compare the result with the double-precision reference",
             "tilewright check examples/alibi.json --inputs random:1,8,2,300,300") {}

  void declare(CLI::App& app) override {
    add_spec_argument(app, spec_);
    app.add_option("--outputs", outputs_, "also write out, and lse if asked for, as `run` does");
    app.add_option("--device", device_, "auto, cpu, cuda or cuda:N (default auto)");
    app.add_option("--beside", beside_, "another device: both results must be right, and agree");
    app.add_option(
        "--expect", expect_,
        "a safetensors file with a result of your own: out, and lse, max_scores, weights and "
        "gradients if it has them. They are judged by the same rule, and out and lse compared with "
        "ours; without --inputs it holds q, k, v and the buffers too");
    app.add_option("--mask", mask_,
                   "of a packed spec: a safetensors file with lists over positions (default: "
                   "mask_mod decides the tiles)");
    app.add_flag("--deterministic", deterministic_,
                 "of a spec with gradients: equal bits over runs, as a CPU always gives");
    arguments_.declare_call(app);
    app.get_option("--inputs")->required(false);
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = spec_from_file(spec_);
    const Device device = Device::parse(device_);
    require_gradients(spec, deterministic_);
    notes_ = snippet_notes(spec);
    say(notes_);
    require_takes_mask(spec);
    take_inputs_of_expected(spec);
    require_writable(outputs_, "--outputs", {spec_, arguments_.inputs, expect_, mask_});
    CallInputs inputs = CallInputs::load(spec, arguments_);
    CheckSizes sizes = sizes_of(spec, inputs);
    sizes.results += (beside_.empty() ? 0 : 1) + (expect_.empty() ? 0 : 1);
    require_memory_for(bytes_of_check(sizes), "the reference and naive results");
    verify::CheckOptions options{
        .attention = {.device = device,
                      .kernels = command_line_toolchain(),
                      .decode = gains_from_decode(spec, inputs.shape(), device)}};
    if (!beside_.empty()) options.compared_with = Device::parse(beside_);
    ExpectedResult theirs;
    if (!expect_.empty()) {
      theirs = read_expected(expect_, spec, inputs);
      options.theirs = theirs.values;
    }
    const verify::Report report = check_with_progress(spec, inputs, options);
    if (const auto note = dropout_note(spec, report.dropout)) {
      say({*note});
      notes_.push_back(*note);
    }
    for (const auto& [kind, value] : report.odd_scales) {
      notes_.push_back(scale_note(spec, kind, value));
      say({notes_.back()});
    }
    const bool has_gradients = inputs.gradients() != nullptr;
    if (has_gradients || !outputs_.empty()) run_call(spec, device, inputs, mask_, deterministic_);
    if (!outputs_.empty()) write_outputs(inputs, outputs_);
    const AllGradients gradients =
        has_gradients ? judge_gradients(spec, device, inputs, theirs) : AllGradients();
    if (const auto note = nan_note(spec, inputs, nan_counts(report, gradients.ours))) {
      say({*note});
      notes_.push_back(*note);
    }
    const bool ok = report.shows_right() && gradients.ok();
    print_report(spec, inputs, report, gradients, ok);
    return ok ? kDone : kNegativeVerdict;
  }

 private:
  // Of a dense spec the block mask is what is checked.
  void require_takes_mask(const Spec& spec) const {
    if (mask_.empty() || spec.is_packed()) return;
    throw Error(ErrorCode::usage, "check takes --mask for packed specs alone",
                "leave --mask out: the block mask is built and compared with mask_mod");
  }

  void take_inputs_of_expected(const Spec& spec) {
    if (!arguments_.inputs.empty() && arguments_.inputs != expect_) return;
    if (expect_.empty()) {
      throw Error(ErrorCode::usage, "--inputs is required",
                  "name a safetensors file with q, k, v and the buffers, or "
                  "random:B,HQ,HKV,SQ,SKV");
    }
    arguments_.inputs = expect_;
    arguments_.others = result_names(spec);
  }

  verify::Report check_with_progress(const Spec& spec, const CallInputs& inputs,
                                     verify::CheckOptions options) {
    Progress progress(1, json_);
    progress.update("compiling kernels", 0);
    options.progress = [&](std::string_view step, double share) { progress.update(step, share); };
    const verify::Checker checker(spec, options);
    verify::Problem problem = inputs.problem();
    if (!mask_.empty()) {
      const Attention& attention = checker.attention();
      positions_ =
          read_positions(mask_, attention, inputs.shape().num_q_heads, inputs.bindings(attention));
      problem.positions = &*positions_;
    }
    return checker.check(problem);
  }

  AllGradients judge_gradients(const Spec& spec, const Device& device, const CallInputs& inputs,
                               const ExpectedResult& theirs) const {
    verify::GradientResults results = inputs.gradients()->results();
    results.fast_math = verify::uses_fast_math(spec, device);
    verify::Problem problem = inputs.problem();
    if (positions_) problem.positions = &*positions_;
    const auto judge = [&](const TensorView& out) {
      results.out = out;
      return verify::judge_gradients(spec, problem, results, command_line_toolchain(),
                                     ThreadPool::shared());
    };
    AllGradients gradients{.ours = judge(inputs.out().view())};
    if (theirs.gradients.empty()) return gradients;
    for (const auto& [name, tensor] : theirs.gradients) results.gradients[name] = tensor.view();
    results.is_from_elsewhere = true;
    gradients.theirs = judge(theirs.out.view());
    std::erase_if(gradients.theirs,
                  [&](const auto& one) { return !theirs.gradients.contains(one.first); });
    if (!results.dlse) {
      gradients.advice = advice_on_dlse(gradients, theirs.has_unread_dlse);
    }
    return gradients;
  }

  void print_report(const Spec& spec, const CallInputs& inputs, const verify::Report& report,
                    const AllGradients& gradients, bool ok) const {
    if (json_) {
      Json json = verify::report_json(report);
      json["ok"] = ok;
      json["reasons"] = all_reasons(report, gradients);
      if (!gradients.ours.empty()) json["gradients"] = verify::gradients_json(gradients.ours);
      if (!gradients.theirs.empty()) {
        Json& expected = json["expected"];
        expected["ok"] = expected["ok"] && AllGradients::are_ok(gradients.theirs);
        expected["gradients"] = verify::gradients_json(gradients.theirs);
      }
      json["notes"] = to_json(notes_);
      return print_json(json);
    }
    std::string text =
        fmt::format("{}: {}\n", spec.name.empty() ? "the spec" : spec.name, inputs.describe());
    text += verdict_text(report, gradients, ok) + gradients_text(gradients.ours) +
            gradients_text(gradients.theirs, "your ") +
            findings_text(spec, inputs, !is_random(arguments_.inputs), report) + times_text(report);
    if (!outputs_.empty()) text += fmt::format("wrote {}\n", outputs_);
    print(text);
  }

  std::string spec_;
  InputArguments arguments_;
  std::string outputs_;
  std::string expect_;
  std::string mask_;
  std::optional<BlockMask> positions_;  // of --mask
  std::vector<SnippetNote> notes_;
  std::string device_ = "auto";
  bool deterministic_ = false;
  std::string beside_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_check_verb() {
  return std::make_unique<CheckVerb>();
}

}  // namespace tilewright::cli
