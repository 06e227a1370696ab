"""mask_mods of the kinds that PyTorch's tests and attention-gym have, for torch and numpy (`xp`)."""


def mask_mods(xp, B, H, L, S):
    """name: (b, h, q_idx, kv_idx) -> bool"""
    n = max(L, S)
    i32 = xp.int32
    doc = xp.asarray([i // 7 for i in range(n)], dtype=i32)
    docs = xp.asarray([[i // (5 + b) for i in range(n)] for b in range(B)], dtype=i32)
    lengths = xp.asarray([S - 9 * b for b in range(B)], dtype=i32)
    prefix = xp.asarray([3 + 4 * b for b in range(B)], dtype=xp.int64)
    allowed = xp.asarray([[(i * j) % 3 != 1 for j in range(S)] for i in range(L)], dtype=xp.bool)
    pages = xp.asarray([[(i + b) % 4 for i in range(n)] for b in range(B)], dtype=xp.int64)
    offsets = xp.asarray([0, 10, 25, n + 1], dtype=i32)
    windows = xp.asarray([4 + 6 * h for h in range(H)], dtype=i32)

    def causal(b, h, q, k):
        return q >= k

    def coordinates(index, width=8):
        return index // width, index % width

    def natten(b, h, q, k):
        qx, qy = coordinates(q)
        kx, ky = coordinates(k)
        return (abs(qx - kx) <= 1) & (abs(qy - ky) <= 2)

    def natten_clamped(b, h, q, k):
        qx, qy = coordinates(q)
        kx, ky = coordinates(k)
        x = xp.minimum(xp.maximum(qx, 1 + 0 * qx), 3 + 0 * qx)
        return (abs(x - kx) <= 1) & (abs(qy - ky) <= 2)

    def tiled(b, h, q, k):
        qx, kx = q // 16 * 4 + q % 4, k // 16 * 4 + k % 4
        return abs(qx - kx) <= 3

    def morton(b, h, q, k):
        def bits(i):
            return (i & 1) | ((i >> 1) & 2) | ((i >> 2) & 4)

        return abs(bits(q) - bits(k)) <= 2

    def both(*mods):
        def combined(b, h, q, k):
            kept = mods[0](b, h, q, k)
            for mod in mods[1:]:
                kept = kept & mod(b, h, q, k)
            return kept

        return combined

    def within(b, h, q, k):
        start, end = offsets[doc[q] % 3], offsets[doc[q] % 3 + 1]
        return (k >= start) & (k < end)

    return {
        "causal": causal,
        "noop": lambda b, h, q, k: True,
        "noop_of_index": lambda b, h, q, k: q >= 0,
        "integer": lambda b, h, q, k: (q - k) & 1,
        "sliding_window": lambda b, h, q, k: (q >= k) & (q - k < 9),
        "window_both_sides": lambda b, h, q, k: abs(q - k) <= 6,
        "window_by_head": lambda b, h, q, k: (q >= k) & (q - k <= windows[h]),
        "dilated": lambda b, h, q, k: (abs(q - k) % 3 == 0) & (abs(q - k) < 20),
        "document": lambda b, h, q, k: doc[q] == doc[k],
        "document_causal": both(causal, lambda b, h, q, k: doc[q] == doc[k]),
        "documents_of_batch": lambda b, h, q, k: docs[b, q] == docs[b, k],
        "documents_chained": lambda b, h, q, k: (docs[b][q] == docs[b][k]) & (q >= k),
        "prefix_lm": lambda b, h, q, k: (k < 11) | (q >= k),
        "prefix_by_batch": lambda b, h, q, k: (k < prefix[b]) | (q >= k),
        "padding": lambda b, h, q, k: k < lengths[b],
        "padding_both": lambda b, h, q, k: (k < lengths[b]) & (q < lengths[b]),
        "inverse_causal": lambda b, h, q, k: q <= k,
        "strictly_causal": lambda b, h, q, k: q > k,
        "not_causal": lambda b, h, q, k: ~(q >= k),
        "offset_causal": lambda b, h, q, k: q + 9 >= k,
        "global_and_local": lambda b, h, q, k: (k < 3) | (q < 3) | (abs(q - k) < 5),
        "block_diagonal": lambda b, h, q, k: q // 8 == k // 8,
        "block_causal": lambda b, h, q, k: q // 8 >= k // 8,
        "chunked": lambda b, h, q, k: (q // 10 == k // 10) & (q >= k),
        "skip_odd": lambda b, h, q, k: (k % 2 == 0) | (q == k),
        "checkers": lambda b, h, q, k: (q + k) % 2 == 0,
        "natten": natten,
        "natten_clamped": natten_clamped,
        "tiled": tiled,
        "morton": morton,
        "table": lambda b, h, q, k: allowed[q, k],
        "table_xor": lambda b, h, q, k: allowed[q, k] ^ (h == 0),
        "pages": lambda b, h, q, k: pages[b, k] <= pages[b, q],
        "per_head": lambda b, h, q, k: (h == 0) & (q >= k) | (h > 0) & (q <= k),
        "per_batch": lambda b, h, q, k: xp.where(b == 0, q >= k, q - k < 4),
        "between_offsets": within,
        "stripes": lambda b, h, q, k: (q - k) % 5 < 2,
        "random_like": lambda b, h, q, k: (q * 31 + k * 17) % 7 < 3,
        "diffusion": lambda b, h, q, k: ((q // 8) == (k // 8)) | ((k < 20) & (q // 8 > k // 8)),
        "all": lambda b, h, q, k: xp.logical_or(xp.logical_and(q >= k, k >= 0), h < 0),
        "negative_floor": lambda b, h, q, k: (q - k) // 4 == -1,
        "float_compare": lambda b, h, q, k: q * 0.5 >= k - 3.25,
    }  # fmt: skip
