#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../api/block_mask.hpp"

namespace tilewright {

/// The lists in the memory of one CUDA context. Made by runtime/cuda, which knows what is inside.
/// Every function waits for whatever still writes the lists.
class DeviceTileLists {
 public:
  virtual ~DeviceTileLists() = default;
  virtual TileLists to_host() const = 0;
  /// The transposed lists; none where they were not asked for.
  virtual std::optional<TileLists> transposed_to_host() const = 0;
  virtual bool has_transposed() const { return false; }
  /// @throws Error with code block_mask where the tiles are more than there was room for
  virtual TileCounts counts() const = 0;
  std::uint64_t context() const { return context_; }  ///< the context's number

 protected:
  explicit DeviceTileLists(std::uint64_t context) : context_(context) {}

 private:
  std::uint64_t context_;
};

/// What the copies of a mask share.
struct BlockMask::Contents {
  struct DeviceCopy {
    std::shared_ptr<const HostTileLists> made_from;
    std::shared_ptr<const DeviceTileLists> lists;
  };

  std::shared_ptr<const DeviceTileLists> origin;  // null if the lists were made on the host
  std::mutex host_mutex;                          // guards the next five
  std::string path;
  std::optional<TileCounts> counts;  // none: the GPU knows them
  std::shared_ptr<const HostTileLists> host;
  TileLists transposed;
  std::shared_ptr<const HostTileLists> transposed_from;
  std::mutex copies_mutex;  // never taken while host_mutex is held
  std::vector<DeviceCopy> copies;
  std::vector<DeviceCopy> transposed_copies;  // with the transposed lists
};

/// Where a mask's lists lie, for runtime/cuda.
class MaskPlacement {
 public:
  /// The lists that a GPU made in a context; null if they were made elsewhere.
  static const DeviceTileLists* made_in(const BlockMask& mask, std::uint64_t context) {
    const DeviceTileLists* origin = mask.contents_->origin.get();
    return origin && origin->context() == context ? origin : nullptr;
  }

  /// The lists in the memory of a context. If they were made elsewhere they are copied there:
  /// `make(HostTileLists)` is called at the first use, and again when they have changed since. A
  /// mask with a capacity is looked at for changes at each use, which waits.
  template <typename Make>
  static std::shared_ptr<const DeviceTileLists> on_device(const BlockMask& mask,
                                                          std::uint64_t context, const Make& make) {
    BlockMask::Contents& contents = *mask.contents_;
    if (made_in(mask, context)) return contents.origin;
    return copied(mask, context, contents.copies, make);
  }

  /// The same with the transposed lists, which the mask has.
  template <typename Make>
  static std::shared_ptr<const DeviceTileLists> transposed_on_device(const BlockMask& mask,
                                                                     std::uint64_t context,
                                                                     const Make& make) {
    BlockMask::Contents& contents = *mask.contents_;
    const DeviceTileLists* const origin = made_in(mask, context);
    if (origin != nullptr && origin->has_transposed()) return contents.origin;
    return copied(mask, context, contents.transposed_copies, make);
  }

 private:
  template <typename Make>
  static std::shared_ptr<const DeviceTileLists> copied(
      const BlockMask& mask, std::uint64_t context,
      std::vector<BlockMask::Contents::DeviceCopy>& copies, const Make& make) {
    const std::shared_ptr<const HostTileLists> now = mask.on_host();
    const std::lock_guard lock(mask.contents_->copies_mutex);
    for (BlockMask::Contents::DeviceCopy& copy : copies) {
      if (copy.lists->context() != context) continue;
      if (copy.made_from != now) copy = {now, make(*now)};
      return copy.lists;
    }
    copies.push_back({now, make(*now)});
    return copies.back().lists;
  }
};

}  // namespace tilewright
