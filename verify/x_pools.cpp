#include "verify/x_pools.hpp"

#include <cstddef>
#include <cstring>

#include "generator/spec/spec.hpp"

namespace tilewright::verify {

Pool::Pool(const TensorView& view, bool is_x)
    : view_(view), row_(is_x ? 3 : 1), head_(is_x ? 1 : 2), column_(is_x ? 2 : 3) {
  if (view.rank == 5) x_ = view.shape[4];
}

Tensor x_pool(const TensorView& pool, bool is_k) {
  const Pool from(pool, false);
  const std::int64_t x = x_of(pool.dtype);
  Tensor made =
      is_k
          ? Tensor::zeros(pool.dtype,
                          {from.pages(), from.heads(), from.width() / x, from.page_size(), x})
          : Tensor::zeros(pool.dtype, {from.pages(), from.heads(), from.width(), from.page_size()});
  const Pool to(made.view(), true);
  const auto bytes = static_cast<std::int64_t>(size_of(pool.dtype));
  for (std::int64_t page = 0; page < from.pages(); ++page) {
    for (std::int64_t row = 0; row < from.page_size(); ++row) {
      for (std::int64_t h = 0; h < from.heads(); ++h) {
        for (std::int64_t i = 0; i < from.width(); ++i) {
          std::memcpy(static_cast<std::byte*>(made.data()) + to.at(page, row, h, i) * bytes,
                      static_cast<const std::byte*>(pool.data) + from.at(page, row, h, i) * bytes,
                      static_cast<std::size_t>(bytes));
        }
      }
    }
  }
  return made;
}

}  // namespace tilewright::verify
