#include "fuzz/interpretations.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "generator/snippet/parse.hpp"

namespace tilewright::verify::fuzz {

UserInterpretations::UserInterpretations(const Spec& spec, const Toolchain& toolchain)
    : in_float(spec, toolchain), in_double(spec, toolchain) {}

CaseInterpretations::CaseInterpretations(const FuzzCase& fuzz_case, const Problem& problem,
                                         const CallValues& values, const UserInterpretations* user,
                                         const Parts::Piece* sequence)
    : case_(fuzz_case), user_(has_all_trees(fuzz_case) ? nullptr : user), values_(values) {
  if (!has_all_trees(fuzz_case)) {
    if (!user)
      throw Error(ErrorCode::internal, "a snippet without a tree needs compiled interpretations");
    if (sequence == nullptr) {
      arguments_ = user_values_.emplace(fuzz_case.spec, problem.snippet, problem.shape).arguments();
    } else {
      arguments_ = sequence->arguments;
    }
  }
  if (sequence != nullptr) {
    values_.shape.batch = 1;
    values_.shape.q_len = sequence->rows();
    values_.shape.kv_len = sequence->columns();
    values_.shape.q_offset = sequence->arguments.q_offset;
    values_.shape.kv_offset = sequence->arguments.kv_offset;
    values_.first_b = sequence->b;
    values_.q_token_offset = sequence->arguments.q_token_offset;
    values_.kv_token_offset = sequence->arguments.kv_token_offset;
  }
  decide_kept();
}

std::size_t CaseInterpretations::index(std::int64_t b, std::int64_t h, std::int64_t row) const {
  const Shape& shape = values_.shape;
  return static_cast<std::size_t>(((b * shape.num_q_heads + h) * shape.q_len + row) * shape.kv_len);
}

void CaseInterpretations::decide_kept() {
  const Shape& shape = values_.shape;
  kept_.assign(
      static_cast<std::size_t>(shape.batch * shape.num_q_heads * shape.q_len * shape.kv_len), 1);
  if (case_.spec.mask_mod.empty()) return;
  std::optional<Interpreter<float>> mask;
  if (!user_) mask.emplace(*case_.mask_mod, values_);
  const std::vector<float> scores(static_cast<std::size_t>(shape.kv_len));
  std::vector<float> modified(scores.size());
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.num_q_heads; ++h) {
      for (std::int64_t row = 0; row < shape.q_len; ++row) {
        unsigned char* keep = kept_.data() + index(b, h, row);
        if (mask) {
          mask->keep({b, h, row}, keep);
        } else {
          read_user_row(user_->in_float, b, h, row, scores.data(), modified.data(), keep);
        }
      }
    }
  }
}

template <typename Score, typename Interpretation>
RowSnippets<Score> CaseInterpretations::rows(const Interpretation* user,
                                             const FunctionErrors& errors) const {
  std::shared_ptr<const Interpreter<Score>> score_mod;
  if (!user && case_.score_mod) {
    score_mod = std::make_shared<const Interpreter<Score>>(*case_.score_mod, values_, errors);
  }
  return [this, user, score_mod](std::int64_t b, std::int64_t h, std::int64_t row,
                                 const Score* scores, Score* modified, unsigned char* keep) {
    if (user) {
      read_user_row(*user, b, h, row, scores, modified, keep);
    } else if (score_mod) {
      score_mod->modify({b, h, row}, scores, modified);
    } else {
      std::copy(scores, scores + values_.shape.kv_len, modified);
    }
    std::copy(kept_row(b, h, row), kept_row(b, h, row) + values_.shape.kv_len, keep);
  };
}

template <typename Score>
void CaseInterpretations::evaluate_scale(SnippetKind kind, std::int64_t b, std::int64_t h,
                                         std::int64_t first, std::int64_t count,
                                         double* values) const {
  // A column that is not there serves a sequence without any.
  CallValues call = values_;
  call.shape.kv_len = std::max<std::int64_t>(call.shape.kv_len, 1);
  const SnippetTree tree = snippet::parse(kind, snippet_text(case_.spec, kind), case_.spec);
  const Interpreter<Score> scale(tree, call);
  const bool is_of_kv = kind == SnippetKind::k_scale || kind == SnippetKind::v_scale;
  const std::vector<Score> scores(static_cast<std::size_t>(call.shape.kv_len));
  std::vector<Score> row(scores.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (i == 0 || !is_of_kv) {
      scale.modify({b - values_.first_b, h, is_of_kv ? 0 : first + i}, scores.data(), row.data());
    }
    values[i] = static_cast<double>(row[is_of_kv ? static_cast<std::size_t>(first + i) : 0]);
  }
}

ScaleValues CaseInterpretations::scales() const {
  if (!case_.spec.has_other_snippets()) return {};
  return [this](SnippetKind kind, const abi::SnippetArguments& arguments, std::int64_t b,
                std::int64_t h, std::int64_t first, std::int64_t count, double* values) {
    if (user_) {
      scale_values(user_->in_float, user_->in_double)(kind, arguments, b, h, first, count, values);
      return;
    }
    if (kind == SnippetKind::dropout) {  // kernels decide in float what is dropped
      evaluate_scale<float>(kind, b, h, first, count, values);
    } else {
      evaluate_scale<double>(kind, b, h, first, count, values);
    }
  };
}

RowSnippets<double> CaseInterpretations::in_double() const {
  return rows<double>(user_ ? &user_->in_double : nullptr, {});
}

RowSnippets<float> CaseInterpretations::in_float(const FunctionErrors& errors) const {
  return rows<float>(user_ ? &user_->in_float : nullptr, errors);
}

}  // namespace tilewright::verify::fuzz
