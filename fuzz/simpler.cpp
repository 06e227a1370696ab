#include "fuzz/simpler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "fuzz/simpler_expressions.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright::verify::fuzz {
namespace {

// Cases that are valid, without those that are no change.
class Candidates {
 public:
  explicit Candidates(const FuzzCase& from) : from_(from), text_(to_json(from)) {}

  template <typename Change>
  void add(const Change& change) {
    FuzzCase candidate = from_;
    change(candidate);
    print_snippets(candidate);
    try {
      tilewright::validate(candidate.spec);
      if (is_run(candidate) && candidate.spec.is_packed()) {
        set_totals(candidate.shape, candidate.packing);
      }
      if (is_run(candidate)) validate_sizes(candidate);
    } catch (const Error&) {
      return;
    }
    if (to_json(candidate) != text_) cases_.push_back(std::move(candidate));
  }

  std::vector<FuzzCase> take() { return std::move(cases_); }

 private:
  const FuzzCase& from_;
  std::string text_;
  std::vector<FuzzCase> cases_;
};

// Sizes below n and from `least` on, the least first. n - 2 and one more than a half keep n's
// parity or break it.
std::vector<std::int64_t> smaller(std::int64_t n, std::int64_t least = 1) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, n / 4, n / 2, n / 2 + 1,
        n - n / 4, n - 2, n - 1}) {
    const bool is_new = std::find(sizes.begin(), sizes.end(), size) == sizes.end();
    if (size >= least && size < n && is_new) sizes.push_back(size);
  }
  return sizes;
}

void shrink_offset(Candidates& candidates, std::int64_t Shape::*offset, std::int64_t value) {
  if (value == 0) return;
  for (const std::int64_t smaller : {std::int64_t{0}, value / 2, value < 0 ? -value : value - 1}) {
    candidates.add([&](FuzzCase& c) { c.shape.*offset = smaller; });
  }
}

void simpler_dense_shapes(const Shape& shape, Candidates& candidates) {
  for (const std::int64_t size : smaller(shape.batch)) {
    candidates.add([&](FuzzCase& c) { c.shape.batch = size; });
  }
  for (const std::int64_t size : smaller(std::min(shape.q_len, shape.kv_len))) {
    candidates.add([&](FuzzCase& c) { c.shape.q_len = c.shape.kv_len = size; });
  }
  for (const std::int64_t size : smaller(shape.q_len)) {
    candidates.add([&](FuzzCase& c) { c.shape.q_len = size; });
  }
  for (const std::int64_t size : smaller(shape.kv_len)) {
    candidates.add([&](FuzzCase& c) { c.shape.kv_len = size; });
  }
  shrink_offset(candidates, &Shape::q_offset, shape.q_offset);
  shrink_offset(candidates, &Shape::kv_offset, shape.kv_offset);
}

// Sequences go by halves, quarters, ..., and at last one by one; then each gets shorter.
void fewer_sequences(const std::vector<FuzzSequence>& all, Candidates& candidates) {
  const std::size_t count = all.size();
  for (std::size_t part = (count + 1) / 2; part > 0 && count > 1; part /= 2) {
    for (std::size_t first = 0; first < count; first += part) {
      candidates.add([&](FuzzCase& c) {
        std::vector<FuzzSequence>& left = c.packing.sequences;
        const auto begin = left.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = left.begin() + static_cast<std::ptrdiff_t>(std::min(first + part, count));
        if (static_cast<std::size_t>(end - begin) < count) left.erase(begin, end);
      });
    }
  }
}

void shorter_sequences(const std::vector<FuzzSequence>& all, Candidates& candidates) {
  for (std::size_t b = 0; b < all.size(); ++b) {
    const auto change = [&](std::int64_t FuzzSequence::*field, std::int64_t value) {
      candidates.add([&](FuzzCase& c) { c.packing.sequences[b].*field = value; });
    };
    for (const std::int64_t size : smaller(all[b].q_len, 0)) change(&FuzzSequence::q_len, size);
    for (const std::int64_t size : smaller(all[b].kv_len, 0)) change(&FuzzSequence::kv_len, size);
    for (std::int64_t FuzzSequence::*const offset :
         {&FuzzSequence::q_offset, &FuzzSequence::kv_offset}) {
      const std::int64_t value = all[b].*offset;
      if (value != 0) change(offset, 0);
      if (value / 2 != 0) change(offset, value / 2);
    }
  }
}

void simpler_packing(const FuzzPacking& packing, Candidates& candidates) {
  fewer_sequences(packing.sequences, candidates);
  candidates.add([](FuzzCase& c) { c.packing.has_q_offset = c.packing.has_kv_offset = false; });
  for (bool FuzzPacking::*const flag :
       {&FuzzPacking::has_q_offset, &FuzzPacking::has_kv_offset, &FuzzPacking::is_bounded}) {
    candidates.add([&](FuzzCase& c) { c.packing.*flag = false; });
  }
  candidates.add([](FuzzCase& c) { c.packing.kv_rows = KvRows::together; });
  for (std::int64_t FuzzPacking::*const rows :
       {&FuzzPacking::q_rows_before, &FuzzPacking::q_rows_after, &FuzzPacking::kv_gap}) {
    candidates.add([&](FuzzCase& c) { c.packing.*rows = 0; });
  }
  shorter_sequences(packing.sequences, candidates);
}

bool mentions(const Spec& spec, const std::string& name) {
  return std::any_of(snippet_kinds().begin(), snippet_kinds().end(), [&](SnippetKind kind) {
    const std::string& text = snippet_text(spec, kind);
    return !text.empty() && check_snippet(kind, text).mentions(name);
  });
}

void drop_gradients(FuzzCase& c) {
  c.spec.gradients.clear();
  c.dlse = c.deterministic = false;
}

bool is_seed(const Spec& spec, const std::string& name) {
  return spec.has_dropout() && name == "seed";
}

// Declarations that no snippet reads any more, and gradients of what score_mod does not read.
void drop_unread(FuzzCase& c) {
  const auto is_unread = [&](const std::string& name) {
    return !mentions(c.spec, name) && !is_seed(c.spec, name);
  };
  std::erase_if(c.spec.buffers, [&](const auto& buffer) { return is_unread(buffer.first); });
  std::erase_if(c.spec.scalars, [&](const auto& scalar) { return is_unread(scalar.first); });
  std::erase_if(c.spec.gradients, [&](const std::string& name) {
    const bool is_tensor = name == "q" || name == "k" || name == "v";
    return !is_tensor && (c.spec.score_mod.empty() ||
                          !check_snippet(SnippetKind::score_mod, c.spec.score_mod).mentions(name));
  });
  if (c.spec.gradients.empty()) drop_gradients(c);
  std::erase_if(c.scalars,
                [&](const auto& scalar) { return !c.spec.scalars.contains(scalar.first); });
  std::erase_if(c.null_extents,
                [&](const auto& extents) { return !c.spec.buffers.contains(extents.first); });
}

// Whose buffers have the sizes that it is called with.
bool is_users_text(const FuzzCase& c) {
  return (!c.spec.score_mod.empty() && !c.score_mod) || (!c.spec.mask_mod.empty() && !c.mask_mod);
}

// Without it, with a number as its probability, and with a seed that is a scalar.
void simpler_dropout(const Spec& spec, Candidates& candidates) {
  if (!spec.has_dropout()) return;
  for (const char* const text : {"", "0.5"}) {
    candidates.add([&](FuzzCase& c) {
      c.spec.dropout = text;
      drop_unread(c);
    });
  }
  if (!spec.has_seed_buffer()) return;
  candidates.add([](FuzzCase& c) {
    c.spec.buffers.erase("seed");
    c.spec.scalars["seed"] = {.dtype = DType::i64};
  });
}

// None, each alone, and one less.
void simpler_gradients(const Spec& spec, Candidates& candidates) {
  if (spec.gradients.empty()) return;
  candidates.add(drop_gradients);
  for (const std::string& name : spec.gradients) {
    candidates.add([&](FuzzCase& c) { c.spec.gradients = {name}; });
  }
  for (const std::string& name : spec.gradients) {
    if (spec.gradients.size() < 3) continue;
    candidates.add([&](FuzzCase& c) { std::erase(c.spec.gradients, name); });
  }
}

void simpler_types(const Spec& spec, Candidates& candidates) {
  candidates.add([](FuzzCase& c) { c.spec.kv_dtype = c.spec.out_dtype = std::nullopt; });
  candidates.add([](FuzzCase& c) { c.spec.kv_dtype = std::nullopt; });
  candidates.add([](FuzzCase& c) { c.spec.out_dtype = std::nullopt; });
  candidates.add([](FuzzCase& c) { c.spec.dtype = DType::f32; });
  candidates.add([](FuzzCase& c) { c.spec.v_head_dim = 0; });
  for (const std::int64_t size : {16, 32, 64}) {
    if (size < spec.head_dim) candidates.add([&](FuzzCase& c) { c.spec.head_dim = size; });
    if (size < spec.v_head_dim) candidates.add([&](FuzzCase& c) { c.spec.v_head_dim = size; });
  }
  candidates.add([](FuzzCase& c) { c.spec.kv_layout = std::nullopt; });
  if (!spec.is_packed()) candidates.add([](FuzzCase& c) { c.spec.layout = Layout::bhsd; });
  simpler_gradients(spec, candidates);
  simpler_dropout(spec, candidates);
  candidates.add([](FuzzCase& c) { c.spec.outputs.weights = false; });
  candidates.add([](FuzzCase& c) { c.spec.outputs.lse = c.spec.outputs.weights = false; });
  candidates.add([](FuzzCase& c) { c.spec.outputs.max_scores = false; });
  candidates.add([](FuzzCase& c) { c.spec.precise_math.reset(); });
  candidates.add([](FuzzCase& c) { c.spec.f32_products = F32Products::ieee; });
  candidates.add([](FuzzCase& c) { c.spec.scale = std::nullopt; });
  candidates.add([](FuzzCase& c) { c.spec.tactic = std::nullopt; });
  candidates.add([](FuzzCase& c) { c.spec.block = Spec{}.block; });
  if (!spec.tactic) return;
  for (const auto& [name, unused] : spec.tactic->parameters) {
    candidates.add([name = name](FuzzCase& c) { c.spec.tactic->parameters.erase(name); });
  }
}

void simpler_buffers(const Spec& spec, Candidates& candidates) {
  for (const auto& [key, buffer] : spec.buffers) {
    const std::string& name = key;
    const auto change = [&](const auto& body) {
      candidates.add([&](FuzzCase& c) { body(c.spec.buffers.at(name)); });
    };
    change([](BufferSpec& b) { b.sorted = false; });
    change([](BufferSpec& b) { b.sorted = static_cast<bool>(b.sorted); });
    change([](BufferSpec& b) { b.range = std::nullopt; });
    change([](BufferSpec& b) { b.bounds = Bounds::clamped; });
    change([](BufferSpec& b) { b.dtype = is_floating(b.dtype) ? DType::f32 : DType::i32; });
  }
}

void simpler_scalars(const FuzzCase& from, Candidates& candidates) {
  for (const auto& [key, value] : from.scalars) {
    const std::string& name = key;
    if (value != 0 && value != 1) candidates.add([&](FuzzCase& c) { c.scalars[name] = 1; });
    if (value != 0) candidates.add([&](FuzzCase& c) { c.scalars[name] = 0; });
  }
}

void simpler_inputs(const FuzzCase& from, Candidates& candidates) {
  candidates.add([](FuzzCase& c) { c.q = c.k = c.v = c.buffers = c.out = Placement{}; });
  for (Placement FuzzCase::*const placement :
       {&FuzzCase::q, &FuzzCase::k, &FuzzCase::v, &FuzzCase::buffers, &FuzzCase::out}) {
    candidates.add([&](FuzzCase& c) { c.*placement = Placement{}; });
    candidates.add([&](FuzzCase& c) { (c.*placement).offset = 0; });
    candidates.add([&](FuzzCase& c) { (c.*placement).row_padding = 0; });
  }
  for (bool FuzzCase::*const flag :
       {&FuzzCase::broadcast_kv, &FuzzCase::one_kv_head_for_all, &FuzzCase::broadcast_buffers,
        &FuzzCase::nan_in_dropped, &FuzzCase::split, &FuzzCase::decode, &FuzzCase::dlse,
        &FuzzCase::deterministic, &FuzzCase::batch_invariant}) {
    candidates.add([&](FuzzCase& c) { c.*flag = false; });
  }
  candidates.add([](FuzzCase& c) { c.splits = 0; });
  candidates.add([](FuzzCase& c) { c.relation.clear(); });
  candidates.add([](FuzzCase& c) { c.sanitized = false; });
  candidates.add([](FuzzCase& c) { c.scale = std::nullopt; });
  candidates.add([](FuzzCase& c) { c.q_factor = 1; });
  for (const auto& [key, unused] : from.scalars) {
    candidates.add([&name = key](FuzzCase& c) { c.scalars.erase(name); });
  }
  if (from.seed > 1) candidates.add([](FuzzCase& c) { c.seed = 1; });
}

}  // namespace

std::vector<FuzzCase> simpler_shapes(const FuzzCase& from) {
  Candidates candidates(from);
  if (!is_run(from)) return {};
  const Shape& shape = from.shape;
  candidates.add([](FuzzCase& c) { c.shape.num_q_heads = c.shape.num_kv_heads = 1; });
  candidates.add(
      [](FuzzCase& c) { c.shape.num_q_heads /= c.shape.num_kv_heads, c.shape.num_kv_heads = 1; });
  candidates.add([](FuzzCase& c) { c.shape.num_q_heads = c.shape.num_kv_heads; });
  if (from.spec.is_packed()) {
    simpler_packing(from.packing, candidates);
  } else {
    simpler_dense_shapes(shape, candidates);
  }
  for (const std::int64_t size : smaller(is_users_text(from) ? 1 : from.free_dim)) {
    candidates.add([&](FuzzCase& c) { c.free_dim = size; });
  }
  return candidates.take();
}

std::vector<FuzzCase> simpler_features(const FuzzCase& from) {
  Candidates candidates(from);
  candidates.add([](FuzzCase& c) {
    c.score_mod = std::nullopt;
    c.spec.score_mod.clear();
    drop_unread(c);
  });
  candidates.add([](FuzzCase& c) {
    c.mask_mod = std::nullopt;
    c.spec.mask_mod.clear();
    drop_unread(c);
  });
  for (const SnippetKind kind :
       {SnippetKind::q_scale, SnippetKind::k_scale, SnippetKind::v_scale, SnippetKind::sink}) {
    candidates.add([&](FuzzCase& c) {
      snippet_text(c.spec, kind).clear();
      drop_unread(c);
    });
  }
  candidates.add(drop_unread);
  simpler_types(from.spec, candidates);
  // A user's text relies on what is declared and on its scalars: what is undefined without them
  // would be no defect of it.
  const bool keeps_promises = !has_all_trees(from);
  if (!keeps_promises) simpler_buffers(from.spec, candidates);
  if (is_run(from)) simpler_inputs(from, candidates);
  if (is_run(from) && !keeps_promises) simpler_scalars(from, candidates);
  return candidates.take();
}

std::vector<FuzzCase> simpler_snippets(const FuzzCase& from) {
  Candidates candidates(from);
  for (std::optional<SnippetTree> FuzzCase::*const snippet :
       {&FuzzCase::score_mod, &FuzzCase::mask_mod}) {
    if (!(from.*snippet)) continue;
    for (SnippetTree& tree : simpler_trees(*(from.*snippet))) {
      candidates.add([&](FuzzCase& c) {
        c.*snippet = std::move(tree);
        print_snippets(c);
        drop_unread(c);
      });
    }
  }
  return candidates.take();
}

}  // namespace tilewright::verify::fuzz
