#include "verify/random_pages.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/counted.hpp"
#include "base/error.hpp"
#include "verify/random.hpp"

namespace tilewright::verify {
namespace {

using Table = PageOptions::Table;

// Unused entries after a sequence's pages.
constexpr std::int64_t kGapEntries = 2;

std::int64_t shared_pages(std::int64_t kv_len, const PageOptions& options) {
  return std::min(kv_len, options.shared_columns) / options.page_size;
}

std::int64_t pages_needed(const std::vector<std::int64_t>& kv_lens, const PageOptions& options) {
  if (options.table == Table::none) return static_cast<std::int64_t>(kv_lens.size());
  std::int64_t own = 0, shared = 0;
  for (const std::int64_t kv_len : kv_lens) {
    const std::int64_t first = shared_pages(kv_len, options);
    own += ceil_div(kv_len, options.page_size) - first;
    shared = std::max(shared, first);
  }
  return own + shared;
}

Tensor numbers(const std::vector<std::int32_t>& values, std::vector<std::int64_t> shape) {
  Tensor tensor = Tensor::zeros(DType::i32, std::move(shape));
  std::copy(values.begin(), values.end(), static_cast<std::int32_t*>(tensor.data()));
  return tensor;
}

// Hands out the pages of a pool in random order.
class PageDealer {
 public:
  PageDealer(std::int64_t pages, std::uint64_t seed) : order_(static_cast<std::size_t>(pages)) {
    std::iota(order_.begin(), order_.end(), 0);
    Random random(seed, "pages");
    for (std::size_t i = order_.size(); i > 1; --i) {
      std::swap(
          order_[i - 1],
          order_[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i) - 1))]);
    }
  }

  std::int32_t next() { return order_[dealt_++]; }

  // -1 and a page that no sequence has, in turn.
  std::int32_t unused() {
    const bool is_page = ++unused_ % 2 == 0;  // the pool has one page more than needed
    return is_page ? order_.back() : -1;
  }

 private:
  std::vector<std::int32_t> order_;
  std::size_t dealt_ = 0;
  std::size_t unused_ = 0;
};

}  // namespace

std::int64_t pages_of_pool(const std::vector<std::int64_t>& kv_lens, const PageOptions& options) {
  const std::int64_t needed = pages_needed(kv_lens, options);
  if (options.pages == 0) return needed + std::max<std::int64_t>(1, needed / 4);
  if (options.pages > needed) return options.pages;
  throw Error(
      ErrorCode::usage,
      fmt::format("the sequences need {} of {} and one to spare; /pages={}",
                  counted(needed, "page"), counted(options.page_size, "row"), options.pages),
      fmt::format("write /pages={} or more, or leave it out", needed + 1));
}

RandomPages random_pages(const std::vector<std::int64_t>& kv_lens, const PageOptions& options,
                         std::uint64_t seed) {
  RandomPages made{
      .pages = pages_of_pool(kv_lens, options), .page_table = {}, .page_begin = {}, .is_used = {}};
  made.is_used.resize(static_cast<std::size_t>(made.pages * options.page_size));
  const auto use = [&](std::int64_t page, std::int64_t rows) {
    std::fill_n(made.is_used.begin() + page * options.page_size, rows, true);
  };
  if (options.table == Table::none) {
    std::int64_t b = 0;
    for (const std::int64_t kv_len : kv_lens) {
      if (kv_len > options.page_size) {
        throw Error(ErrorCode::usage,
                    fmt::format("sequence {} has {}, and its one page has {}", b,
                                counted(kv_len, "column"), counted(options.page_size, "row")),
                    "write a greater /page=N, or leave /static out");
      }
      use(b++, kv_len);
    }
    return made;
  }
  PageDealer dealer(made.pages, seed);
  std::vector<std::int32_t> shared, entries, begins;
  const std::int64_t longest =
      kv_lens.empty() ? 0 : *std::max_element(kv_lens.begin(), kv_lens.end());
  const std::int64_t columns = ceil_div(longest, options.page_size) + kGapEntries;
  for (const std::int64_t kv_len : kv_lens) {
    begins.push_back(static_cast<std::int32_t>(entries.size()));
    const std::int64_t pages = ceil_div(kv_len, options.page_size);
    for (std::int64_t i = 0; i < pages; ++i) {
      const bool is_shared = i < shared_pages(kv_len, options);
      if (is_shared && i == static_cast<std::int64_t>(shared.size()))
        shared.push_back(dealer.next());
      const std::int32_t page = is_shared ? shared[static_cast<std::size_t>(i)] : dealer.next();
      use(page, std::min(options.page_size, kv_len - i * options.page_size));
      entries.push_back(page);
    }
    const std::int64_t unused = options.table == Table::flat ? kGapEntries : columns - pages;
    for (std::int64_t i = 0; i < unused; ++i) entries.push_back(dealer.unused());
  }
  const auto batch = static_cast<std::int64_t>(kv_lens.size());
  if (options.table == Table::flat) {
    made.page_table = numbers(entries, {static_cast<std::int64_t>(entries.size())});
    made.page_begin = numbers(begins, {batch});
  } else {
    made.page_table = numbers(entries, {batch, columns});
  }
  return made;
}

}  // namespace tilewright::verify
