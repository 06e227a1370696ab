#include "tests/compile_matrix/resource_table.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "generator/tactic/tactic.hpp"
#include "tests/compile_matrix/wishes.hpp"

namespace tilewright::compile_matrix {
namespace {

using Cells = std::vector<std::string>;

// Every template for GPUs. Where one is not the chosen one, forcing it gives a row of its own.
constexpr std::array kTemplates = {"portable", "hopper"};
constexpr std::size_t kFiguresBegin = 5;
constexpr std::size_t kFiguresEnd = 9;
constexpr std::string_view kCompilerLine = "compiler\t";

const Cells kHead = {"dtype",     "head_dim", "snippets", "kernel", "target",
                     "registers", "shared",   "spill",    "cubin",  "tactic"};

constexpr std::string_view kIntroduction =
    R"(# What ptxas made of the kernels of each tactic. Registers and spilled bytes (stores plus loads) are per thread,
# shared memory (static plus dynamic) per block of threads; the cubin's size is in bytes. "snippets" names the example
# whose score_mod and mask_mod the kernel has. Every tactic that is chosen for these sizes has its rows.
# Kernels of block masks depend on the mask alone.
# scripts/kernel_resources.sh writes this file anew: say in the commit why a kernel needs more.
)";

Cells cells_of(std::string_view line) {
  Cells cells;
  for (std::size_t end = line.find('\t'); end != std::string_view::npos; end = line.find('\t')) {
    cells.emplace_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  cells.emplace_back(line);
  return cells;
}

std::string line_of(const Cells& cells) {
  return fmt::format("{}\n", fmt::join(cells, "\t"));
}

bool is_forward(const Wish& wish) {
  return wish.kernel.is_forward();
}

Cells key_of(const Wish& wish) {
  const bool has_snippets = !wish.spec.score_mod.empty() || !wish.spec.mask_mod.empty();
  const std::string snippets = has_snippets ? wish.spec.name : "none";
  if (!is_forward(wish)) {
    return {"any", "any", snippets, wish.kernel.name(), wish.target.name(), "any"};
  }
  return {std::string(to_string(wish.spec.dtype)),
          std::to_string(wish.spec.head_dim),
          snippets,
          wish.kernel.name(),
          wish.target.name(),
          tactic_of(wish).describe()};
}

Cells figures_of(const Outcome& outcome) {
  return {std::to_string(outcome.resources.registers),
          std::to_string(outcome.resources.shared_bytes),
          std::to_string(outcome.resources.spill_bytes), std::to_string(outcome.cubin_bytes)};
}

// The tactics of a spec: the chosen one and, where they exist for this target, the others.
std::vector<Spec> with_every_template(const Spec& spec, const Target& target) {
  std::vector<Spec> specs = {spec};
  std::set<std::string> seen = {choose_tactic(spec, target).describe()};
  for (const char* name : kTemplates) {
    Spec forced = spec;
    forced.tactic = TacticSpec{name, {}};
    try {
      if (seen.insert(choose_tactic(forced, target).describe()).second) specs.push_back(forced);
    } catch (const Error&) {
      continue;  // not for this target, or not for this size
    }
  }
  return specs;
}

// Unaligned tensors are rare: they have rows where a spill is a failure, and at the other end.
// Kernels of packed calls have none, nor have the decode kernels of dense ones, which are the same.
bool has_row(const Wish& wish) {
  if (wish.kernel.rows == KernelRows::decode || wish.kernel.split) return false;
  const bool is_aligned = wish.kernel.aligned;
  const std::int64_t head_dim = wish.spec.head_dim;
  return is_aligned ||
         (wish.spec.dtype == bf16 && (head_dim == 64 || head_dim == 128 || head_dim == 256));
}

std::vector<Spec> table_specs(const Spec& with_snippets) {
  std::vector<Spec> specs;
  const auto add = [&](DType dtype, std::int64_t head_dim) {
    specs.push_back({.name = "plain", .dtype = dtype, .head_dim = head_dim});
    specs.push_back(with_snippets);
    specs.back().dtype = dtype;
    specs.back().head_dim = head_dim;
    specs.back().outputs.lse = false;
  };
  for (const std::int64_t head_dim : {64, 96, 128, 192, 256}) add(bf16, head_dim);
  for (const std::int64_t head_dim : {64, 128}) add(f32, head_dim);
  for (const std::int64_t head_dim : {64, 128, 256}) {
    Spec tf32{.name = "tf32", .dtype = f32, .head_dim = head_dim};
    tf32.f32_products = F32Products::tf32;
    specs.push_back(std::move(tf32));
  }
  return specs;
}

// The tactic is the longest cell, so it comes last.
Cells joined(const Cells& key, const Cells& figures) {
  Cells cells = key;
  cells.insert(cells.begin() + kFiguresBegin, figures.begin(), figures.end());
  return cells;
}

}  // namespace

bool ResourceTable::NumbersBySize::operator()(const Cells& left, const Cells& right) const {
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                      [](const std::string& a, const std::string& b) {
                                        return strverscmp(a.c_str(), b.c_str()) < 0;
                                      });
}

std::vector<Wish> ResourceTable::wishes(const Spec& with_snippets) {
  std::vector<Wish> wishes;
  std::set<Cells> keys;
  for (const Spec& given : table_specs(with_snippets)) {
    for (const Target& target : targets()) {
      for (const Spec& spec : with_every_template(given, target)) {
        for (const KernelVariant& id : kernel_set(spec, target)) {
          const Wish wish{spec, target, id};
          if (has_row(wish) && keys.insert(key_of(wish)).second) wishes.push_back(wish);
        }
      }
    }
  }
  return wishes;
}

bool ResourceTable::is_in_sample(const Wish& wish) {
  if (!is_forward(wish)) return true;
  return wish.spec.dtype == bf16 && wish.spec.head_dim == 128 &&
         wish.kernel == KernelVariant{.masked = true};
}

ResourceTable ResourceTable::read(const std::string& path) {
  ResourceTable table;
  const std::string text = read_text_file(path);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1);
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (line.starts_with(kCompilerLine)) table.compiler_ = line.substr(kCompilerLine.size());
    Cells cells = cells_of(line);
    if (line.starts_with('#') || cells.size() != kHead.size() || cells == kHead) continue;
    const auto begin = cells.begin() + kFiguresBegin;
    const auto end_of_figures = cells.begin() + kFiguresEnd;
    const Cells figures(begin, end_of_figures);
    cells.erase(begin, end_of_figures);
    table.rows_[cells] = figures;
  }
  if (table.compiler_.empty() || table.rows_.empty()) {
    throw Error(ErrorCode::file, fmt::format("\"{}\" holds no table of kernels", path),
                "scripts/kernel_resources.sh writes it");
  }
  return table;
}

void ResourceTable::add(const Wish& wish, const Outcome& outcome) {
  compiler_ = outcome.compiler;
  rows_[key_of(wish)] = figures_of(outcome);
}

std::string ResourceTable::text() const {
  std::string text = fmt::format("{}{}{}\n", kIntroduction, kCompilerLine, compiler_);
  text += line_of(kHead);
  for (const auto& [key, figures] : rows_) text += line_of(joined(key, figures));
  return text;
}

std::vector<std::string> ResourceTable::differences(const ResourceTable& fresh,
                                                    const std::vector<Wish>& wishes) const {
  std::vector<std::string> found;
  for (const auto& [key, figures] : fresh.rows_) {
    const auto recorded = rows_.find(key);
    if (recorded == rows_.end() || recorded->second == figures) continue;
    found.push_back(fmt::format("{}: was {}, is {} (registers, shared, spill, cubin)",
                                fmt::join(key, " "), fmt::join(recorded->second, " "),
                                fmt::join(figures, " ")));
  }
  std::set<Cells> keys;
  for (const Wish& wish : wishes) keys.insert(key_of(wish));
  for (const Cells& key : keys) {
    if (!rows_.contains(key)) found.push_back(fmt::format("{}: has no row", fmt::join(key, " ")));
  }
  for (const auto& [key, figures] : rows_) {
    if (!keys.contains(key)) {
      found.push_back(fmt::format("{}: is no kernel any more", fmt::join(key, " ")));
    }
  }
  return found;
}

}  // namespace tilewright::compile_matrix
