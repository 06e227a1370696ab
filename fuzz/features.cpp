#include "fuzz/features.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "generator/snippet/snippet.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/spec/target.hpp"

namespace tilewright::verify::fuzz {
namespace {

const std::array<FactorNames, kFactors>& all_names() {
  static const std::array<FactorNames, kFactors> names = {{
      {"dtype", {"f32", "f16", "bf16", "f8e4m3"}},
      {"mixed", {"no", "kv_dtype", "out_dtype", "one_byte"}},
      {"head_dim", {"64", "16", "128", "odd", "even", "large", "padded"}},
      {"v_head_dim", {"equal", "smaller", "greater"}},
      {"layout", {"bhsd", "bshd", "packed"}},
      {"kv_layout", {"same", "other"}},
      {"outputs", {"out", "lse", "max_scores", "weights"}},
      {"block", {"128x128", "small", "large", "uneven"}},
      {"tactic", {"chosen", "cpu", "portable", "hopper"}},
      {"math", {"default", "precise", "fast"}},
      {"products", {"ieee", "tf32"}},
      {"score_mod", {"none", "expression", "body"}},
      {"mask_mod", {"none", "expression", "body"}},
      {"mask_scope", {"none", "shared", "batch", "head"}},
      {"buffer", {"none", "f32", "16-bit", "i32", "i64", "byte", "short", "f64"}},
      {"rank", {"none", "1", "2", "3", "4", "0", "5"}},
      {"bounds", {"none", "clamped", "trusted"}},
      {"scalar", {"none", "f32", "i32"}},
      {"functions", {"none", "min-max", "transcendental", "root-floor"}},
      {"choice", {"none", "select", "conditional", "branch"}},
      {"local", {"none", "variable", "assigned", "lambda"}},
      {"integers", {"none", "sum", "quotient", "bits"}},
      {"tokens", {"none", "q_token", "kv_token"}},
      {"gradients", {"none", "tensors", "named"}},
      {"dropout", {"none", "scalar", "buffer"}},
      {"batch", {"1", "more", "many"}},
      {"heads", {"1", "equal", "groups", "one-kv"}},
      {"q_len", {"1", "short", "edge", "odd", "long"}},
      {"kv_len", {"1", "short", "edge", "odd", "long"}},
      {"offsets", {"none", "forward", "backward"}},
      {"kv_sharing", {"none", "batch", "heads"}},
      {"buffer_sharing", {"no", "yes"}},
      {"placement", {"dense", "padded", "unaligned"}},
      {"scale", {"default", "given", "not-positive"}},
      {"contents", {"normal", "large", "nan"}},
      {"sequences",
       {"of a dense call", "filled", "without rows", "without columns", "more rows", "padding"}},
      {"kv_rows", {"of a dense call", "together", "gaps", "backward", "shared"}},
      {"target", {"sm_80", "sm_8x", "sm_90a", "sm_10x", "sm_12x", "cpu"}},
      {"kernel",
       {"forward", "masked", "unaligned", "mask_exact", "mask_proved", "mask_lists", "plan_exact",
        "plan_proved"}},
  }};
  return names;
}

// Sets bits by a value's name, so that the table above is the only place that numbers them.
class Marker {
 public:
  explicit Marker(Features& features) : features_(features) {}

  void operator()(Factor factor, std::string_view value) const {
    const auto& values = names_of(factor).values;
    const auto found = std::find(values.begin(), values.end(), value);
    bits(features_, factor) |= static_cast<std::uint16_t>(1u << (found - values.begin()));
  }

  // The first value where none was set.
  void default_to_first(Factor factor) const {
    if (bits(features_, factor) == 0) bits(features_, factor) = 1;
  }

 private:
  Features& features_;
};

std::string_view head_dim_class(std::int64_t dim) {
  if (dim == 16) return "16";
  if (dim == 64) return "64";
  if (dim == 128) return "128";
  if (dim < 16 || dim % 8 != 0) return "padded";
  if (dim > 128) return "large";
  return dim % 16 != 0 ? "odd" : "even";
}

std::string_view block_class(const std::array<std::int64_t, 2>& block) {
  const auto [q, kv] = block;
  if (q == 128 && kv == 128) return "128x128";
  if (q <= 48 && kv <= 48) return "small";
  return q >= 192 && kv >= 192 ? "large" : "uneven";
}

std::string_view length_class(std::int64_t length) {
  if (length == 1) return "1";
  if (length < 16) return "short";
  if (length % 16 <= 1 || length % 16 == 15) return length > 256 ? "long" : "edge";
  return length > 256 ? "long" : "odd";
}

void mark_spec(const Spec& spec, const Marker& mark) {
  mark(Factor::dtype, to_string(spec.dtype));
  if (spec.key_value_dtype() != spec.dtype) {
    mark(Factor::mixed, is_quantised(spec.key_value_dtype()) ? "one_byte" : "kv_dtype");
  }
  if (spec.output_dtype() != spec.dtype) mark(Factor::mixed, "out_dtype");
  mark.default_to_first(Factor::mixed);
  mark(Factor::head_dim, head_dim_class(spec.head_dim));
  const std::int64_t v = spec.value_head_dim();
  mark(Factor::v_head_dim, v == spec.head_dim  ? "equal"
                           : v < spec.head_dim ? "smaller"
                                               : "greater");
  mark(Factor::layout, to_string(spec.layout));
  mark(Factor::kv_layout, spec.key_value_layout() == spec.layout ? "same" : "other");
  mark(Factor::outputs, spec.outputs.weights      ? "weights"
                        : spec.outputs.max_scores ? "max_scores"
                        : spec.outputs.lse        ? "lse"
                                                  : "out");
  mark(Factor::block, block_class(spec.block));
  mark(Factor::tactic, spec.tactic ? std::string_view(spec.tactic->name) : "chosen");
  mark(Factor::gradients, spec.gradients.empty()         ? "none"
                          : gradient_names(spec).empty() ? "tensors"
                                                         : "named");
  mark(Factor::dropout, !spec.has_dropout()      ? "none"
                        : spec.has_seed_buffer() ? "buffer"
                                                 : "scalar");
  mark(Factor::products, to_string(spec.f32_products));
  mark(Factor::math, !spec.precise_math ? "default" : *spec.precise_math ? "precise" : "fast");
}

void mark_buffers(const Spec& spec, const Marker& mark) {
  for (const auto& [name, buffer] : spec.buffers) {
    if (spec.has_seed_buffer() && name == "seed") continue;  // dropout says it
    switch (buffer.dtype) {
      case DType::f32:
        mark(Factor::buffer, "f32");
        break;
      case DType::f16:
      case DType::bf16:
        mark(Factor::buffer, "16-bit");
        break;
      case DType::i32:
        mark(Factor::buffer, "i32");
        break;
      case DType::i64:
      case DType::u32:
        mark(Factor::buffer, "i64");
        break;
      case DType::i16:
      case DType::u16:
        mark(Factor::buffer, "short");
        break;
      case DType::f64:
        mark(Factor::buffer, "f64");
        break;
      case DType::u8:
      case DType::boolean:
      case DType::f8e4m3:
      case DType::f8e5m2:
      case DType::i8:
        mark(Factor::buffer, "byte");
        break;
    }
    mark(Factor::rank, fmt::format("{}", buffer.shape.size()));
    mark(Factor::bounds, buffer.bounds == Bounds::trusted ? "trusted" : "clamped");
  }
  for (const Factor factor : {Factor::buffer, Factor::rank, Factor::bounds}) {
    mark.default_to_first(factor);
  }
  for (const auto& [name, scalar] : spec.scalars) {
    if (scalar.dtype == DType::i64) continue;  // dropout says it
    mark(Factor::scalar, scalar.dtype == DType::f32 ? "f32" : "i32");
  }
  mark.default_to_first(Factor::scalar);
}

bool is_integer(const Expression& expression) {
  return std::all_of(expression.operands.begin(), expression.operands.end(),
                     [](const Expression& operand) { return operand.type == Type::integer; });
}

void mark_operation(const Expression& expression, const Marker& mark) {
  switch (expression.op) {
    case Op::add:
    case Op::subtract:
    case Op::multiply:
      if (is_integer(expression)) mark(Factor::integers, "sum");
      break;
    case Op::divide:
    case Op::remainder:
    case Op::floor_quotient:
    case Op::floor_remainder:
      if (is_integer(expression)) mark(Factor::integers, "quotient");
      break;
    case Op::shift_left:
    case Op::shift_right:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      mark(Factor::integers, "bits");
      break;
    case Op::minimum:
    case Op::maximum:
    case Op::absolute:
    case Op::sign:
    case Op::clamp:
      mark(Factor::functions, "min-max");
      break;
    case Op::sqrt:
    case Op::rsqrt:
    case Op::floor:
    case Op::ceil:
      mark(Factor::functions, "root-floor");
      break;
    case Op::select:
      mark(Factor::choice, "select");
      break;
    case Op::conditional:
      mark(Factor::choice, "conditional");
      break;
    default:
      if (expression.op >= Op::tanh && expression.op <= Op::cos) {
        mark(Factor::functions, "transcendental");
      }
  }
}

void mark_statement(const Statement& statement, const Marker& mark) {
  switch (statement.kind) {
    case Statement::Kind::declare:
      return mark(Factor::local, "variable");
    case Statement::Kind::assign:
      return mark(Factor::local, "assigned");
    case Statement::Kind::lambda:
      return mark(Factor::local, "lambda");
    case Statement::Kind::branch:
      return mark(Factor::choice, "branch");
    case Statement::Kind::loop:
      return mark(Factor::choice, "loop");
    case Statement::Kind::result:
    case Statement::Kind::leave:
    case Statement::Kind::opaque:
      return;
  }
}

void mark_statements(const std::vector<Statement>& statements, const Marker& mark) {
  for_each_statement(statements, [&](const Statement& one) { mark_statement(one, mark); });
  for_each_node(statements, [&](const Expression& node) { mark_operation(node, mark); });
}

struct Word {
  Factor factor;
  std::string_view value;
  std::vector<std::string_view> words;
};

// What a user's text shows, as far as single words tell.
const std::vector<Word>& words() {
  static const std::vector<Word> table = {
      {Factor::functions, "min-max", {"min", "max", "abs", "fabs", "fmin", "fmax", "clamp"}},
      {Factor::functions,
       "transcendental",
       {"tanh", "exp", "exp2", "log", "log2", "sin", "cos", "tan", "pow", "tanhf", "expf", "erf",
        "erfc", "log1p", "expm1"}},
      {Factor::functions, "root-floor", {"sqrt", "rsqrt", "floor", "ceil", "sqrtf", "rsqrtf"}},
      {Factor::choice, "select", {"select"}},
      {Factor::choice, "conditional", {"?"}},
      {Factor::choice, "branch", {"if", "switch"}},
      {Factor::local, "variable", {"int", "float", "bool", "double"}},
      {Factor::local, "lambda", {"auto"}},
      {Factor::integers, "sum", {"+", "-", "*"}},
      {Factor::integers, "quotient", {"/", "%", "floor_div", "floor_mod"}},
      {Factor::integers, "bits", {"<<", ">>", "&", "|", "^"}},
  };
  return table;
}

void mark_text(std::string_view text, SnippetKind kind, const Marker& mark) {
  for (const SnippetToken& token : tokenize(text, kind)) {
    for (const Word& word : words()) {
      if (std::find(word.words.begin(), word.words.end(), token.text) != word.words.end()) {
        mark(word.factor, word.value);
      }
    }
  }
}

void mark_snippet(const std::string& text, const std::optional<SnippetTree>& tree, SnippetKind kind,
                  Factor factor, const Marker& mark) {
  if (text.empty()) return mark(factor, "none");
  mark(factor, check_snippet(kind, text).is_expression ? "expression" : "body");
  if (tree) {
    mark_statements(tree->statements, mark);
  } else {
    mark_text(text, kind, mark);
  }
}

void mark_tokens(const Spec& spec, const Marker& mark) {
  for (const std::string_view name : {"q_token", "kv_token"}) {
    const bool is_mentioned =
        (!spec.score_mod.empty() &&
         check_snippet(SnippetKind::score_mod, spec.score_mod).mentions(name)) ||
        (!spec.mask_mod.empty() &&
         check_snippet(SnippetKind::mask_mod, spec.mask_mod).mentions(name));
    if (is_mentioned) mark(Factor::tokens, name);
  }
  mark.default_to_first(Factor::tokens);
}

void mark_snippets(const FuzzCase& fuzz_case, const Marker& mark) {
  const Spec& spec = fuzz_case.spec;
  mark_snippet(spec.score_mod, fuzz_case.score_mod, SnippetKind::score_mod, Factor::score_mod,
               mark);
  mark_snippet(spec.mask_mod, fuzz_case.mask_mod, SnippetKind::mask_mod, Factor::mask_mod, mark);
  for (const Factor factor : {Factor::functions, Factor::choice, Factor::local, Factor::integers}) {
    mark.default_to_first(factor);
  }
  mark_tokens(spec, mark);
  if (spec.mask_mod.empty()) return mark(Factor::mask_scope, "none");
  const Snippet mask = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  const bool per_head = mask.mentions("h") || mask.mentions("h_kv");
  if (mask.mentions("b")) mark(Factor::mask_scope, "batch");
  if (per_head) mark(Factor::mask_scope, "head");
  if (!per_head && !mask.mentions("b")) mark(Factor::mask_scope, "shared");
}

std::string_view placement_class(const FuzzCase& c) {
  bool padded = false;
  const std::int64_t bytes = static_cast<std::int64_t>(size_of(c.spec.dtype));
  for (const Placement* placement : {&c.q, &c.k, &c.v, &c.out}) {
    if (placement->row_padding * bytes % 16 != 0 || placement->offset * bytes % 16 != 0) {
      return "unaligned";
    }
    padded = padded || placement->row_padding != 0 || placement->offset != 0;
  }
  return padded ? "padded" : "dense";
}

void mark_offsets(std::int64_t q_offset, std::int64_t kv_offset, const Marker& mark) {
  if (q_offset > 0 || kv_offset > 0) mark(Factor::offsets, "forward");
  if (q_offset < 0 || kv_offset < 0) mark(Factor::offsets, "backward");
}

std::string_view kind_of(const FuzzSequence& sequence) {
  if (sequence.q_len == 0 && sequence.kv_len == 0) return "padding";
  if (sequence.q_len == 0) return "without rows";
  if (sequence.kv_len == 0) return "without columns";
  return sequence.q_len > sequence.kv_len ? "more rows" : "filled";
}

void mark_sequences(const FuzzPacking& packing, const Marker& mark) {
  for (const FuzzSequence& sequence : packing.sequences) {
    mark(Factor::sequences, kind_of(sequence));
    if (sequence.q_len > 0) mark(Factor::q_len, length_class(sequence.q_len));
    if (sequence.kv_len > 0) mark(Factor::kv_len, length_class(sequence.kv_len));
    mark_offsets(packing.has_q_offset ? sequence.q_offset : 0,
                 packing.has_kv_offset ? sequence.kv_offset : 0, mark);
  }
  mark(Factor::kv_rows, to_string(packing.kv_rows));
}

void mark_call(const FuzzCase& c, const Marker& mark) {
  const Shape& shape = c.shape;
  mark(Factor::batch, shape.batch == 1 ? "1" : shape.batch <= 3 ? "more" : "many");
  mark(Factor::heads, shape.num_q_heads == 1                    ? "1"
                      : shape.num_q_heads == shape.num_kv_heads ? "equal"
                      : shape.num_kv_heads == 1                 ? "one-kv"
                                                                : "groups");
  if (c.spec.is_packed()) {
    mark_sequences(c.packing, mark);
  } else {
    mark(Factor::q_len, length_class(shape.q_len));
    mark(Factor::kv_len, length_class(shape.kv_len));
    mark_offsets(shape.q_offset, shape.kv_offset, mark);
    mark(Factor::sequences, "of a dense call");
    mark(Factor::kv_rows, "of a dense call");
  }
  mark.default_to_first(Factor::offsets);
  if (c.broadcast_kv && shape.batch > 1) mark(Factor::kv_sharing, "batch");
  if (c.one_kv_head_for_all && shape.num_kv_heads > 1) mark(Factor::kv_sharing, "heads");
  mark.default_to_first(Factor::kv_sharing);
  mark(Factor::buffer_sharing, c.broadcast_buffers && !c.spec.buffers.empty() ? "yes" : "no");
  mark(Factor::placement, placement_class(c));
  mark(Factor::scale, !c.scale ? "default" : *c.scale > 0 ? "given" : "not-positive");
  if (c.q_factor > 1) mark(Factor::contents, "large");
  if (c.nan_in_dropped) mark(Factor::contents, "nan");
  mark.default_to_first(Factor::contents);
}

std::string_view target_class(const std::string& name) {
  const Target target = Target::parse(name);
  if (target.is_cpu()) return "cpu";
  if (name == "sm_80" || name == "sm_90a") return name == "sm_80" ? "sm_80" : "sm_90a";
  if (target.sm() < 100) return "sm_8x";
  return target.sm() < 120 ? "sm_10x" : "sm_12x";
}

void mark_compile(const FuzzCase& c, const Marker& mark) {
  mark(Factor::target, target_class(c.target));
  const KernelVariant& kernel = *c.kernel;
  if (!kernel.is_forward()) return mark(Factor::kernel, kernel.name());
  if (kernel.rows != KernelRows::all) {
    return mark(Factor::kernel, kernel.aligned ? "forward" : "unaligned");
  }
  mark(Factor::kernel, !kernel.aligned ? "unaligned" : kernel.masked ? "masked" : "forward");
}

}  // namespace

const FactorNames& names_of(Factor factor) {
  return all_names()[static_cast<std::size_t>(factor)];
}

Features features_of(const FuzzCase& fuzz_case) {
  Features features = {};
  const Marker mark(features);
  mark_spec(fuzz_case.spec, mark);
  mark_buffers(fuzz_case.spec, mark);
  mark_snippets(fuzz_case, mark);
  if (is_run(fuzz_case)) {
    mark_call(fuzz_case, mark);
  } else {
    mark_compile(fuzz_case, mark);
  }
  return features;
}

std::string describe(const Features& features) {
  std::vector<std::string> parts;
  for (std::size_t f = 0; f < kFactors; ++f) {
    const FactorNames& names = names_of(static_cast<Factor>(f));
    for (std::size_t value = 1; value < names.values.size(); ++value) {
      if ((features[f] >> value & 1) == 0) continue;
      parts.push_back(fmt::format("{}={}", names.name, names.values[value]));
    }
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace tilewright::verify::fuzz
