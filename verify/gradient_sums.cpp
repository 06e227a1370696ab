#include "verify/gradient_sums.hpp"

#include <cstddef>
#include <cstdint>

namespace tilewright::verify {
namespace {

void add_rows(const Values& part, std::int64_t first, bool in_float, Values& whole) {
  for (std::int64_t b = 0; b < part.batch; ++b) {
    for (std::int64_t h = 0; h < part.heads; ++h) {
      for (std::int64_t i = 0; i < part.rows * part.width; ++i) {
        double& sum = whole.row(b, h, first)[i];
        sum += part.row(b, h, 0)[i];
        if (in_float) sum = static_cast<double>(static_cast<float>(sum));
      }
    }
  }
}

}  // namespace

void add_cells(const std::vector<double>& part, bool in_float, std::vector<double>& sums) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    sums[i] += part[i];
    if (in_float) sums[i] = static_cast<double>(static_cast<float>(sums[i]));
  }
}

void add_part(const GradientValues& part, const Parts::Piece& piece, bool in_float,
              GradientValues& whole) {
  add_rows(part.dq, piece.row, in_float, whole.dq);
  add_rows(part.dk, piece.kv_row, in_float, whole.dk);
  add_rows(part.dv, piece.kv_row, in_float, whole.dv);
  add_cells(part.named, in_float, whole.named);
}

}  // namespace tilewright::verify
