#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator/render/templates.hpp"

namespace tilewright::test {

/// The templates, of which one is another or new.
class OverlaidTemplates final : public jinja::Loader {
 public:
  OverlaidTemplates(std::string name, std::string text)
      : name_(std::move(name)), text_(std::move(text)) {}

  std::optional<std::string> load(std::string_view name) const override {
    return name == name_ ? text_ : below_->load(name);
  }
  std::vector<std::string> names() const override { return below_->names(); }

 private:
  std::string name_;
  std::string text_;
  std::unique_ptr<jinja::Loader> below_ = default_template_loader();
};

}  // namespace tilewright::test
