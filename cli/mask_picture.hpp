#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/inputs.hpp"
#include "picture/mask_picture.hpp"

namespace tilewright::cli {

/// How `mask --picture` is to be drawn.
struct PictureArguments {
  std::string path;               ///< its extension decides: .svg, .png or .txt
  std::optional<std::int64_t> b;  ///< this batch alone
  std::optional<std::int64_t> h;  ///< this query head alone
  bool scores = false;            ///< with a heat map of score_mod
  double score = 1;               ///< what score_mod is given
  bool tiles = false;             ///< tiles where elements would be drawn

  void declare(CLI::App& app);

  /// Whether a drawing was asked for: a .svg or .png file, which shows what the snippets decide.
  bool is_drawing() const;

  /// @throws Error with code usage for a name without a known extension, for options that belong to
  /// a picture where there is none, and for an index that the shape does not have
  void check(const Spec& spec, const Shape& shape) const;
};

/// Draws a mask and writes the file. The snippets' interpretations are compiled where elements or
/// scores are drawn.
void write_picture(const PictureArguments& arguments, const Spec& spec, const CallInputs& inputs,
                   const BlockMask& mask);

}  // namespace tilewright::cli
