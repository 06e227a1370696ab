// Templates that anybody might write: what the engine renders, it renders twice alike, and each
// byte of the result comes from somewhere.

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "generator/render/engine/engine.hpp"
#include "tests/fuzz/text/input.hpp"

using namespace tilewright;
using namespace tilewright::jinja;

namespace {

// One of each type of value.
const Map& context() {
  static const Map map = {
      {"flag", true},
      {"n", 3},
      {"name", "sliding_window"},
      {"nothing", Value()},
      {"list", List{1, 2, 3}},
      {"map", Map{{"a", 1}, {"b", List{"c", true}}}},
      {"snippet",
       Splice{.origin = "score_mod", .pieces = {{.text = "score\n  + 1", .line = 1, .column = 1}}}},
  };
  return map;
}

}  // namespace

// The template "main", and after a byte 0 the template "other", which it may include.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const std::size_t end = std::min(text.find('\0'), text.size());
  const std::size_t other = std::min(end + 1, text.size());
  const MapLoader loader(
      {{"main", std::string(text.substr(0, end))}, {"other", std::string(text.substr(other))}});
  try {
    const Rendered once = render(loader, "main", context());
    fuzz::require(once.text == render(loader, "main", context()).text,
                  "the same template gives the same text");
    for (const std::string& name : once.variables) {
      fuzz::require(context().contains(name), "what was read exists");
    }
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kernel_template && error.place(),
                  "what is wrong in a template is an error with its place");
  }
  return 0;
}
