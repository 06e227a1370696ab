#include "runtime/library/events.hpp"

#include <atomic>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log_file.hpp"
#include "generator/tactic/fast_paths.hpp"
#include "generator/tactic/tactic.hpp"

namespace tilewright {
namespace {

bool is_wanted(EventLevel level, const Toolchain& toolchain) {
  const LogFile& log = LogFile::of_process();
  return toolchain.events || (level == EventLevel::debug ? log.has_debug() : log.is_open());
}

void tell(EventLevel level, const std::string& text, const Toolchain& toolchain) {
  const LogFile& log = LogFile::of_process();
  const bool is_debug = level == EventLevel::debug;
  if (!is_debug || log.has_debug()) log.write(is_debug ? "debug" : "info", text);
  if (!toolchain.events) return;
  try {
    toolchain.events(level, text);
  } catch (...) {
    // The work goes on, whatever became of the event.
  }
}

std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

}  // namespace

void tell_kernel(const SpecFacts& facts, const Target& target, const KernelBuild& build,
                 const cache::Digest& key, const Toolchain& toolchain) {
  if (!is_wanted(EventLevel::info, toolchain)) return;
  tell(EventLevel::info,
       fmt::format("kernel spec={} kernel={} target={} source={} key={} render_ms={:.2f} "
                   "compile_ms={:.1f} load_ms={:.2f} bytes={} names={}",
                   in_quotes(facts.spec.name), build.kernel, target.name(), build.source, key.hex(),
                   build.render_ms, build.compile_ms, build.load_ms, build.bytes,
                   fmt::join(build.names, ",")),
       toolchain);
}

void log_miss(const SpecFacts& facts, const Target& target, std::string_view kernel,
              const cache::Digest& key) {
  const LogFile& log = LogFile::of_process();
  if (!log.is_open()) return;
  log.write("info", fmt::format("miss spec={} kernel={} target={} key={}",
                                in_quotes(facts.spec.name), kernel, target.name(), key.hex()));
}

void tell_ignored_line_info(const Toolchain& toolchain) {
  static std::atomic<bool> is_told = false;
  if (!is_wanted(EventLevel::info, toolchain) || is_told.exchange(true)) return;
  tell(EventLevel::info, "line_info ignored=\"nothing may be compiled\"", toolchain);
}

void tell_attention(const Spec& spec, const Target& target, std::string_view device,
                    const Toolchain& toolchain) {
  if (!is_wanted(EventLevel::info, toolchain)) return;
  const SpecFacts facts(spec);
  std::string used;
  const std::vector<FastPath> paths = fast_paths(facts, target);
  for (const FastPath& path : paths) {
    if (path.used) used += (used.empty() ? "" : ",") + path.name;
  }
  tell(
      EventLevel::info,
      fmt::format("attention spec={} device={} target={} tactic={} fast_paths={}",
                  in_quotes(facts.spec.name), device, target.name(),
                  in_quotes(choose_tactic(facts, target).describe()), used.empty() ? "none" : used),
      toolchain);
  if (!is_wanted(EventLevel::debug, toolchain)) return;
  for (const FastPath& path : paths) {
    if (path.used) continue;
    tell(EventLevel::debug,
         fmt::format("no_fast_path spec={} path={} why={}", in_quotes(facts.spec.name), path.name,
                     in_quotes(path.why_not)),
         toolchain);
  }
}

}  // namespace tilewright
