#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../base/error.hpp"
#include "../../generator/render/templates.hpp"

namespace tilewright::test {

struct Fault {
  std::string what;
  std::string file;
  std::string text;         // stands once in the file
  std::string replacement;  // what stands there instead
};

class FaultyTemplates final : public jinja::Loader {
 public:
  explicit FaultyTemplates(Fault fault) : fault_(std::move(fault)) {}

  std::optional<std::string> load(std::string_view name) const override {
    std::optional<std::string> text = sound_->load(name);
    if (!text || name != fault_.file) return text;
    const std::size_t place = text->find(fault_.text);
    if (place == std::string::npos || text->find(fault_.text, place + 1) != std::string::npos) {
      throw Error(ErrorCode::usage, "\"" + fault_.text + "\" does not stand once in " + fault_.file,
                  "the template was changed: write the fault anew");
    }
    return text->replace(place, fault_.text.size(), fault_.replacement);
  }
  std::vector<std::string> names() const override { return sound_->names(); }

 private:
  Fault fault_;
  std::unique_ptr<jinja::Loader> sound_ = default_template_loader();
};

}  // namespace tilewright::test
