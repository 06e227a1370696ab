#include <cstddef>
#include <map>
#include <string>

#include "c/handles.hpp"
#include "c/inputs.hpp"
#include "c/tensor.hpp"

namespace tilewright::capi {
namespace {

template <typename Value>
void add(std::map<std::string, Value>& named, const char* name, const Value& value) {
  required(name, "the name of a buffer or scalar");
  if (named.emplace(name, value).second) return;
  throw Error(ErrorCode::usage, std::string(name) + " is given twice");
}

}  // namespace

SnippetInputs inputs_of(const Device& device, const tw_buffer* buffers, std::size_t buffer_count,
                        const tw_scalar* scalars, std::size_t scalar_count) {
  if (buffer_count > 0) required(buffers, "buffers");
  if (scalar_count > 0) required(scalars, "scalars");
  SnippetInputs inputs;
  for (std::size_t i = 0; i < buffer_count; ++i) {
    const char* const name = buffers[i].name;
    add(inputs.buffers, name, view_of(buffers[i].tensor, device, name ? name : "a buffer"));
  }
  for (std::size_t i = 0; i < scalar_count; ++i)
    add(inputs.scalars, scalars[i].name, scalars[i].value);
  return inputs;
}

}  // namespace tilewright::capi

using namespace tilewright;
using namespace tilewright::capi;

extern "C" {

tw_status tw_bind(const tw_attention* attention, const tw_buffer* buffers, size_t buffer_count,
                  const tw_scalar* scalars, size_t scalar_count, tw_bindings** bindings,
                  tw_error** error) {
  return guarded(bindings, error, [&] {
    const Attention& on = of(attention);
    return new tw_bindings{
        on.bind(inputs_of(on.device(), buffers, buffer_count, scalars, scalar_count))};
  });
}

void tw_bindings_destroy(tw_bindings* bindings) {
  delete bindings;
}

}  // extern "C"
