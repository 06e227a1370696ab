#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../generator/tactic/kernel_variant.hpp"
#include "../runtime/api/shape.hpp"
#include "../verify/guarded_tensor.hpp"
#include "expression.hpp"
#include "packing.hpp"

namespace tilewright::verify::fuzz {

/// One case: everything that decides what is computed and how, as numbers and text. The same case
/// gives the same result on the same machine; as JSON it is what `tilewright fuzz --replay` takes.
struct FuzzCase {
  /// Snippets, buffers and scalars, dtypes, head dims, layouts, block, outputs, tactic.
  Spec spec;
  /// The trees that spec.score_mod and spec.mask_mod are printed from; none for a user's own text,
  /// which is read by the kernels of verify/snippet_evaluator.hpp instead of the interpreter.
  std::optional<SnippetTree> score_mod = {};
  std::optional<SnippetTree> mask_mod = {};

  /// "cpu" or "cuda": the call is run. Any other target ("sm_90a", "cpu-x86-64-v3"): its kernels
  /// are only compiled, and what follows does not matter.
  std::string target = "cpu";
  /// That is only compiled, on "cpu" too; nothing where the call is run.
  std::optional<KernelVariant> kernel = {};

  Shape shape = {};                  ///< offsets among it; of a packed call see set_totals
  FuzzPacking packing = {};          ///< of a packed call
  bool broadcast_kv = false;         ///< k and v have batch 1
  bool one_kv_head_for_all = false;  ///< k and v have stride 0 between heads
  bool broadcast_buffers = false;    ///< buffers' dimensions of batch and heads have size 1
  std::int64_t free_dim = 64;        ///< size of a buffer's dimension declared as null
  /// Sizes of a buffer's null dimensions, in their order; of a buffer without an entry: free_dim.
  std::map<std::string, std::vector<std::int64_t>> null_extents = {};
  std::optional<double> scale = {};            ///< none: the spec's
  std::map<std::string, double> scalars = {};  ///< those without one take the spec's default

  Placement q = {}, k = {}, v = {}, buffers = {}, out = {};  ///< padding, misalignment

  std::uint64_t seed = 0;        ///< of the contents of q, k, v and the buffers (random_inputs.hpp)
  double q_factor = 1;           ///< q is multiplied by it
  bool nan_in_dropped = false;   ///< k rows that no query of their heads keeps hold NaN
  bool decode = false;           ///< AttentionOptions::decode
  bool split = false;            ///< of a dense call: it is given the workspace that it asks for
  std::int64_t splits = 0;       ///< PlanOptions::splits, ForwardOptions::splits
  bool batch_invariant = false;  ///< of a packed call
  // Of a spec with gradients, whose call runs backward too.
  bool dlse = false;           ///< backward is given dlse
  bool deterministic = false;  ///< BackwardOptions::deterministic

  /// The metamorphic relation that is checked as well (relations.hpp); empty: none.
  std::string relation = {};
  /// On a CPU: undefined behaviour of the kernels themselves ends the process that runs them.
  bool sanitized = false;

  /// The seed of the run that made it, and its number in that run; for people.
  std::uint64_t run_seed = 0;
  std::int64_t number = 0;
};

/// Whether both would be written as the same JSON.
bool operator==(const FuzzCase& a, const FuzzCase& b);

/// True where the call is run, not only compiled.
bool is_run(const FuzzCase& fuzz_case);

/// Refuses sizes that no call has: of the sequences, where the case's spec is packed.
/// @throws Error with code tensor
void validate_sizes(const FuzzCase& fuzz_case);

/// True where no snippet is a user's own text.
bool has_all_trees(const FuzzCase& fuzz_case);

/// Prints the trees into spec.score_mod and spec.mask_mod: after a change of either.
void print_snippets(FuzzCase& fuzz_case);

/// The case as JSON, two spaces of indentation, defaults left out. Numbers are exact:
/// case_from_json(to_json(c)) == c.
std::string to_json(const FuzzCase& fuzz_case);

/// @throws Error with code file for what is no case, spec or snippet for a spec that is wrong
FuzzCase case_from_json(std::string_view text, std::string_view file_name = "case");
/// @throws Error also with code file where it cannot be read, or where it asks for what is not
/// there: a scalar, a target, a kernel
FuzzCase case_from_file(const std::filesystem::path& path);

/// "bf16 64, batch 2, heads 8/2, q_len 127, kv_len 1023, score_mod, mask_mod, on cpu"
std::string describe(const FuzzCase& fuzz_case);

}  // namespace tilewright::verify::fuzz
