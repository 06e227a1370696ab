#include "cli/mask_picture.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/numbers.hpp"
#include "generator/snippet/snippet.hpp"
#include "picture/text.hpp"
#include "verify/snippet_evaluator.hpp"

namespace tilewright::cli {
namespace {

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (extension.empty() && !path.empty() && is_stream(path)) return ".txt";
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

// The snippets, evaluated at every element that is drawn.
class Elements {
 public:
  Elements(const Spec& spec, const CallInputs& inputs, double score)
      : interpretation_(spec, command_line_toolchain()),
        values_(spec, inputs.problem().snippet, inputs.shape()),
        arguments_(values_.arguments()),
        scores_(static_cast<std::size_t>(inputs.shape().kv_len), static_cast<float>(score)) {}

  void read(picture::ListIndex list, std::int64_t q_row, picture::ElementRow& row) const {
    row.scores.resize(scores_.size());
    row.keep.resize(scores_.size());
    interpretation_.row(arguments_, list.b, list.h, q_row, scores_.data(), row.scores.data(),
                        row.keep.data());
  }

 private:
  verify::FloatInterpretation interpretation_;
  verify::SnippetValues values_;
  abi::SnippetArguments arguments_;
  std::vector<float> scores_;
};

bool draws_elements(const PictureArguments& arguments, const Shape& shape) {
  return !arguments.tiles && shape.q_len <= picture::kMaxElements &&
         shape.kv_len <= picture::kMaxElements;
}

// Batches and heads whose scores may differ.
void tell_scores_apart(picture::MaskPictureOptions& options, const Spec& spec, const Shape& shape) {
  const Snippet snippet = check_snippet(SnippetKind::score_mod, spec.score_mod);
  if (snippet.mentions("b")) options.batch = shape.batch;
  if (snippet.mentions("h") || snippet.mentions("h_kv")) options.heads = shape.num_q_heads;
}

}  // namespace

void PictureArguments::declare(CLI::App& app) {
  app.add_option("--picture", path, "write a picture: a .svg, .png or .txt file");
  add_whole(app, "--b", b, kAnyIndex, "draw this batch alone");
  add_whole(app, "--h", h, kAnyIndex, "draw this query head alone");
  app.add_flag("--scores", scores, "draw a heat map of score_mod next to the mask");
  add_number(app, "--score", score, "the score that score_mod is given for it (default 1)")
      ->needs("--scores");
  app.add_flag("--tiles", tiles, "draw tiles also where elements would be drawn");
}

bool PictureArguments::is_drawing() const {
  const std::string extension = extension_of(path);
  return extension == ".svg" || extension == ".png";
}

void PictureArguments::check(const Spec& spec, const Shape& shape) const {
  const std::string extension = extension_of(path);
  if (!path.empty() && !is_drawing() && extension != ".txt") {
    throw Error(ErrorCode::usage, fmt::format("--picture \"{}\" has no known format", path),
                "name a .svg, .png or .txt file; a pipe or device gets text");
  }
  if (!is_drawing() && (b || h || scores || tiles)) {
    throw Error(ErrorCode::usage, "--b, --h, --scores and --tiles belong to a drawing",
                "add --picture FILE.svg or --picture FILE.png");
  }
  if (scores && spec.score_mod.empty()) {
    throw Error(ErrorCode::usage, "the spec has no score_mod, so --scores has nothing to draw",
                "leave --scores out");
  }
  const auto require = [](std::string_view option, std::optional<std::int64_t> index,
                          std::string_view what, std::int64_t count) {
    if (!index || *index < count) return;
    throw Error(ErrorCode::usage,
                fmt::format("{} {} is not there: {} is {}", option, *index, what, count),
                fmt::format("choose from 0 to {}", count - 1));
  };
  require("--b", b, "--batch", shape.batch);
  require("--h", h, "--q-heads", shape.num_q_heads);
}

void write_picture(const PictureArguments& arguments, const Spec& spec, const CallInputs& inputs,
                   const BlockMask& mask) {
  const std::string extension = extension_of(arguments.path);
  if (extension == ".txt") return write_text_file(arguments.path, picture::text_picture(mask));
  picture::MaskPictureOptions options{.title = spec.name.empty() ? "block mask" : spec.name,
                                      .b = arguments.b,
                                      .h = arguments.h,
                                      .scores = arguments.scores,
                                      .score = arguments.score};
  options.elements = draws_elements(arguments, inputs.shape());
  std::optional<Elements> elements;
  if (options.elements || options.scores) {
    elements.emplace(spec, inputs, arguments.score);
    options.read = [&](picture::ListIndex list, std::int64_t q_row, picture::ElementRow& row) {
      elements->read(list, q_row, row);
    };
  }
  if (options.scores) tell_scores_apart(options, spec, inputs.shape());
  if (extension == ".svg") {
    write_text_file(arguments.path, picture::svg_picture(mask, options));
  } else {
    write_file(arguments.path, picture::png_picture(mask, options));
  }
}

}  // namespace tilewright::cli
