// A header of the kernels includes the headers whose names it uses, and no others. What counts as a
// name: types, constants and macros, and functions where they are called.
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "generator/render/embedded_templates.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

using Names = std::set<std::string>;

struct Header {
  std::string code;  // without comments, strings and includes
  Names includes;    // files
  Names declared;
  Names own;        // declared in it at any depth
  Names functions;  // that snippets call
};

// Whether it is included in the middle of another template.
bool is_part(std::string_view name) {
  return name == "snippet/loads_in_bounds.hpp.jinja" ||
         name == "snippet/difference_value.hpp.jinja";
}

bool ends_with_header(std::string_view name) {
  return name.ends_with(".hpp") || name.ends_with(".hpp.jinja");
}

// Chosen by a variable of the host (generator/snippet/interpretation.cpp).
const std::map<std::string, Names> kChosenByVariable = {
    {"interpretation.header",
     {"interpretations/float.hpp", "interpretations/double.hpp", "interpretations/checked.hpp"}},
    {"interpretation.buffer_header", {"snippet/buffer.hpp"}},
    {"proved.header", {"interpretations/interval.hpp"}},
    {"proved.buffer_header", {"interpretations/interval_buffer.hpp"}},
    {"proved.undecided_header", {"cpu/mask/undecided.hpp", "cuda/mask/undecided.hpp"}}};

const std::map<std::string, std::string>& texts() {
  static const auto& texts = *new std::map<std::string, std::string>([] {
    std::map<std::string, std::string> all;
    for (const EmbeddedTemplate& file : embedded_templates()) all.emplace(file.name, file.text);
    return all;
  }());
  return texts;
}

template <typename Use>
void for_each_match(const std::string& text, const std::string& pattern, Use&& use) {
  const std::regex regex(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    use(*match);
  }
}

std::string without(const std::string& text, const std::string& pattern) {
  return std::regex_replace(text, std::regex(pattern), " ");
}

std::string file_of(std::string include, const std::string& includer) {
  if (include.find('/') == std::string::npos) {
    include.insert(0, includer.substr(0, includer.rfind('/') + 1));
  }
  return texts().contains(include) ? include : include + ".jinja";
}

// Of files whose functions have the names of the device's own, as snippets call them: min, expf.
bool is_of_snippets(const std::string& file) {
  return file.starts_with("math/") || file.starts_with("interpretations/") ||
         file.find("builtins") != std::string::npos ||
         file.find("elementary") != std::string::npos ||
         file.find("special_functions") != std::string::npos;
}

bool is_plain_word(const std::string& name) {
  const auto is_upper = [&](std::size_t i) {
    return i < name.size() && name[i] >= 'A' && name[i] <= 'Z';
  };
  return !is_upper(0) && !(name[0] == 'k' && is_upper(1)) && !name.starts_with("tw_");
}

// What is included for the user's text.
bool takes_snippets(const std::string& file) {
  return file == "snippet/snippets.hpp.jinja" || file == "snippet/proved.hpp.jinja" ||
         file == "snippet/scales.hpp.jinja";
}

Names declared_in(const std::string& code) {
  Names names;
  for (
      const std::string pattern :
      {R"((?:^|\n)(?:template <[^\n]*>\n)?(?:struct|class|union|enum class|enum) (?:alignas\(\d+\) )?(\w+)\b)",
       R"((?:^|\n)using (\w+) =)", R"((?:^|\n)using [\w:]+::(\w+);)", R"((?:^|\n)#define (\w+))",
       R"((?:^|\n)(?:TW_INLINE )?constexpr [\w ]+?\b(\w+)(?: =|\(|;))",
       R"((?:^|\n)typedef [^\n]*?(\w+) __attribute__)",
       R"((?:^|\n)(?:static )?(?:__device__|__shared__|__thread) [\w ]+?\b(\w+)(?:\[|;))",
       R"((?:^|\n)(?:\[\[noreturn\]\] )?(?:TW_INLINE|TW_NOINLINE|(?:static )?__noinline__) [^\n]*?\b(\w+)\()"}) {
    for_each_match(code, pattern, [&](const auto& match) { names.insert(match[1]); });
  }
  names.erase("decltype");
  return names;
}

Header read(const std::string& name, const std::string& text) {
  Header header;
  std::string code = without(text, R"(\{#[^#]*#\})");
  for_each_match(code, R"((?:^|\n)#include "([^"]+)\")",
                 [&](const auto& match) { header.includes.insert(file_of(match[1], name)); });
  for_each_match(code, R"(\{% include ([\w.]+) %\})", [&](const auto& match) {
    for (const std::string& file : kChosenByVariable.at(match[1])) header.includes.insert(file);
  });
  code = without(code, R"(//[^\n]*)");
  code = without(code, R"(#include [^\n]*)");
  header.code = without(code, R"("(?:\\.|[^"\\\n])*")");
  header.declared = declared_in(header.code);
  header.own = header.declared;
  if (is_of_snippets(name)) std::erase_if(header.declared, is_plain_word);
  for (const std::string pattern :
       {R"((?:int|bool|float|unsigned|long|auto|typename|class|struct|using) (\w+))",
        R"([\w>&*] (\w+)(?=[,)]))", R"((\w+)\([^;{}]*\)(?: const)?(?: requires\([^\n]*\))? \{)"}) {
    for_each_match(header.code, pattern, [&](const auto& match) { header.own.insert(match[1]); });
  }
  if (is_of_snippets(name)) header.functions = header.own;
  return header;
}

// What a rendered kernel's own template says, under its banners.
std::string text_of_kernel(const KernelSource& source) {
  std::string text;
  bool is_own = false;
  for (std::size_t begin = 0; begin < source.text.size();) {
    const std::size_t end = source.text.find('\n', begin) + 1;
    const std::string line = source.text.substr(begin, end - begin);
    begin = end;
    if (line.starts_with("// ---- ")) {
      is_own =
          line.find("/kernels/") != std::string::npos || line.find("kernel/configuration") == 8;
    }
    if (is_own) text += "\n" + line;
  }
  return text;
}

// What kernel/configuration.hpp stands for: the constants and types that kernels begin with.
Names configuration() {
  Spec spec{.dtype = bf16, .head_dim = 64};
  spec.mask_mod = "q_idx >= kv_idx";
  Names names;
  for (const char* const target : {"sm_80", "sm_90a", "cpu-x86-64-v3"}) {
    for (const KernelVariant& variant : kernel_set(spec, Target::parse(target))) {
      const std::string text = text_of_kernel(
          render_kernel(spec, Target::parse(target), variant, *embedded_template_loader()));
      for_each_match(text, R"(\nconstexpr \w+ (\w+) =)",
                     [&](const auto& m) { names.insert(m[1]); });
      for_each_match(text, R"(\nusing (?:[\w:]+::)?(\w+)(?: =|;))",
                     [&](const auto& m) { names.insert(m[1]); });
    }
  }
  return names;
}

std::map<std::string, Header> headers() {
  std::map<std::string, Header> all;
  for (const auto& [name, text] : texts()) {
    if (ends_with_header(name) && !is_part(name)) {
      all.emplace(name, read(name, text));
    }
  }
  all.at("kernel/configuration.hpp.jinja").declared = configuration();
  for (const char* const key :
       {"tw_q_scale", "tw_k_scale", "tw_v_scale", "tw_out_scale", "tw_sink"}) {
    all.at("snippet/scales.hpp.jinja").declared.insert(key);
  }
  return all;
}

// A header's names; those of a header that chooses among others, any of theirs.
Names names_of(const std::map<std::string, Header>& all, const std::string& file,
               Names Header::*which) {
  Names names = all.at(file).*which;
  if (!file.starts_with("kernel/")) return names;
  for (const std::string& chosen : all.at(file).includes) {
    names.merge(names_of(all, chosen, which));
  }
  return names;
}

bool are_of_other_devices(const std::string& a, const std::string& b) {
  return (a.starts_with("cpu/") && b.starts_with("cuda/")) ||
         (a.starts_with("cuda/") && b.starts_with("cpu/"));
}

Names used_in(const std::string& code) {
  Names used;
  for_each_match(code, R"((\.|->)?\b([A-Za-z_]\w*)\b( ?[(<])?)", [&](const auto& match) {
    const std::string name = match[2];
    const bool is_member = match[1].matched;
    if (!is_member && (!is_plain_word(name) || match[3].matched)) used.insert(name);
  });
  return used;
}

}  // namespace

TEST_CASE("direct includes: a header includes what it uses") {
  const std::map<std::string, Header> all = headers();
  for (const auto& [name, header] : all) {
    if (name.starts_with("kernel/")) continue;
    Names here = header.own;
    for (const std::string& include : header.includes)
      here.merge(names_of(all, include, &Header::declared));
    for (const std::string& used : used_in(header.code)) {
      if (here.contains(used)) continue;
      for (const auto& [other, there] : all) {
        if (!there.declared.contains(used) || are_of_other_devices(name, other)) continue;
        FAIL_CHECK(name << " uses " << used << " of " << other << " and does not include it");
      }
    }
  }
}

TEST_CASE("direct includes: a header uses what it includes") {
  const std::map<std::string, Header> all = headers();
  for (const auto& [name, header] : all) {
    if (name.starts_with("kernel/") || takes_snippets(name)) continue;
    Names words;
    for_each_match(header.code, R"(\w+)", [&](const auto& match) { words.insert(match[0]); });
    for (const std::string& include : header.includes) {
      Names names = names_of(all, include, &Header::functions);
      names.merge(names_of(all, include, &Header::declared));
      const bool is_used = std::any_of(names.begin(), names.end(),
                                       [&](const auto& known) { return words.contains(known); });
      CAPTURE(name, include);
      CHECK(is_used);
    }
  }
}
