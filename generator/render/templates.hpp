#pragma once

#include <memory>

#include "engine/engine.hpp"

namespace tilewright {

/// Templates as they were embedded at build time, or read from the folder that TILEWRIGHT_TEMPLATES
/// names, for people who work on them. A file missing there is an error, not a fall back.
std::unique_ptr<jinja::Loader> default_template_loader();

/// Templates as they were embedded at build time, whatever the environment says.
std::unique_ptr<jinja::Loader> embedded_template_loader();

/// Whether a loader's templates are those that were embedded at build time.
bool is_embedded(const jinja::Loader& loader);

}  // namespace tilewright
