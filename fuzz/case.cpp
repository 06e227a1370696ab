#include "fuzz/case.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/file_io.hpp"
#include "base/printable_number.hpp"
#include "fuzz/expression_json.hpp"
#include "fuzz/relation.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/snippet/parse.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/json_position.hpp"
#include "generator/spec/spec_json.hpp"
#include "generator/spec/target.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::verify::fuzz {
namespace {

using Json = nlohmann::ordered_json;

// The fields of a case but the spec, the trees and the optional ones, by the groups and names that
// the JSON has. One list for the reader and the writer.
template <typename Case, typename Visit>
void visit_shape(Case& c, const Visit& visit) {
  visit("batch", c.shape.batch);
  visit("num_q_heads", c.shape.num_q_heads);
  visit("num_kv_heads", c.shape.num_kv_heads);
  visit("q_len", c.shape.q_len);
  visit("kv_len", c.shape.kv_len);
  visit("q_offset", c.shape.q_offset);
  visit("kv_offset", c.shape.kv_offset);
}

template <typename Case, typename Visit>
void visit_contents(Case& c, const Visit& visit) {
  visit("broadcast_kv", c.broadcast_kv);
  visit("one_kv_head_for_all", c.one_kv_head_for_all);
  visit("broadcast_buffers", c.broadcast_buffers);
  visit("free_dim", c.free_dim);
  visit("null_extents", c.null_extents);
  visit("scalars", c.scalars);
  visit("seed", c.seed);
  visit("q_factor", c.q_factor);
  visit("nan_in_dropped", c.nan_in_dropped);
  visit("decode", c.decode);
  visit("split", c.split);
  visit("splits", c.splits);
  visit("batch_invariant", c.batch_invariant);
  visit("dlse", c.dlse);
  visit("deterministic", c.deterministic);
  visit("relation", c.relation);
  visit("sanitized", c.sanitized);
}

template <typename Case, typename Visit>
void visit_placements(Case& c, const Visit& visit) {
  visit("q", c.q);
  visit("k", c.k);
  visit("v", c.v);
  visit("buffers", c.buffers);
  visit("out", c.out);
}

template <typename Case, typename Visit>
void visit_origin(Case& c, const Visit& visit) {
  visit("run_seed", c.run_seed);
  visit("number", c.number);
}

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::file, "the case: " + message,
              "docs/fuzzing.md says what a case holds; `tilewright fuzz` writes one that failed");
}

Json json_of(const FuzzPacking& packing) {
  Json sequences = Json::array();
  for (const FuzzSequence& s : packing.sequences) {
    Json one = {s.q_len, s.kv_len};
    if (s.q_offset != 0 || s.kv_offset != 0) one.insert(one.end(), {s.q_offset, s.kv_offset});
    sequences.push_back(std::move(one));
  }
  return {{"sequences", std::move(sequences)},      {"q_rows_before", packing.q_rows_before},
          {"q_rows_after", packing.q_rows_after},   {"kv_gap", packing.kv_gap},
          {"kv_rows", to_string(packing.kv_rows)},  {"has_q_offset", packing.has_q_offset},
          {"has_kv_offset", packing.has_kv_offset}, {"is_bounded", packing.is_bounded}};
}

Json json_of(const Placement& placement) {
  return {{"row_padding", placement.row_padding}, {"offset", placement.offset}};
}

// JSON has no NaN.
Json json_of(const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) {
    json[name] = std::isfinite(value) ? Json(value) : Json(fmt::format("{}", printable(value)));
  }
  return json;
}

template <typename T>
Json json_of(const T& value) {
  return value;
}

bool equal(const Placement& a, const Placement& b) {
  return a.row_padding == b.row_padding && a.offset == b.offset;
}

template <typename T>
bool equal(const T& a, const T& b) {
  return a == b;
}

// Writes what differs from a case of defaults.
class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) const {
    static const T kDefault = T{};
    if (always_ || !equal(value, kDefault)) json_[name] = json_of(value);
  }
  Writer(Json& json, bool always) : json_(json), always_(always) {}

 private:
  Json& json_;
  bool always_;
};

std::int64_t integer_of(const Json& json, const std::string& name) {
  if (!json.is_number_integer()) fail(name + " must be a whole number");
  return json.get<std::int64_t>();
}

void assign(const Json& json, const std::string& name, std::int64_t& value) {
  value = integer_of(json, name);
}

void assign(const Json& json, const std::string& name, std::uint64_t& value) {
  if (!json.is_number_unsigned()) fail(name + " must be a whole number from 0");
  value = json.get<std::uint64_t>();
}

void assign(const Json& json, const std::string& name, double& value) {
  if (!json.is_number()) fail(name + " must be a number");
  value = json.get<double>();
  if (json.is_number_integer() && json.dump() != fmt::format("{:.0f}", value)) {
    fail(fmt::format("{} is {}, which a double rounds", name, json.dump()));
  }
}

void assign(const Json& json, const std::string& name, bool& value) {
  if (!json.is_boolean()) fail(name + " must be true or false");
  value = json.get<bool>();
}

void assign(const Json& json, const std::string& name, std::string& value) {
  if (!json.is_string()) fail(name + " must be a text");
  value = json.get<std::string>();
}

void assign(const Json& json, const std::string& name, std::map<std::string, double>& values) {
  if (!json.is_object()) fail(name + " must be an object of numbers");
  for (const auto& [key, value] : json.items()) {
    if (value == "nan" || value == "inf" || value == "-inf") {
      values[key] = std::strtod(value.get_ref<const std::string&>().c_str(), nullptr);
    } else {
      assign(value, fmt::format("{}.{}", name, key), values[key]);
    }
  }
}

void assign(const Json& json, const std::string& name,
            std::map<std::string, std::vector<std::int64_t>>& extents) {
  if (!json.is_object()) fail(name + " must be an object of lists");
  for (const auto& [key, list] : json.items()) {
    if (!list.is_array()) fail(fmt::format("{}.{} must be a list", name, key));
    for (const Json& extent : list) extents[key].push_back(integer_of(extent, name));
  }
}

void assign(const Json& json, const std::string& name, Placement& placement) {
  if (!json.is_object()) fail(name + " must be an object");
  for (const auto& [key, value] : json.items()) {
    if (key == "row_padding") {
      placement.row_padding = integer_of(value, key);
    } else if (key == "offset") {
      placement.offset = integer_of(value, key);
    } else {
      fail(fmt::format("{} has no \"{}\", only row_padding and offset", name, key));
    }
  }
  if (placement.row_padding < 0 || placement.offset < 0) fail(name + " must not be negative");
}

// Reads the fields that are there; a key that no field has is refused.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) fail("an object is expected instead of " + json.dump());
  }

  template <typename T>
  void operator()(const char* name, T& value) const {
    known_.insert(name);
    if (const auto found = json_.find(name); found != json_.end()) assign(*found, name, value);
  }

  const Json* take(const char* name) const {
    known_.insert(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

  void refuse_the_rest() const {
    for (const auto& [key, unused] : json_.items()) {
      if (!known_.contains(key)) fail("there is no key \"" + key + '"');
    }
  }

 private:
  const Json& json_;
  mutable std::set<std::string> known_;
};

std::optional<SnippetTree> tree_of(const Reader& trees, SnippetKind kind) {
  const Json* json = trees.take(std::string(to_string(kind)).c_str());
  if (!json) return std::nullopt;
  return tree_from_json(kind, json->dump());
}

void read_trees(const Json& json, FuzzCase& fuzz_case) {
  const Reader trees(json);
  fuzz_case.score_mod = tree_of(trees, SnippetKind::score_mod);
  fuzz_case.mask_mod = tree_of(trees, SnippetKind::mask_mod);
  trees.refuse_the_rest();
  const Spec before = fuzz_case.spec;
  print_snippets(fuzz_case);
  if (!(before == fuzz_case.spec)) {
    fail("a tree does not print as the spec's snippet; take the trees out to run the text alone");
  }
}

FuzzSequence sequence_from(const Json& json) {
  const bool is_pair = json.is_array() && json.size() == 2;
  if (!is_pair && !(json.is_array() && json.size() == 4)) {
    fail("a sequence must be [q_len, kv_len] or [q_len, kv_len, q_offset, kv_offset]");
  }
  FuzzSequence sequence{.q_len = integer_of(json[0], "q_len"),
                        .kv_len = integer_of(json[1], "kv_len")};
  if (is_pair) return sequence;
  sequence.q_offset = integer_of(json[2], "q_offset");
  sequence.kv_offset = integer_of(json[3], "kv_offset");
  return sequence;
}

FuzzPacking packing_from(const Json& json) {
  const Reader reader(json);
  FuzzPacking packing;
  const Json* const sequences = reader.take("sequences");
  if (!sequences || !sequences->is_array()) fail("packing has no list of sequences");
  for (const Json& one : *sequences) packing.sequences.push_back(sequence_from(one));
  reader("q_rows_before", packing.q_rows_before);
  reader("q_rows_after", packing.q_rows_after);
  reader("kv_gap", packing.kv_gap);
  std::string kv_rows(to_string(packing.kv_rows));
  reader("kv_rows", kv_rows);
  packing.kv_rows = kv_rows_from_string(kv_rows);
  reader("has_q_offset", packing.has_q_offset);
  reader("has_kv_offset", packing.has_kv_offset);
  reader("is_bounded", packing.is_bounded);
  reader.refuse_the_rest();
  return packing;
}

// The sequences say the totals.
void read_packing(const Reader& top, FuzzCase& fuzz_case) {
  const Json* const packing = top.take("packing");
  const bool is_needed = fuzz_case.spec.is_packed() && is_run(fuzz_case);
  if (is_needed != (packing != nullptr)) {
    fail(is_needed ? "packing must say the sequences of a packed spec"
                   : "packing is for packed specs that are run");
  }
  if (!packing) return;
  fuzz_case.packing = packing_from(*packing);
  set_totals(fuzz_case.shape, fuzz_case.packing);
}

[[noreturn]] void refuse_kernel(const std::string& name, const FuzzCase& c) {
  std::vector<std::string> names;
  for (const KernelVariant& variant : kernel_set(c.spec, Target::parse(c.target))) {
    names.push_back(variant.name());
  }
  fail(fmt::format("\"{}\" is no kernel of the spec for {}, only {}", name, c.target,
                   fmt::join(names, ", ")));
}

std::optional<KernelVariant> kernel_from(const std::string& name, const FuzzCase& c) {
  if (name.empty()) return std::nullopt;
  const std::optional<KernelVariant> variant = KernelVariant::find(name);
  if (!variant) refuse_kernel(name, c);
  return variant;
}

void require_extents(const FuzzCase& c) {
  if (c.free_dim < 1) fail(fmt::format("free_dim is {}, but must be at least 1", c.free_dim));
  for (const auto& [name, extents] : c.null_extents) {
    const auto buffer = c.spec.buffers.find(name);
    if (buffer == c.spec.buffers.end()) fail(fmt::format("the spec has no buffer \"{}\"", name));
    const std::int64_t nulls = count_nulls(buffer->second);
    if (static_cast<std::int64_t>(extents.size()) != nulls) {
      fail(fmt::format("null_extents.{} has {}, but the buffer has {}", name,
                       counted(extents.size(), "extent"), counted(nulls, "null dimension")));
    }
    if (std::any_of(extents.begin(), extents.end(), [](std::int64_t n) { return n < 1; })) {
      fail(fmt::format("an extent of null_extents.{} is below 1", name));
    }
  }
}

FuzzCase read_case(const Json& json, std::string_view file_name) {
  const Reader top(json);
  FuzzCase fuzz_case;
  const Json* spec = top.take("spec");
  if (!spec) fail("it has no spec");
  fuzz_case.spec = spec_from_json(spec->dump(), fmt::format("{}: spec", file_name));
  if (const Json* target = top.take("target")) {
    if (!target->is_string()) fail("target must be a text");
    fuzz_case.target = target->get<std::string>();
  }
  if (const Json* kernel = top.take("kernel")) {
    if (!kernel->is_string()) fail("kernel must be a text");
    fuzz_case.kernel = kernel_from(kernel->get<std::string>(), fuzz_case);
  }
  if (!is_run(fuzz_case) && !fuzz_case.kernel) {
    fail("kernel must say what is compiled for " + fuzz_case.target);
  }
  if (const Json* shape = top.take("shape")) {
    const Reader reader(*shape);
    visit_shape(fuzz_case, reader);
    reader.refuse_the_rest();
  }
  read_packing(top, fuzz_case);
  visit_contents(fuzz_case, top);
  if (!fuzz_case.relation.empty()) relation_from_string(fuzz_case.relation);
  if (const Json* scale = top.take("scale")) assign(*scale, "scale", fuzz_case.scale.emplace());
  if (const Json* placement = top.take("placement")) {
    const Reader reader(*placement);
    visit_placements(fuzz_case, reader);
    reader.refuse_the_rest();
  }
  visit_origin(fuzz_case, top);
  if (const Json* trees = top.take("trees")) read_trees(*trees, fuzz_case);
  top.refuse_the_rest();
  if (is_run(fuzz_case)) validate_sizes(fuzz_case);
  require_extents(fuzz_case);
  return fuzz_case;
}

// Of what a person wrote by hand.
void check_names(const FuzzCase& c) {
  for (const auto& [name, unused] : c.scalars) {
    if (!c.spec.scalars.contains(name)) fail(fmt::format("the spec has no scalar \"{}\"", name));
  }
  if (is_run(c)) return;
  const std::vector<KernelVariant> kernels = kernel_set(c.spec, Target::parse(c.target));
  if (std::find(kernels.begin(), kernels.end(), c.kernel) != kernels.end()) return;
  refuse_kernel(c.kernel->name(), c);
}

}  // namespace

bool operator==(const FuzzCase& a, const FuzzCase& b) {
  return to_json(a) == to_json(b);
}

bool is_run(const FuzzCase& fuzz_case) {
  return !fuzz_case.kernel && (fuzz_case.target == "cpu" || fuzz_case.target == "cuda");
}

bool has_all_trees(const FuzzCase& c) {
  const auto is_understood = [&](SnippetKind kind) {
    const std::string& text = snippet_text(c.spec, kind);
    return text.empty() || snippet::opaque(snippet::parse(kind, text, c.spec)) == nullptr;
  };
  if (!c.spec.score_mod.empty() && !c.score_mod) return false;
  if (!c.spec.mask_mod.empty() && !c.mask_mod) return false;
  return std::all_of(snippet_kinds().begin(), snippet_kinds().end(), [&](SnippetKind kind) {
    return kind == SnippetKind::score_mod || kind == SnippetKind::mask_mod || is_understood(kind);
  });
}

void validate_sizes(const FuzzCase& c) {
  validate(c.shape);
  if (!c.spec.is_packed()) return;
  const auto require = [](bool holds, const char* message) {
    if (!holds) throw Error(ErrorCode::tensor, message);
  };
  const FuzzPacking& packing = c.packing;
  for (const FuzzSequence& sequence : packing.sequences) {
    require(sequence.q_len >= 0 && sequence.kv_len >= 0, "a sequence has a negative length");
  }
  require(packing.q_rows_before >= 0 && packing.q_rows_after >= 0 && packing.kv_gap >= 0,
          "a packed call has a negative number of rows of no sequence");
  Shape totals = c.shape;
  set_totals(totals, packing);
  require(totals == c.shape, "the shape and the sequences differ in size");
}

void print_snippets(FuzzCase& fuzz_case) {
  if (fuzz_case.score_mod) fuzz_case.spec.score_mod = to_text(*fuzz_case.score_mod);
  if (fuzz_case.mask_mod) fuzz_case.spec.mask_mod = to_text(*fuzz_case.mask_mod);
}

std::string to_json(const FuzzCase& fuzz_case) {
  Json json;
  json["spec"] = Json::parse(tilewright::to_json(fuzz_case.spec));
  json["target"] = fuzz_case.target;
  if (fuzz_case.kernel) json["kernel"] = fuzz_case.kernel->name();
  if (is_run(fuzz_case)) {
    visit_shape(fuzz_case, Writer(json["shape"], true));
    if (fuzz_case.spec.is_packed()) json["packing"] = json_of(fuzz_case.packing);
    visit_contents(fuzz_case, Writer(json, false));
    if (fuzz_case.scale) json["scale"] = *fuzz_case.scale;
    Json placement = Json::object();
    visit_placements(fuzz_case, Writer(placement, false));
    if (!placement.empty()) json["placement"] = placement;
  }
  visit_origin(fuzz_case, Writer(json, false));
  if (fuzz_case.score_mod)
    json["trees"]["score_mod"] = Json::parse(tree_to_json(*fuzz_case.score_mod));
  if (fuzz_case.mask_mod)
    json["trees"]["mask_mod"] = Json::parse(tree_to_json(*fuzz_case.mask_mod));
  return json.dump(2) + '\n';
}

FuzzCase case_from_json(std::string_view text, std::string_view file_name) {
  check_json_text(text, file_name);
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) fail(fmt::format("{} is no JSON", file_name));
  return read_case(json, file_name);
}

FuzzCase case_from_file(const std::filesystem::path& path) {
  FuzzCase fuzz_case = case_from_json(read_text_file(path), path.string());
  check_names(fuzz_case);
  return fuzz_case;
}

std::string describe(const FuzzCase& fuzz_case) {
  const Spec& spec = fuzz_case.spec;
  std::string text = fmt::format("{} {}", to_string(spec.dtype), spec.head_dim);
  if (is_run(fuzz_case)) {
    text += (spec.is_packed() ? ", packed, " : ", ") + fuzz_case.shape.describe();
  } else if (spec.is_packed()) {
    text += ", packed";
  }
  if (!spec.score_mod.empty()) text += ", score_mod";
  if (!spec.mask_mod.empty()) text += ", mask_mod";
  for (const SnippetKind kind : {SnippetKind::q_scale, SnippetKind::k_scale, SnippetKind::v_scale,
                                 SnippetKind::sink, SnippetKind::dropout}) {
    if (!snippet_text(spec, kind).empty()) text += fmt::format(", {}", to_string(kind));
  }
  if (!spec.gradients.empty()) {
    text += fmt::format(", gradients of {}", fmt::join(spec.gradients, ", "));
  }
  if (!fuzz_case.relation.empty()) text += ", " + fuzz_case.relation;
  if (is_run(fuzz_case)) return fmt::format("{}, on {}", text, fuzz_case.target);
  return fmt::format("{}, {} compiled for {}", text, fuzz_case.kernel->name(), fuzz_case.target);
}

}  // namespace tilewright::verify::fuzz
