#include "generator/spec/mask_combination.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "generator/snippet/snippet.hpp"

namespace tilewright {
namespace {

// How the parts of a combination stand in its text. Each part has its own lines, so that it
// keeps its columns and a comment at its end swallows nothing.
constexpr std::string_view kOpenBracket = "(\n";
constexpr std::string_view kClose = "\n)";
// `bool` is the interpretation's own truth. A body may return numbers and truths, which one type
// must hold.
constexpr std::string_view kBodyOpen = "[&]() -> bool {\n";
constexpr std::string_view kBodyClose = "\n}()";

std::string name_of(const MaskMod& mask, std::size_t position) {
  return mask.name.empty() ? fmt::format("mask {}", position + 1) : mask.name;
}

// The place's line counts from the part's own first one.
Error moved(const Error& error, const std::string& name, int lines_before) {
  SourceLocation place = *error.place();
  place.file = name;
  place.line -= lines_before;
  return Error({.code = error.code(),
                .message = error.message(),
                .place = std::move(place),
                .notes = error.notes(),
                .hint = error.hint()});
}

Snippet checked(const MaskMod& mask, const std::string& name) {
  try {
    return check_snippet(SnippetKind::mask_mod, mask.text);
  } catch (const Error& error) {
    if (!error.place()) throw;
    if (!mask.parts.empty()) throw in_its_part(error, mask);
    throw moved(error, name, 0);
  }
}

template <typename Declaration>
void declare(std::map<std::string, Declaration>& declared,
             const std::map<std::string, Declaration>& added, std::string_view what,
             const std::string& by) {
  for (const auto& [name, declaration] : added) {
    const auto [found, is_new] = declared.emplace(name, declaration);
    if (is_new || found->second == declaration) continue;
    throw Error(ErrorCode::spec,
                fmt::format("{} declares the {} \"{}\" otherwise than what it is combined with", by,
                            what, name),
                fmt::format("rename \"{}\" in one of them, or declare it alike in both", name));
  }
}

void require_one_meaning(const std::map<std::string, BufferSpec>& buffers,
                         const std::map<std::string, ScalarSpec>& scalars, const std::string& by) {
  for (const auto& [name, buffer] : buffers) {
    if (!scalars.contains(name)) continue;
    throw Error(ErrorCode::spec, fmt::format("with {}, \"{}\" is a buffer and a scalar", by, name),
                fmt::format("rename \"{}\" in one of the two", name));
  }
}

int lines_in(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

class Combination {
 public:
  Combination(std::string_view sign, bool empty_decides) : sign_(sign), stop_(empty_decides) {}

  MaskMod of(const std::vector<MaskMod>& masks) {
    for (std::size_t i = 0; i < masks.size(); ++i) {
      const std::string name = name_of(masks[i], i);
      if (masks[i].text.empty()) {
        if (stop_) return {};
        continue;
      }
      add(masks[i], name);
    }
    // One mask alone needs no brackets.
    return count_ == 1 ? only_ : std::move(result_);
  }

 private:
  void add(const MaskMod& mask, const std::string& name) {
    const Snippet snippet = checked(mask, name);
    declare(result_.buffers, mask.buffers, "buffer", name);
    declare(result_.scalars, mask.scalars, "scalar", name);
    require_one_meaning(result_.buffers, result_.scalars, name);
    if (count_++ > 0) result_.text += fmt::format(" {} ", sign_);
    only_ = mask;
    result_.text += kOpenBracket;
    if (!snippet.is_expression) result_.text += kBodyOpen;
    note_parts(mask, name);
    result_.text += mask.text;
    if (!snippet.is_expression) result_.text += kBodyClose;
    result_.text += kClose;
  }

  void note_parts(const MaskMod& mask, const std::string& name) {
    const int lines_before = lines_in(result_.text);
    if (mask.parts.empty()) {
      result_.parts.push_back({name, mask.text, lines_before + 1});
      return;
    }
    for (MaskMod::Part part : mask.parts) {
      part.first_line += lines_before;
      result_.parts.push_back(std::move(part));
    }
  }

  std::string_view sign_;
  bool stop_;  // a mask that keeps everything decides the result
  MaskMod result_;
  MaskMod only_;
  int count_ = 0;
};

MaskMod combined(std::string_view function, std::string_view sign, bool empty_decides,
                 const std::vector<MaskMod>& masks) {
  if (masks.empty()) {
    throw Error(ErrorCode::usage, fmt::format("{} of no masks", function),
                "give it at least one mask");
  }
  return Combination(sign, empty_decides).of(masks);
}

std::vector<std::string> names_in_score_mod(const Spec& spec) {
  if (spec.score_mod.empty()) return {};
  return check_snippet(SnippetKind::score_mod, spec.score_mod).names;
}

}  // namespace

MaskMod mask_and(const std::vector<MaskMod>& masks) {
  return combined("mask_and", "&&", false, masks);
}

MaskMod mask_or(const std::vector<MaskMod>& masks) {
  return combined("mask_or", "||", true, masks);
}

MaskMod mask_of(const Spec& spec) {
  MaskMod mask = {.text = spec.mask_mod, .name = spec.name};
  if (spec.mask_mod.empty()) return mask;
  const Snippet snippet = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  for (const auto& [name, buffer] : spec.buffers) {
    if (snippet.mentions(name)) mask.buffers.emplace(name, buffer);
  }
  for (const auto& [name, scalar] : spec.scalars) {
    if (snippet.mentions(name)) mask.scalars.emplace(name, scalar);
  }
  return mask;
}

Spec with_mask(Spec spec, const MaskMod& mask) {
  const MaskMod old = mask_of(spec);
  const auto still_read = [score = names_in_score_mod(spec)](const std::string& name) {
    return std::binary_search(score.begin(), score.end(), name);
  };
  for (const auto& [name, buffer] : old.buffers) {
    if (!still_read(name)) spec.buffers.erase(name);
  }
  for (const auto& [name, scalar] : old.scalars) {
    if (!still_read(name)) spec.scalars.erase(name);
  }
  const std::string by = mask.name.empty() ? "the mask" : mask.name;
  declare(spec.buffers, mask.buffers, "buffer", by);
  declare(spec.scalars, mask.scalars, "scalar", by);
  require_one_meaning(spec.buffers, spec.scalars, by);
  spec.mask_mod = mask.text;
  return spec;
}

Error in_its_part(const Error& error, const MaskMod& mask) {
  const std::optional<SourceLocation>& place = error.place();
  if (!place || place->file != to_string(SnippetKind::mask_mod)) return error;
  for (const MaskMod::Part& part : mask.parts) {
    const int last_line = part.first_line + lines_in(part.text);
    if (place->line < part.first_line || place->line > last_line) continue;
    return moved(error, part.name, part.first_line - 1);
  }
  return error;
}

}  // namespace tilewright
