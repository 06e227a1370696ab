#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "generator/snippet/parse.hpp"
#include "generator/snippet/print.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_root.hpp"

// Which constants a kernel is compiled with does not hang on how a snippet is spelled.
namespace {

using namespace tilewright;

// Every `constexpr` line of a rendered kernel, the types of its indices, and whether it asks if
// reads stay inside their buffers.
std::vector<std::string> constants_of(const KernelSource& source) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < source.text.size();) {
    const std::size_t end = source.text.find('\n', begin);
    std::string line = source.text.substr(begin, end - begin);
    const bool is_constant = line.starts_with("constexpr ") || line.starts_with("using tw_") ||
                             line.starts_with("struct tw_RowIndex") ||
                             line.find("bool tw_inside = ") != std::string::npos;
    if (is_constant) lines.push_back(std::move(line));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> constants_of(const Spec& spec) {
  static const auto templates = default_template_loader();
  std::vector<std::string> all;
  for (const char* target : {"sm_80", "sm_90a"}) {
    for (const char* kernel : {"forward", "forward_masked"}) {
      const std::vector<std::string> lines = constants_of(
          render_kernel(spec, Target::parse(target), KernelVariant::parse(kernel), *templates));
      all.insert(all.end(), lines.begin(), lines.end());
    }
  }
  return all;
}

bool holds(const std::vector<std::string>& constants, const std::string& part) {
  return std::any_of(constants.begin(), constants.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

struct Spellings {
  const char* name;
  const char* fast_path;  // a constant of it
  std::vector<const char*> texts;
};

Spec spec_of(const Spellings& spellings, const char* text) {
  Spec spec{.dtype = DType::bf16, .head_dim = 64};
  spec.buffers["slopes"] = {.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
  spec.buffers["bias"] = {.dtype = DType::f32, .shape = {NamedDim::num_q_heads, FreeDim{}}};
  spec.scalars["cap"] = {.dtype = DType::f32, .default_value = 50.0};
  spec.scalars["window"] = {.dtype = DType::i32};
  (std::string(spellings.name) == "window" ? spec.mask_mod : spec.score_mod) = text;
  return spec;
}

TEST_CASE("snippet spellings: eight of each fast path give equal constants") {
  const std::vector<Spellings> all = {
      {"ALiBi",
       "kSlopeSign = 1;",
       {"score + slopes[h] * (kv_idx - q_idx)", "(score + (slopes[h] * (kv_idx - q_idx)))",
        "slopes[h] * (kv_idx - q_idx) + score", "score + (kv_idx - q_idx) * slopes[h]",
        "score - slopes[h] * (q_idx - kv_idx)", "score + slopes[(int)h] * (float)(kv_idx - q_idx)",
        "int d = kv_idx - q_idx; return score + slopes[h] * d;",
        "const float slope = slopes(h), d = -q_idx + kv_idx; float x = score; x += slope * d; "
        "return x;"}},
      {"softcap of a literal",
       "kHasFixedMax = true",
       {"50.0f * tanh(score / 50.0f)", "50 * tanh(score / 50)", "(50.0 * (tanh((score / 50.0))))",
        "tanh(score / 50) * 50", "const float cap50 = 50; return cap50 * tanhf(score / cap50);",
        "float x = score / float(50); return 50 * tanh(x);",
        "const float s = score, t = tanh(s / 50.); return 5e1 * t;",
        "float x = score; x /= 50; x = tanh(x); x *= 50; return x;"}},
      {"softcap of a scalar",
       "kHasFixedMax = true",
       {"cap * tanh(score / cap)", "(cap * (tanh((score / cap))))", "tanh(score / cap) * cap",
        "cap * tanhf(float(score) / float(cap))",
        "const float c = cap; return c * tanh(score / c);",
        "float x = score / cap; x = tanh(x); return x * cap;",
        "const auto t = tanh(score / cap); return cap * t;",
        "float x = score; x /= (cap); x = tanh(x); x *= cap; return (x);"}},
      {"relative bias",
       "struct tw_RowIndex",
       {"score + bias(h, kv_idx - q_idx + 100)", "bias(h, kv_idx - q_idx + 100) + score",
        "(score + (bias((h), ((kv_idx - q_idx) + 100))))",
        "score + bias(h, 100 + (kv_idx - q_idx))",
        "score + bias(int(h), (int)(kv_idx - q_idx) + 100)",
        "const int d = kv_idx - q_idx + 100; return score + bias(h, d);",
        "int d = kv_idx - q_idx; d += 100; return score + bias(h, d);",
        "float x = score; x += bias(h, -q_idx + kv_idx + 100); return x;"}},
      {"window",
       "kHasMaskMod = true",
       {"q_idx >= kv_idx && q_idx - kv_idx < window",
        "(q_idx >= kv_idx) && (q_idx - kv_idx < window)",
        "q_idx >= kv_idx and q_idx - kv_idx < window", "kv_idx <= q_idx && window > q_idx - kv_idx",
        "int d = q_idx - kv_idx; return d >= 0 && d < window;",
        "const int d = q_idx - kv_idx; const bool past = d >= 0; return past && (d < window);",
        "return bool(q_idx >= kv_idx && (int)(q_idx - kv_idx) < int(window));",
        "bool keep = q_idx >= kv_idx; keep = keep && q_idx - kv_idx < window; return keep;"}}};
  for (const Spellings& spellings : all) {
    REQUIRE(spellings.texts.size() == 8);
    const std::vector<std::string> expected = constants_of(spec_of(spellings, spellings.texts[0]));
    INFO(spellings.name);
    CHECK(holds(expected, spellings.fast_path));
    for (const char* text : spellings.texts) {
      INFO(text);
      CHECK(constants_of(spec_of(spellings, text)) == expected);
    }
  }
}

TEST_CASE("snippet spellings: temporaries, assignments and sums in any order") {
  const std::vector<Spellings> all = {
      {"ALiBi",
       "kSlopeSign = 1;",
       {"score + slopes[h] * (kv_idx - q_idx)",
        "score += slopes[h] * (kv_idx - q_idx); return score;",
        "score + slopes[h] * (float(kv_idx) - float(q_idx))",
        "auto d = kv_idx - q_idx; return score + slopes[h] * d;",
        "float x = score; { float d = kv_idx - q_idx; x += slopes[h] * d; } return x;",
        "long d = kv_idx - q_idx; return score + slopes[h] * d;",
        "float b2; b2 = slopes[h]; b2 *= kv_idx - q_idx; return +score + b2;",
        "double s{score}; score = 0; return s + slopes[h] * -(q_idx - kv_idx);"}},
      {"softcap of a literal",
       "kHasFixedMax = true",
       {"50 * tanh(score / 50)", "score /= 50; return 50 * tanh(score);",
        "25 * 2 * tanh(score / 50)", "{ float x = score / 50; return 50 * tanh(x); }"}},
      {"softcap of a scalar",
       "kHasFixedMax = true",
       {"cap * tanh(score / cap)", "score /= cap; score = tanh(score); return score * cap;",
        "const float inverse = 1 / cap; return tanh(inverse * score) / inverse;"}},
      {"relative bias",
       "struct tw_RowIndex",
       {"score + bias(h, kv_idx - q_idx + 100)", "score + bias(h, kv_idx + 100 - q_idx)",
        "score + bias(h, 100 + kv_idx - q_idx)", "score + bias(h, 100 - q_idx + kv_idx)",
        "int i = kv_idx; i += 100; i -= q_idx; return score + bias(h, i);",
        "score += bias(h, -(q_idx - 100) + kv_idx); return score;"}},
      {"window",
       "kHasMaskMod = true",
       {"q_idx >= kv_idx && q_idx - kv_idx < window",
        "q_idx < kv_idx ? false : q_idx - kv_idx < window",
        "auto d = q_idx - kv_idx; return d >= 0 && d < window;",
        "if (q_idx < kv_idx) return false; return q_idx - kv_idx < window;"}}};
  for (const Spellings& spellings : all) {
    const std::vector<std::string> expected = constants_of(spec_of(spellings, spellings.texts[0]));
    CHECK(holds(expected, spellings.fast_path));
    for (const char* text : spellings.texts) {
      INFO(text);
      CHECK(constants_of(spec_of(spellings, text)) == expected);
    }
  }
}

void wrap(snippet::Expression& node, int& locals, std::vector<snippet::Statement>& before) {
  for (snippet::Expression& operand : node.operands) wrap(operand, locals, before);
  const bool is_value = node.type == snippet::Type::integer || node.type == snippet::Type::floating;
  if (!is_value || node.op == snippet::Op::integer_literal) return;
  // A cast to its own type, and a local of it.
  node = snippet::apply(
      node.type == snippet::Type::integer ? snippet::Op::to_integer : snippet::Op::to_floating,
      {node});
  const std::string name = "extra" + std::to_string(locals++);
  before.push_back({.kind = snippet::Statement::Kind::declare, .name = name, .value = node});
  node = snippet::variable(name, node.type);
}

// A snippet with a cast and a local for every value of its result.
std::string roundabout(SnippetKind kind, const std::string& text, const Spec& spec) {
  snippet::SnippetTree tree = snippet::parse(kind, text, spec);
  if (tree.statements.empty() || opaque(tree) != nullptr) return text;
  snippet::Statement& last = tree.statements.back();
  std::vector<snippet::Statement> before;
  int locals = 0;
  snippet::Expression value = last.value;
  wrap(value, locals, before);
  before.push_back({.kind = snippet::Statement::Kind::result, .value = value});
  tree.statements.pop_back();
  tree.statements.insert(tree.statements.end(), before.begin(), before.end());
  return to_text(tree);
}

TEST_CASE("snippet spellings: brackets, casts and locals change no example's constants") {
  int examples = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(source_root(TILEWRIGHT_SOURCE_DIR) / "examples")) {
    if (file.path().extension() != ".json") continue;
    ++examples;
    const Spec spec = spec_from_file(file.path());
    Spec other = spec;
    other.score_mod = roundabout(SnippetKind::score_mod, spec.score_mod, spec);
    other.mask_mod = roundabout(SnippetKind::mask_mod, spec.mask_mod, spec);
    INFO(file.path() << '\n' << other.score_mod << '\n' << other.mask_mod);
    CHECK(constants_of(other) == constants_of(spec));
    Spec bracketed = spec;
    for (std::string* text : {&bracketed.score_mod, &bracketed.mask_mod}) {
      const bool is_expression = text->find(';') == std::string::npos;
      if (!text->empty() && is_expression) *text = "((" + *text + "))";
    }
    CHECK(constants_of(bracketed) == constants_of(spec));
  }
  CHECK(examples >= 20);
}

TEST_CASE("snippet facts: a render tokenises each snippet once") {
  Spec spec =
      spec_from_file(source_root(TILEWRIGHT_SOURCE_DIR) / "examples" / "alibi_documents.json");
  const auto templates = default_template_loader();
  for (const char* target : {"cpu-x86-64-v3", "sm_80", "sm_90a"}) {
    const std::uint64_t before = tokenizations();
    render_kernel(spec, Target::parse(target), KernelVariant::parse("forward_masked_lse"),
                  *templates);
    CHECK(tokenizations() - before == 2);
    const SpecFacts facts(spec);
    const std::uint64_t known = tokenizations();
    render_kernel(facts, Target::parse(target), KernelVariant::parse("forward_masked_lse"),
                  *templates);
    render_kernel(facts, Target::parse(target), KernelVariant::parse("mask_proved"), *templates);
    CHECK(tokenizations() == known);
  }
}

}  // namespace
