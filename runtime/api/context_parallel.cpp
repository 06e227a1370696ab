#include "runtime/api/context_parallel.hpp"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "base/version.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/call/backward_call.hpp"
#include "runtime/parallel/agreement.hpp"
#include "runtime/parallel/backward.hpp"
#include "runtime/parallel/forward.hpp"
#include "runtime/parallel/make_plan.hpp"
#include "runtime/parallel/shard_spec.hpp"

namespace tilewright {
namespace {

Communicator& given_communicator(const std::shared_ptr<Communicator>& communicator) {
  if (communicator) return *communicator;
  throw Error(ErrorCode::usage, "context parallel was given no communicator",
              "make one, for example with nccl_group()");
}

AttentionOptions pair_options(AttentionOptions options) {
  if (options.takes_block_mask || options.masks_only || options.positions || options.append ||
      options.quantise) {
    throw Error(ErrorCode::usage,
                "context parallel was given options of another use: takes_block_mask, masks_only, "
                "positions, append or quantise",
                "leave them out of its options");
  }
  options.merge = true;
  return options;
}

std::vector<parallel::Fact> facts_of(const Spec& spec) {
  std::vector<parallel::Fact> facts = {{"the library's version", version()}};
  const auto keys = nlohmann::ordered_json::parse(to_json(spec));
  for (const auto& [key, value] : keys.items()) {
    if (key != "name") facts.push_back({key, value.dump()});
  }
  return facts;
}

// Errors of one rank say whose they are.
template <typename Body>
auto naming_rank(int rank, Body body) {
  const DefaultFloatEnvironment floats;
  try {
    return body();
  } catch (const Error& error) {
    throw Error({.code = error.code(),
                 .message = fmt::format("rank {}: {}", rank, error.message()),
                 .place = error.place(),
                 .notes = error.notes(),
                 .hint = error.hint()});
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::memory, fmt::format("rank {}: out of memory", rank));
  }
}

}  // namespace

class ContextParallel::Implementation {
 public:
  Implementation(Spec spec, std::shared_ptr<Communicator> communicator,
                 const AttentionOptions& options)
      : spec_(std::move(spec)),
        communicator_(std::move(communicator)),
        shard_spec_(parallel::shard_spec(spec_)),
        attention_(agreed_spec(), pair_options(options)),
        threads_(options.threads) {
    if (!spec_.gradients.empty()) {
      sum_kernel_ = parallel::RowSums::compile(attention_, options.kernels);
    }
  }

  const Spec& spec() const { return spec_; }
  Communicator& communicator() const { return *communicator_; }
  int rank() const { return communicator_->rank(); }

  Bindings bind(const Shape& whole, const SnippetInputs& inputs) const {
    require_packed(false);
    validate(whole);
    return attention_.bind(parallel::shard_inputs(shard_spec_, spec_, whole, inputs));
  }

  Bindings bind(const SharedSequences& whole, const SnippetInputs& inputs) const {
    require_packed(true);
    const SharedSequences sequences = parallel::completed(whole);
    Shape shape = parallel::whole_of(sequences);
    shape.batch = std::ssize(sequences.q_begin) - 1;
    return attention_.bind(parallel::shard_inputs(shard_spec_, spec_, shape, inputs));
  }

  ContextPlan plan(const Shape& whole, const Bindings& given,
                   const ContextPlanOptions& options) const {
    require_packed(false);
    std::optional<Bindings> made = without_inputs(whole, given);
    auto state =
        parallel::make_plan(attention_, *communicator_, whole, made ? *made : given, options);
    return connected(std::move(state), std::move(made));
  }

  ContextPlan plan(const SharedSequences& whole, const Bindings& given,
                   const ContextPlanOptions& options) const {
    require_packed(true);
    std::optional<Bindings> made = without_inputs(whole, given);
    auto state = parallel::make_packed_plan(attention_, *communicator_, whole, made ? *made : given,
                                            options);
    return connected(std::move(state), std::move(made));
  }

  ContextPlan connected(std::shared_ptr<ContextPlanState> state,
                        std::optional<Bindings> made) const {
    state->owner = this;
    state->bindings = std::move(made);
    if (state->gradients) {
      state->sums = parallel::RowSums::make(attention_.device(), sum_kernel_, threads_);
    }
    connect(*state);
    return ContextPlan(std::move(state));
  }

  void forward(const ForwardTensors& tensors, const ContextPlan& plan, const Bindings& given,
               const ContextCallOptions& options) const {
    ContextPlanState& state = plan.state();
    require_own(state);
    parallel::require_tensors(attention_.spec(), spec_.outputs.lse, tensors, state,
                              options.workspace);
    parallel::run_forward(attention_, *communicator_, tensors, state, bindings_of(state, given),
                          options);
  }

  void backward(const BackwardTensors& tensors, const ContextPlan& plan, const Bindings& given,
                const GradientBuffers& gradients, const ContextCallOptions& options) const {
    ContextPlanState& state = plan.state();
    require_own(state);
    require_gradients(spec_);
    const Bindings& bindings = bindings_of(state, given);
    parallel::require_backward_tensors(attention_.spec(), tensors, state, bindings, gradients,
                                       options);
    parallel::run_backward(attention_, *communicator_, tensors, state, bindings, gradients,
                           options);
  }

  std::int64_t workspace_size(const ContextPlan& plan, Pass pass, bool deterministic) const {
    require_own(plan.state());
    if (pass == Pass::forward) return plan.state().schedule.workspace_bytes;
    require_gradients(spec_);
    return plan.state().gradients->workspace_bytes(deterministic);
  }

 private:
  const Spec& agreed_spec() const {
    parallel::require_agreement(*communicator_, facts_of(spec_), ErrorCode::spec);
    return shard_spec_.spec;
  }

  // A spec without buffers, whose scalars have defaults, needs no bind(). Its lengths may be
  // scalars here.
  template <typename Whole>
  std::optional<Bindings> without_inputs(const Whole& whole, const Bindings& given) const {
    if (!given.is_default() || !spec_.buffers.empty() || shard_spec_.spec.scalars.empty()) {
      return std::nullopt;
    }
    for (const auto& [name, scalar] : spec_.scalars) {
      if (!scalar.default_value) return std::nullopt;
    }
    return bind(whole, {});
  }

  static const Bindings& bindings_of(const ContextPlanState& state, const Bindings& given) {
    return given.is_default() && state.bindings ? *state.bindings : given;
  }

  void require_packed(bool is_packed) const {
    if (spec_.is_packed() == is_packed) return;
    throw Error(ErrorCode::usage,
                is_packed ? "sequences were given for a dense spec"
                          : "the shape of a dense call was given for a packed spec",
                is_packed ? "give a Shape" : "give SharedSequences");
  }

  void require_own(const ContextPlanState& state) const {
    if (state.owner == this) return;
    throw Error(ErrorCode::usage, "the plan belongs to another ContextParallel",
                "pass a plan to the object that made it");
  }

  void connect(const ContextPlanState& state) const {
    std::vector<int> to;
    std::vector<int> from;
    for (const parallel::Step& step : state.schedule.steps) {
      if (!step.sends.empty()) to.push_back(step.sends.front().peer);
      if (!step.receives.empty()) from.push_back(step.receives.front().peer);
    }
    if (state.gradients && !state.gradients->buffers.empty()) {
      // Shares of their sums go to all.
      to.resize(static_cast<std::size_t>(communicator_->size()));
      std::iota(to.begin(), to.end(), 0);
      to.erase(to.begin() + rank());
      from = to;
    } else if (state.gradients) {
      // Gradients travel the other way.
      std::vector<int> both = to;
      both.insert(both.end(), from.begin(), from.end());
      std::sort(both.begin(), both.end());
      both.erase(std::unique(both.begin(), both.end()), both.end());
      to = both;
      from = both;
    }
    communicator_->connect(to, from);
  }

  Spec spec_;
  std::shared_ptr<Communicator> communicator_;
  parallel::ShardSpec shard_spec_;
  Attention attention_;
  Executor* threads_;
  std::vector<std::byte> sum_kernel_;  // of a spec with gradients, on a GPU
};

ContextParallel::ContextParallel(Spec spec, std::shared_ptr<Communicator> communicator,
                                 AttentionOptions options) {
  const int rank = given_communicator(communicator).rank();
  naming_rank(rank, [&] {
    implementation_ =
        std::make_unique<Implementation>(std::move(spec), std::move(communicator), options);
  });
}

ContextParallel::ContextParallel(ContextParallel&&) noexcept = default;
ContextParallel& ContextParallel::operator=(ContextParallel&&) noexcept = default;
ContextParallel::~ContextParallel() = default;

const Spec& ContextParallel::spec() const {
  return implementation_->spec();
}

Communicator& ContextParallel::communicator() const {
  return implementation_->communicator();
}

Bindings ContextParallel::bind(const Shape& whole, const SnippetInputs& inputs) const {
  return naming_rank(implementation_->rank(), [&] { return implementation_->bind(whole, inputs); });
}

ContextPlan ContextParallel::plan(const Shape& whole, const Bindings& bindings,
                                  const ContextPlanOptions& options) const {
  return naming_rank(implementation_->rank(),
                     [&] { return implementation_->plan(whole, bindings, options); });
}

Bindings ContextParallel::bind(const SharedSequences& whole, const SnippetInputs& inputs) const {
  return naming_rank(implementation_->rank(), [&] { return implementation_->bind(whole, inputs); });
}

ContextPlan ContextParallel::plan(const SharedSequences& whole, const Bindings& bindings,
                                  const ContextPlanOptions& options) const {
  return naming_rank(implementation_->rank(),
                     [&] { return implementation_->plan(whole, bindings, options); });
}

std::int64_t ContextParallel::workspace_size(const ContextPlan& plan, Pass pass) const {
  return workspace_size(plan, pass, false);
}

std::int64_t ContextParallel::workspace_size(const ContextPlan& plan, Pass pass,
                                             bool deterministic) const {
  return naming_rank(implementation_->rank(),
                     [&] { return implementation_->workspace_size(plan, pass, deterministic); });
}

void ContextParallel::forward(const ForwardTensors& tensors, const ContextPlan& plan,
                              const Bindings& bindings, const ContextCallOptions& options) const {
  naming_rank(implementation_->rank(),
              [&] { implementation_->forward(tensors, plan, bindings, options); });
}

void ContextParallel::backward(const BackwardTensors& tensors, const ContextPlan& plan,
                               const Bindings& bindings, const GradientBuffers& gradients,
                               const ContextCallOptions& options) const {
  naming_rank(implementation_->rank(),
              [&] { implementation_->backward(tensors, plan, bindings, gradients, options); });
}

void ContextParallel::wait(Stream stream) const {
  naming_rank(implementation_->rank(), [&] { communicator().wait(stream); });
}

}  // namespace tilewright
