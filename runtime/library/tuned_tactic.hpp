#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../cache/bundle_format.hpp"
#include "../../generator/spec/manifest.hpp"
#include "../../generator/spec/spec.hpp"
#include "../../generator/spec/target.hpp"
#include "../api/attention.hpp"
#include "../api/toolchain.hpp"

namespace tilewright {

/// What was measured of a spec's tactics on one kind of device.
struct TunedTactic {
  std::optional<TacticSpec> tactic = {};  ///< none: the one that is chosen is the fastest
  double gain = 1;          ///< geometric mean over the shapes of time before / time after
  std::string shapes = {};  ///< "1,40,40,3000,3000 2,8,8,1500,1500"
  std::string date = {};    ///< "2026-11-27"

  friend bool operator==(const TunedTactic&, const TunedTactic&) = default;
};

/// Devices that one tactic is remembered for.
struct DeviceKind {
  std::string name;             ///< "NVIDIA H100 80GB HBM3"
  std::vector<Target> targets;  ///< that it runs, the best one first
};

/// Whether what is remembered is used: unless TILEWRIGHT_TUNED is "0" or "off".
/// @throws Error as switch_variable
bool uses_tuned_tactics();

/// What is remembered of a spec (its tactic, name, scale and hints aside) in the bundles, then in
/// the store; by this version of the generator alone. Where nothing may be compiled, the bundles
/// alone are asked.
std::optional<TunedTactic> remembered_tactic(const Spec& spec, const DeviceKind& device,
                                             const Toolchain& toolchain);

/// Remembers it in the store, in place of what was there.
/// @throws Error with code disk where the store cannot keep it
void remember_tactic(const Spec& spec, const DeviceKind& device, const TunedTactic& tuned,
                     const Toolchain& toolchain);

/// What of a manifest is tuned on a device, for a bundle that carries it.
struct TunedSpecs {
  std::vector<ManifestSpec> specs = {};         ///< with their tactics, and those without
  std::vector<Target> targets = {};             ///< that the device runs
  std::vector<cache::BundleItem> records = {};  ///< what remembered_tactic finds in the bundle
};
TunedSpecs tuned_specs(std::span<const ManifestSpec> specs, const DeviceKind& device,
                       const Toolchain& toolchain);

/// The spec with its remembered tactic, where it may have one. A tactic that does not fit the
/// Attention's kernels is left out, with a warning.
/// @param device_kind of the Attention's device. It is asked for only where something is
/// remembered,
///        as a GPU's takes the driver's start.
/// @throws Error as uses_tuned_tactics
Spec with_tuned_tactic(Spec spec, const std::function<DeviceKind()>& device_kind,
                       const AttentionOptions& options);

}  // namespace tilewright
