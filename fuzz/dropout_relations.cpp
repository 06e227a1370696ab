#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "fuzz/packing.hpp"
#include "fuzz/relation_calls.hpp"
#include "fuzz/relation_comparison.hpp"
#include "fuzz/relations.hpp"
#include "generator/spec/number_range.hpp"

namespace tilewright::verify::fuzz {
namespace {

class DropoutChecks {
 public:
  DropoutChecks(const Spec& spec, const Inputs& inputs, const FuzzPacking& packing,
                RelationRunner& runner)
      : base_(spec, inputs), runner_(runner), sequences_(spec, packing) {}

  RelationResult no_dropout() {
    RelationCall never = base_, without = base_;
    never.spec.dropout = "0.0";
    without.spec.dropout.clear();
    drop_seed(without);
    without.spec.tactic.reset();
    AttentionValues wanted = run(without);
    RelationResult result = RelationComparison(base_.spec, wanted).with(run(never));
    if (!result.holds()) return result;
    const AttentionValues dropped = run(base_);
    wanted.out = dropped.out;
    return RelationComparison(base_.spec, wanted).with(dropped);
  }

  RelationResult seed_in_buffer() {
    const std::optional<double> seed = seed_of(base_);
    if (!seed) return {.applies = false};
    RelationCall other = base_;
    drop_seed(other);
    if (base_.spec.has_seed_buffer()) {
      other.spec.scalars["seed"] = {.dtype = DType::i64};
      other.inputs.scalars["seed"] = *seed;
    } else {
      other.spec.buffers["seed"] = {.dtype = DType::i64};
      Tensor tensor = Tensor::zeros(DType::i64, {});
      const auto value = static_cast<std::int64_t>(*seed);
      std::memcpy(tensor.data(), &value, sizeof value);
      other.inputs.buffers.emplace("seed", std::move(tensor));
    }
    return RelationComparison(base_.spec, run(base_)).with(run(other));
  }

 private:
  AttentionValues run(const RelationCall& call) const {
    return runner_.forward(call.spec, sequences_.problem_of(call.inputs));
  }

  static void drop_seed(RelationCall& call) {
    call.spec.buffers.erase("seed");
    call.spec.scalars.erase("seed");
    call.inputs.buffers.erase("seed");
    call.inputs.scalars.erase("seed");
  }

  // None where no scalar holds it.
  static std::optional<double> seed_of(const RelationCall& call) {
    if (!call.spec.has_seed_buffer()) {
      const auto given = call.inputs.scalars.find("seed");
      if (given != call.inputs.scalars.end()) return given->second;
      return call.spec.scalars.at("seed").default_value;
    }
    std::int64_t value = 0;
    std::memcpy(&value, call.inputs.buffers.at("seed").data(), sizeof value);
    constexpr auto kMost = static_cast<std::int64_t>(kMostExactWhole);
    if (value < -kMost || value > kMost) return std::nullopt;
    return static_cast<double>(value);
  }

  RelationCall base_;
  RelationRunner& runner_;
  SequencesOfCall sequences_;
};

}  // namespace

RelationResult check_dropout_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                                      const FuzzPacking& packing, RelationRunner& runner) {
  DropoutChecks checks(spec, inputs, packing, runner);
  return relation == Relation::no_dropout ? checks.no_dropout() : checks.seed_in_buffer();
}

}  // namespace tilewright::verify::fuzz
