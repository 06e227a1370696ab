// Attention of one q tile of one head: an online softmax over kv tiles. All warps both load and compute
// (FlashAttention-2's structure), so it runs on every GPU with cp.async.
//
// Shared memory: Q, then kStages tiles of K, then kStages of V. With one stage, V arrives while the scores
// are computed and the next K while P V is; with more, whole tiles are on their way ahead of their use.
//
// Needs: kStages, and all of the files before it.

namespace tw_kernel {

constexpr int kLookahead = kStages == 1 ? 2 : kStages;  // tiles known at a time
constexpr int kSharedBytes = kQBytes + kStages * (kKBytes + kVBytes) + kPBytes;
static_assert(kSharedBytes == {{ shared_bytes }}, "the tactic's shared_bytes is what is launched with");

// One head's K and V.
struct KeyValues {
  const KvElement* k;  // [kv_len][k_stride]
  const KvElement* v;  // [kv_len][v_stride]
  long long k_stride;
  long long v_stride;
  int kv_len;
};

struct Shared {
  unsigned q;
  unsigned k;  // [kStages] tiles
  unsigned v;  // [kStages] tiles
  unsigned p;
};

TW_INLINE void load_k(const Shared& shared, int stage, const KeyValues& kv, const KvTile& tile) {
  if (!tile.exists()) return;
  load_k(shared.k + stage * kKBytes, kv.k + tile.first * kv.k_stride, kv.k_stride,
         kv.kv_len - tile.first);
}

TW_INLINE void load_v(const Shared& shared, int stage, const KeyValues& kv, const KvTile& tile) {
  if (!tile.exists()) return;
  load_v(shared.v + stage * kVBytes, kv.v + tile.first * kv.v_stride, kv.v_stride,
         kv.kv_len - tile.first);
}

TW_INLINE void forward(const ForwardArguments& arguments, const SnippetArguments& call,
                       unsigned shared_memory) {
  const Place place = find_place(arguments, call);
  if (place.first_row >= call.q_len) return;  // the block mask's last q block may reach beyond q_len

  const Shared shared = {shared_memory, shared_memory + kQBytes,
                         shared_memory + kQBytes + kStages * kKBytes,
                         shared_memory + kQBytes + kStages * (kKBytes + kVBytes)};
  const KeyValues kv = {head_of<const KvElement>(arguments.k, place.b, place.h_kv),
                        head_of<const KvElement>(arguments.v, place.b, place.h_kv),
                        arguments.k.row_stride, arguments.v.row_stride, call.kv_len};
  load_q(shared.q,
         head_of<const QElement>(arguments.q, place.b, place.h) +
             place.first_row * arguments.q.row_stride,
         arguments.q.row_stride, call.q_len - place.first_row);
  Tiles tiles(arguments.mask, place.mask_row, call.kv_len);
  KvTile ahead[kLookahead];  // ahead[0] is the current tile
#pragma unroll
  for (int i = 0; i < kLookahead; ++i) ahead[i] = tiles.next();
  if (kStages == 1) {
    load_k(shared, 0, kv, ahead[0]);
    commit_copies();
  }
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    load_k(shared, i, kv, ahead[i]);
    load_v(shared, i, kv, ahead[i]);
    commit_copies();
  }

  if (kQInRegisters) {
    wait_for_groups<kStages == 1 ? 0 : kStages - 2>();
    __syncthreads();  // Q is visible to all
  }
  const QFragments q(shared.q);

  const Rows rows = make_rows(call, place);
  // Scores without score_mod stay q.k, and the scale is folded into exp2's argument. That needs a
  // positive scale, as the greatest score is then that of the greatest q.k.
  const float scale_log2 = arguments.scale * kLog2E;
  const bool fold_scale = !kHasScoreMod && scale_log2 > 0.0f;
  const float to_log2 = kHasScoreMod ? kLog2E : fold_scale ? scale_log2 : 1.0f;

  Softmax softmax = start_softmax();
  float out[kRows][kOutColumns] = {};
  int stage = 0;
#pragma unroll 1
  while (ahead[0].exists()) {
    const KvTile tile = ahead[0];
    wait_for_groups<kStages == 1 ? 0 : kStages - 2>();
    __syncthreads();  // the tile is visible to all, and the stage before is no longer read by any
    if (kStages == 1) {
      load_v(shared, 0, kv, tile);
    } else {
      const int last = stage == 0 ? kStages - 1 : stage - 1;
      load_k(shared, last, kv, ahead[kLookahead - 1]);
      load_v(shared, last, kv, ahead[kLookahead - 1]);
    }
    commit_copies();

    const bool some_dropped = tile.partial || tile.first + kKvTile > call.kv_len;
    Kept kept;
    if (some_dropped) kept = find_kept(rows, tile);

    float s[kRows][kColumns];
    score_tile(q, shared.k + stage * kKBytes, s);
    if (kHasScoreMod) {
      modify_scores(rows, tile.first, arguments.scale, s);
    } else if (!fold_scale) {
      multiply_scores(scale_log2, s);
    }
    if (some_dropped) drop_scores(kept, s);
    raise_max(s, softmax, out, to_log2);
    exponentiate(s, softmax, to_log2);

    if (kStages == 1) {
      wait_for_groups<0>();
      __syncthreads();  // V is visible to all, and K is no longer read by any
      load_k(shared, 0, kv, ahead[1]);
      commit_copies();
    }
    value_tile(shared.p, shared.v + stage * kVBytes, s, out);

#pragma unroll
    for (int i = 0; i < kLookahead - 1; ++i) ahead[i] = ahead[i + 1];
    ahead[kLookahead - 1] = tiles.next();
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
  store_tile(arguments, call, place, out, softmax, to_log2);
}

}  // namespace tw_kernel
