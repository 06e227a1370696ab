#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generator/render/engine/engine.hpp"
#include "tests/mutants/operators.hpp"

namespace tilewright::mutants {

/// Templates that mutants are made of, by where they run.
enum class Group : std::uint8_t {
  cpu,           ///< attention and block masks on a CPU, and what they share with the others
  proofs,        ///< the interval interpretation, run on a CPU here
  portable,      ///< forward on any GPU
  gpu_mask,      ///< block masks on a GPU
  hopper,        ///< forward on sm_90a
  plan,          ///< plans of packed calls, and what forward reads of them, on any GPU
  gpu_caches,    ///< append, merge and quantise on a GPU
  decode,        ///< sequences with few rows of q, on any GPU
  gpu_backward,  ///< gradients on any GPU and on sm_90a
};

/// "cpu", "proofs", "portable", "mask", "hopper", "plan", "caches", "decode", "backward"
std::string_view to_string(Group group);

inline constexpr Group kGroups[] = {Group::cpu,        Group::proofs, Group::portable,
                                    Group::gpu_mask,   Group::hopper, Group::plan,
                                    Group::gpu_caches, Group::decode, Group::gpu_backward};

/// Whether it is run on a CPU.
bool runs_on_cpu(Group group);

struct Mutant {
  Group group = Group::cpu;
  Mutation mutation;
};

/// The mutants that are tried: of all that the operators make of a group's templates, a share that
/// a mutation's own id decides, so that an edit of one line changes no other line's mutants. All
/// dropped barriers and rescales are among them. Without those of templates in whose place
/// TILEWRIGHT_TEMPLATES puts others.
std::vector<Mutant> population();

/// All that the operators make, for people who want to try more.
std::vector<Mutant> all_mutants();

/// Mutants whose kernels compute the same, each with the reason, from equivalent.json next to this.
class Equivalents {
 public:
  /// @throws Error with code file where the file is wrong, or names a change that no operator
  /// makes
  explicit Equivalents(const std::string& path, const std::vector<Mutant>& known);

  /// Why the mutant is equivalent; empty where it is not.
  std::string reason(const Mutation& mutation) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string file, before, after, reason;
  };
  std::vector<Entry> entries_;
};

/// A change that changes nothing but the text of every kernel of a kind: a comment.
Mutation comment_alone(bool on_cpu);

/// The templates with one change.
std::shared_ptr<const jinja::Loader> mutated_templates(const Mutation& mutation);

}  // namespace tilewright::mutants
