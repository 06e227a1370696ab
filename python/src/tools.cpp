#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "attention.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "cache/bundle.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/spec_json.hpp"
#include "generator/tactic/decode_tactic.hpp"
#include "runtime/api/decode_gain.hpp"
#include "runtime/api/explain.hpp"
#include "runtime/api/precompile.hpp"
#include "runtime/library/kernel_names.hpp"
#include "verify/check.hpp"
#include "verify/gradients.hpp"
#include "verify/report_json.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

Target target_of(const std::string& name) {
  return name.empty() ? Target::host_cpu() : Target::parse(name);
}

std::string render(const std::string& spec_json, const std::string& file,
                   const std::string& target_name) {
  const Spec spec = spec_from_json(spec_json, file);
  const Target target = target_of(target_name);
  return with_names(
             render_kernel(spec, target, forward_kernel(spec, target), *default_template_loader()))
      .text;
}

std::string explain_json(const std::string& spec_json, const std::string& file,
                         const std::string& target_name) {
  return explain(spec_from_json(spec_json, file), target_of(target_name)).to_json();
}

// Batch, heads and lengths of a dense call, by the spec's layouts.
Shape shape_of(const Spec& spec, const TensorView& q, const TensorView& k) {
  if (q.rank != 4 || k.rank != 4) {
    throw Error(ErrorCode::tensor, "q and k must have 4 dimensions, but q is " + q.describe() +
                                       " and k is " + k.describe());
  }
  const int q_heads = spec.layout == Layout::bshd ? 2 : 1;
  const int kv_heads = spec.key_value_layout() == Layout::bshd ? 2 : 1;
  return {.batch = q.shape[0],
          .num_q_heads = q.shape[q_heads],
          .num_kv_heads = k.shape[kv_heads],
          .q_len = q.shape[3 - q_heads],
          .kv_len = k.shape[3 - kv_heads]};
}

using Arrays = std::map<std::string, nb::object>;

verify::Problem problem_of(const Spec& spec, nb::handle q, nb::handle k, nb::handle v,
                           const Arrays& buffers, const std::map<std::string, double>& scalars,
                           std::optional<double> scale) {
  if (spec.is_packed()) {
    throw Error(ErrorCode::usage, "tw.check takes dense specs, but this one's layout is packed",
                "use the command line: tilewright check SPEC --inputs random:HQ,HKV/Q:KV,...");
  }
  const Device host = Device::cpu();
  verify::Problem problem{.q = view_of(q, "q", host),
                          .k = view_of(k, "k", host),
                          .v = view_of(v, "v", host),
                          .snippet = {.scalars = scalars},
                          .scale = scale};
  for (const auto& [name, array] : buffers) {
    problem.snippet.buffers.emplace(name, view_of(array, name.c_str(), host));
  }
  problem.shape = shape_of(spec, problem.q, problem.k);
  return problem;
}

bool few_q_tiles(std::int64_t batch, std::int64_t num_q_heads, std::int64_t q_len,
                 std::int64_t kv_len, const std::string& device) {
  return has_few_q_tiles(
      {.batch = batch, .num_q_heads = num_q_heads, .q_len = q_len, .kv_len = kv_len},
      Device::parse(device));
}

std::string check(const std::string& spec_json, const std::string& file, nb::handle q, nb::handle k,
                  nb::handle v, const Arrays& buffers, const std::map<std::string, double>& scalars,
                  const std::string& device, std::optional<double> scale) {
  const Spec spec = spec_from_json(spec_json, file);
  const verify::Problem problem = problem_of(spec, q, k, v, buffers, scalars, scale);
  const nb::gil_scoped_release release;
  const Device on = Device::parse(device);
  return verify::report_json(
             verify::check(spec, problem,
                           {.attention = {.device = on,
                                          .decode = gains_from_decode(spec, problem.shape, on)}}))
      .dump();
}

// The verdict of each of `gradients`, which Attention.backward wrote for dout and dlse.
std::string judge_gradients(const std::string& spec_json, const std::string& file, nb::handle q,
                            nb::handle k, nb::handle v, const Arrays& buffers,
                            const std::map<std::string, double>& scalars,
                            std::optional<double> scale, nb::handle dout, nb::handle dlse,
                            const Arrays& gradients) {
  const Spec spec = spec_from_json(spec_json, file);
  const Device host = Device::cpu();
  const verify::Problem problem = problem_of(spec, q, k, v, buffers, scalars, scale);
  verify::GradientResults results{.dout = view_of(dout, "dout", host)};
  if (!dlse.is_none()) results.dlse = view_of(dlse, "dlse", host);
  for (const auto& [name, array] : gradients) {
    results.gradients.emplace(name, view_of(array, name.c_str(), host));
  }
  const nb::gil_scoped_release release;
  return verify::gradients_json(
             verify::judge_gradients(spec, problem, results, {}, ThreadPool::shared()))
      .dump();
}

std::size_t make_ahead(const std::string& manifest_path, const std::vector<std::string>& names,
                       const std::optional<std::string>& bundle) {
  const nb::gil_scoped_release release;
  const Manifest manifest = manifest_from_file(manifest_path);
  const std::vector<std::string>& wanted = names.empty() ? manifest.targets : names;
  if (wanted.empty()) {
    throw Error(ErrorCode::usage, "no target is named",
                R"(pass targets=["sm_90a", "cpu"], or write "targets" in the manifest)");
  }
  std::vector<cache::BundleItem> items = precompile(manifest.specs, bundle_targets(wanted), {});
  const std::size_t made = items.size();
  if (bundle) cache::write_bundle(*bundle, std::move(items));
  return made;
}

}  // namespace

void declare_tools(nb::module_& module) {
  module.attr("version") = version();
  module.def(
      "canonical",
      [](const std::string& spec, const std::string& file) {
        return to_json(spec_from_json(spec, file));
      },
      nb::arg("spec"), nb::arg("file"));
  module.def("automatic_device", [] { return Device::automatic().name(); });
  module.def("fits_decode_rows", &fits_decode_rows, nb::arg("q_len"), nb::arg("num_q_heads"),
             nb::arg("num_kv_heads"));
  module.def("has_few_q_tiles", &few_q_tiles, nb::arg("batch"), nb::arg("num_q_heads"),
             nb::arg("q_len"), nb::arg("kv_len"), nb::arg("device"));
  module.def("render", &render, nb::arg("spec"), nb::arg("file"), nb::arg("target"));
  module.def("explain", &explain_json, nb::arg("spec"), nb::arg("file"), nb::arg("target"));
  module.def("check", &check, nb::arg("spec"), nb::arg("file"), nb::arg("q"), nb::arg("k"),
             nb::arg("v"), nb::arg("buffers"), nb::arg("scalars"), nb::arg("device"),
             nb::arg("scale").none());
  module.def("judge_gradients", &judge_gradients, nb::arg("spec"), nb::arg("file"), nb::arg("q"),
             nb::arg("k"), nb::arg("v"), nb::arg("buffers"), nb::arg("scalars"),
             nb::arg("scale").none(), nb::arg("dout"), nb::arg("dlse").none(),
             nb::arg("gradients"));
  module.def("precompile", &make_ahead, nb::arg("manifest"), nb::arg("targets"),
             nb::arg("bundle").none());
}

}  // namespace tilewright::py
