#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../base/error.hpp"
#include "../../cache/bundles.hpp"
#include "../../cache/store.hpp"
#include "../../generator/render/kernel_source.hpp"

namespace tilewright {

// Kernels that are kept somewhere: found without a compiler, and compared where one is missed.

/// What is recorded of one.
struct RecordedKernel {
  std::string where;  ///< the bundle's path, or the store's directory
  std::vector<cache::Ingredient> ingredients;
  cache::Metadata metadata;
};

/// Every kernel of the bundles, in their order.
std::vector<RecordedKernel> recorded_kernels(const cache::Bundles& bundles);
/// Every good kernel of a store's directory. Reads and verifies all of it.
std::vector<RecordedKernel> recorded_kernels(const cache::Store& store);

/// One thing in which a recorded kernel is not the one that was wanted.
struct KernelDifference {
  std::string ingredient;  ///< "head_dim", "target", "generator", ...
  std::string wanted;
  std::string recorded;
};

/// The recorded kernel that differs least from a wanted one.
struct NearestKernel {
  const RecordedKernel* kernel = nullptr;
  std::vector<KernelDifference> differences;  ///< in the order of what people look at first
};

/// @param source of the wanted kernel
/// @returns nothing where nothing is recorded
std::optional<NearestKernel> nearest_kernel(const Spec& spec, const KernelSource& source,
                                            std::span<const RecordedKernel> recorded);

/// "head_dim is 128 here and 64 there; target is ..."
std::string describe(const std::vector<KernelDifference>& differences);

/// The entry for "specs" of a manifest: {"spec": {...}}, in one line.
std::string manifest_line(const Spec& spec);

/// The entry of a store that serves a request, whatever compiled it; null where there is none. One
/// for "cpu" must come from a machine like this. Reads all of the directory.
std::shared_ptr<const cache::Entry> find_by_request(cache::Store& store,
                                                    const cache::Request& request);

/// What is reported where a kernel is missed and nothing may be compiled: the spec, where was
/// looked, what is damaged there, the nearest entry with what differs, and what to add to the
/// manifest; of a kernel that is there but damaged, where.
Error missing_kernel(const Spec& spec, const KernelSource& source, const cache::Bundles& bundles,
                     const cache::Store& store);

}  // namespace tilewright
