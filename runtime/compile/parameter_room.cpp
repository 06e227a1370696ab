#include "runtime/compile/parameter_room.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/counted.hpp"
#include "base/error.hpp"
#include "templates/abi/cuda_max_scores.hpp"
#include "templates/abi/cuda_packed.hpp"
#include "templates/abi/cuda_paged.hpp"
#include "templates/abi/cuda_splits.hpp"
#include "templates/abi/cuda_tensor_maps.hpp"

namespace tilewright {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

template <typename Arguments>
constexpr long long bytes_with_splits =
    sizeof(cuda_abi::WithMaxScores<cuda_abi::WithSplits<Arguments>>);

// Of the forward kernel that takes most: Hopper's, of calls that are split.
long long forward_bytes(const Spec& spec) {
  if (spec.kv_new) return bytes_with_splits<cuda_abi::NewRowsForwardArguments>;
  return spec.is_packed() ? bytes_with_splits<cuda_abi::PackedForwardArguments>
                          : bytes_with_splits<cuda_abi::ForwardArguments>;
}

long long map_bytes(const Spec& spec) {
  if (spec.kv_new) return sizeof(cuda_abi::NewRowsTensorMaps);
  return spec.is_paged() ? sizeof(cuda_abi::PagedTensorMaps) : sizeof(cuda_abi::TensorMaps);
}

// What is left for SnippetArguments.
long long snippet_room(const Spec& spec) {
  const long long pages = spec.is_paged() ? sizeof(abi::SequencePages) : 0;
  return static_cast<long long>(kMaxParameterBytes) - pages - map_bytes(spec) -
         round_up(forward_bytes(spec), static_cast<long long>(alignof(cuda_abi::TensorMap)));
}

}  // namespace

int argument_rank(const Spec& spec) {
  const bool is_usual = std::all_of(
      spec.buffers.begin(), spec.buffers.end(),
      [](const auto& named) { return named.second.shape.size() <= cuda_abi::kUsualBufferRank; });
  return is_usual ? cuda_abi::kUsualBufferRank : cuda_abi::kMaxBufferRank;
}

void require_parameter_room(const Spec& spec) {
  const int rank = argument_rank(spec);
  const auto bytes_of = [&](std::int64_t buffers) {
    return cuda_abi::snippet_argument_bytes(static_cast<int>(buffers),
                                            static_cast<int>(spec.scalar_entries()), rank);
  };
  const auto buffers = static_cast<std::int64_t>(spec.buffers.size());
  const long long room = snippet_room(spec);
  if (bytes_of(buffers) <= room) return;
  std::int64_t fitting = buffers;
  while (fitting > 0 && bytes_of(fitting) > room) --fitting;
  throw Error(ErrorCode::spec,
              fmt::format("{} and {} take {} bytes of the parameters of a GPU's launch, which have "
                          "room for {}: {}",
                          counted(buffers, "buffer"), counted(spec.scalars.size(), "scalar"),
                          bytes_of(buffers), room,
                          fitting > 0 ? fmt::format("{} fit", counted(fitting, "buffer"))
                                      : "these scalars leave no room for a buffer"),
              "put several of them into one buffer with one more dimension");
}

}  // namespace tilewright
