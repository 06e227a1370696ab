#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../../../base/error.hpp"
#include "ast.hpp"
#include "engine.hpp"
#include "evaluator.hpp"
#include "output.hpp"

namespace tilewright::jinja {

/// Runs statements. One renderer serves one call of render().
class Renderer {
 public:
  /// @param loader and context outlive the renderer
  Renderer(const Loader& loader, const Map& context) : loader_(loader), evaluator_(context) {}

  /// @throws Error with code kernel_template
  Rendered render(std::string_view name);

 private:
  // A template that is being rendered, and where the one before it includes it.
  struct Frame {
    const TemplateText* source;
    std::uint32_t include_offset;  // of the include in the frame before
    const TemplateText* header;    // under whose banner its text stands: its own, or that before
  };

  void render_template(const Template& parsed, std::uint32_t include_offset, bool is_header);
  void render_included(const Template& parsed, std::uint32_t include_offset, bool is_header);
  const Template& load(std::string_view name, std::uint32_t include_offset);
  const Template& load_header(std::string_view name, std::uint32_t include_offset);
  const Template* find(const std::string& name, std::uint32_t include_offset);
  [[noreturn]] void fail_missing(std::string_view name, std::uint32_t include_offset) const;
  void refuse_circle(const Template& header, std::uint32_t include_offset) const;
  void begin_text();
  void run(const Block& block);
  void run(const Statement& statement, const Text& text);
  void run(const Statement& statement, const Print& print);
  void run(const Statement& statement, const If& node);
  void run(const Statement& statement, const For& node);
  void run(const Statement& statement, const Set& node);
  void run(const Statement& statement, const Include& node);
  void run(const Statement& statement, const HeaderInclude& node);

  void set(std::string_view variable, const Value& value);
  Origin origin_of(std::uint32_t offset) const;
  Error located(const PlacedComplaint& complaint) const;

  const Loader& loader_;
  Evaluator evaluator_;
  Output output_;
  std::map<std::string, std::unique_ptr<const Template>, std::less<>> templates_;
  std::vector<std::string> files_;
  std::vector<Frame> frames_;
  std::set<const Template*> headers_;          // that were rendered, or are being
  const TemplateText* last_header_ = nullptr;  // whose text was last added
  bool is_between_headers_ = false;  // no text was added since the last header began or ended
  bool skipped_blank_line_ = false;  // between them
};

}  // namespace tilewright::jinja
