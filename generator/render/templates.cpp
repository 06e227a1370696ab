#include "generator/render/templates.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "generator/render/embedded_templates.hpp"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

class EmbeddedLoader : public jinja::Loader {
 public:
  std::optional<std::string> load(std::string_view name) const override {
    for (const EmbeddedTemplate& file : embedded_templates()) {
      if (file.name == name) return std::string(file.text);
    }
    return std::nullopt;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const EmbeddedTemplate& file : embedded_templates()) names.emplace_back(file.name);
    return names;
  }
};

constexpr const char* kTemplateExample = "cpu/kernels/forward.cpp.jinja";

std::set<std::string> embedded_folders() {
  std::set<std::string> folders;
  for (const EmbeddedTemplate& file : embedded_templates()) {
    folders.insert(fs::path(file.name).parent_path().generic_string());
  }
  return folders;
}

class FolderLoader : public jinja::Loader {
 public:
  explicit FolderLoader(fs::path root) : root_(std::move(root)) {}

  std::optional<std::string> load(std::string_view name) const override {
    const fs::path relative = fs::path(name).lexically_normal();
    const bool leaves = relative.is_absolute() || relative.empty() || *relative.begin() == "..";
    std::error_code ignored;
    if (leaves || !fs::is_regular_file(root_ / relative, ignored)) return std::nullopt;
    return read_text_file(root_ / relative);
  }

  std::string origin() const override {
    return fmt::format(
        "TILEWRIGHT_TEMPLATES names the folder \"{}\", which must hold cpu/ and cuda/",
        root_.native());
  }

  std::vector<std::string> names() const override {
    // Of the folders that hold templates, and at most so many, as the folder may be any.
    constexpr std::size_t kMostNames = 10'000;
    std::vector<std::string> names;
    for (const std::string& folder : embedded_folders()) {
      std::error_code error;
      fs::directory_iterator files(root_ / folder, error);
      for (; !error && files != fs::directory_iterator() && names.size() < kMostNames;
           files.increment(error)) {
        if (files->is_regular_file(error)) {
          names.push_back(files->path().lexically_relative(root_).generic_string());
        }
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  fs::path root_;
};

}  // namespace

std::unique_ptr<jinja::Loader> embedded_template_loader() {
  return std::make_unique<EmbeddedLoader>();
}

bool is_embedded(const jinja::Loader& loader) {
  return dynamic_cast<const EmbeddedLoader*>(&loader) != nullptr;
}

std::unique_ptr<jinja::Loader> default_template_loader() {
  const char* const folder = std::getenv("TILEWRIGHT_TEMPLATES");
  if (!folder || !*folder) return std::make_unique<EmbeddedLoader>();
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorCode::file,
                fmt::format("TILEWRIGHT_TEMPLATES names \"{}\", which is no folder", folder),
                "unset it to use the templates that are built in");
  }
  auto loader = std::make_unique<FolderLoader>(folder);
  if (loader->names().empty()) {
    throw Error(ErrorCode::file,
                fmt::format("TILEWRIGHT_TEMPLATES names \"{}\", which holds no templates: {} is "
                            "missing, for example",
                            folder, kTemplateExample),
                "name a copy of the source's folder templates/, or unset it to use the templates "
                "that are built in");
  }
  return loader;
}

}  // namespace tilewright
