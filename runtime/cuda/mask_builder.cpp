#include "runtime/cuda/mask_builder.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/cuda/tile_lists.hpp"

namespace tilewright::cuda {
namespace {

constexpr std::int64_t kMaxBlocks = std::numeric_limits<std::int32_t>::max();  // of a launch

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Sizes of the tables that the kernels work on.
struct Sizes {
  std::int64_t batch, heads, q_blocks, kv_blocks, state_words, rows;

  explicit Sizes(const MaskFingerprint& fingerprint)
      : batch(fingerprint.shape.batch),
        heads(fingerprint.shape.num_q_heads),
        q_blocks(ceil_div(fingerprint.shape.q_len, fingerprint.source.block[0])),
        kv_blocks(ceil_div(fingerprint.shape.kv_len, fingerprint.source.block[1])),
        state_words(ceil_div(kv_blocks, abi::cuda::kMaskTilesPerBlock)),
        rows(batch * heads * q_blocks) {}
};

void require_launchable(const Sizes& sizes) {
  if (sizes.rows <= kMaxBlocks / sizes.state_words) return;
  throw Error(ErrorCode::block_mask,
              fmt::format("the block mask has {} x {} tiles, more than a launch takes", sizes.rows,
                          sizes.kv_blocks),
              "choose a greater block in the spec");
}

class Builder {
 public:
  Builder(const Driver& driver, const ContextScope& scope, const Sizes& sizes,
          SnippetParameter& snippet, Stream stream)
      : driver_(driver),
        scope_(scope),
        sizes_(sizes),
        snippet_(snippet),
        stream_(stream),
        states_(driver, scope, static_cast<std::size_t>(sizes.rows * sizes.state_words) * 4, stream,
                StreamMemory::Release::in_order),
        counts_(driver, scope, counts_bytes(), stream, StreamMemory::Release::in_order),
        lists_(std::make_shared<TileListMemory>(driver, scope, sizes.rows, stream)) {}

  TileCounts run(const MaskKernels& kernels) {
    driver_.check(driver_.functions().fill_bytes(counts_.pointer(), 0, counts_bytes(), stream_),
                  "clearing a block mask's counts");
    launch(kernels.count, sizes_.rows * sizes_.state_words, abi::cuda::kMaskThreads);
    launch(kernels.scan, 1 + sizes_.batch * sizes_.heads, abi::cuda::kMaskScanThreads);
    const TileCounts counts = lists_->read_counts(stream_);
    lists_->reserve_indices(scope_, counts, stream_);
    indices_are_there_ = true;
    launch(kernels.fill, ceil_div(sizes_.rows, abi::cuda::kMaskRowsPerBlock),
           abi::cuda::kMaskThreads);
    return counts;
  }

  std::shared_ptr<const TileListMemory> lists() const { return lists_; }

 private:
  std::size_t counts_bytes() const { return static_cast<std::size_t>(sizes_.rows) * 8; }

  abi::cuda::MaskArguments arguments() const {
    return {.states = reinterpret_cast<unsigned*>(states_.pointer()),
            .counts = reinterpret_cast<unsigned long long*>(counts_.pointer()),
            .row_offsets = lists_->row_offsets(),
            .indices = indices_are_there_ ? lists_->indices() : nullptr,
            .full_row_offsets = lists_->full_row_offsets(),
            .full_indices = indices_are_there_ ? lists_->full_indices() : nullptr,
            .rows_by_cost = lists_->rows_by_cost(),
            .batch = static_cast<int>(sizes_.batch),
            .heads = static_cast<int>(sizes_.heads),
            .q_blocks = static_cast<int>(sizes_.q_blocks),
            .kv_blocks = static_cast<int>(sizes_.kv_blocks),
            .state_words = static_cast<int>(sizes_.state_words),
            .reserved = 0};
  }

  // scan and fill take the first parameter only, and a launch reads as many as its kernel has.
  void launch(const Kernel& kernel, std::int64_t blocks, int threads) {
    abi::cuda::MaskArguments mask = arguments();
    void* parameters[] = {&mask, snippet_.data()};
    driver_.check(driver_.functions().launch(kernel.function, static_cast<unsigned>(blocks), 1, 1,
                                             static_cast<unsigned>(threads), 1, 1, 0, stream_,
                                             parameters, nullptr),
                  "launching a block mask's kernel");
  }

  const Driver& driver_;
  const ContextScope& scope_;
  const Sizes& sizes_;
  SnippetParameter& snippet_;
  Stream stream_;
  StreamMemory states_;
  StreamMemory counts_;
  std::shared_ptr<TileListMemory> lists_;
  bool indices_are_there_ = false;
};

}  // namespace

BlockMask build_block_mask(const Driver& driver, const ContextScope& scope,
                           const MaskKernels& kernels, MaskFingerprint fingerprint,
                           const Shape& shape, const BindingArguments& bindings, Stream stream) {
  const Sizes sizes(fingerprint);
  require_launchable(sizes);
  SnippetParameter snippet(bindings, shape);
  Builder builder(driver, scope, sizes, snippet, stream);
  const TileCounts counts = builder.run(kernels);
  return BlockMask(std::move(fingerprint), builder.lists(), counts.partial, counts.full, "exact",
                   sizes.rows * sizes.kv_blocks);
}

}  // namespace tilewright::cuda
