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
  /// @throws Error with code usage where the fault's text does not stand once in its file
  explicit FaultyTemplates(Fault fault)
      : fault_(std::move(fault)), faulty_(sound_->load(fault_.file).value_or("")) {
    const std::size_t place = faulty_.find(fault_.text);
    if (place == std::string::npos || faulty_.find(fault_.text, place + 1) != std::string::npos) {
      throw Error(ErrorCode::usage, "\"" + fault_.text + "\" does not stand once in " + fault_.file,
                  "the template was changed: write the fault anew");
    }
    faulty_.replace(place, fault_.text.size(), fault_.replacement);
  }

  std::optional<std::string> load(std::string_view name) const override {
    return name == fault_.file ? faulty_ : sound_->load(name);
  }
  std::vector<std::string> names() const override { return sound_->names(); }

 private:
  std::unique_ptr<jinja::Loader> sound_ = default_template_loader();
  Fault fault_;
  std::string faulty_;  // the fault's file with it
};

}  // namespace tilewright::test
