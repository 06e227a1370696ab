#include "generator/render/engine/engine.hpp"

#include "generator/render/engine/renderer.hpp"

namespace tilewright::jinja {

std::optional<std::string> MapLoader::load(std::string_view name) const {
  const auto found = templates_.find(std::string(name));
  if (found == templates_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> MapLoader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : templates_) names.push_back(name);
  return names;
}

Rendered render(const Loader& loader, std::string_view name, const Map& context) {
  return Renderer(loader, context).render(name);
}

}  // namespace tilewright::jinja
