// Specs: what is read is written and read again as the same spec.

#include <string>

#include "base/error.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/fuzz/text/input.hpp"

using namespace tilewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Spec spec = spec_from_json(fuzz::as_text(data, size));
    const std::string json = to_json(spec);
    fuzz::require(spec_from_json(json) == spec, "a spec that is written is read as the same");
    fuzz::require(to_json(spec_from_json(json)) == json, "and is written as the same text");
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::spec || error.code() == ErrorCode::snippet,
                  "what is wrong in a spec is an error of the spec or of a snippet");
  }
  return 0;
}
