#include "generator/render/promised_buffers.hpp"

namespace tilewright {

std::vector<PromisedBuffer> promised_buffers(const SpecFacts& facts) {
  std::vector<PromisedBuffer> promised;
  if (!facts.mask_mod) return promised;
  std::size_t index = 0;
  for (const auto& [name, buffer] : facts.spec.buffers) {
    const bool is_promised = buffer.sorted.is_promised() && !is_floating(buffer.dtype);
    if (is_promised && facts.mask_mod->snippet.mentions(name)) promised.push_back({index, name});
    ++index;
  }
  return promised;
}

}  // namespace tilewright
