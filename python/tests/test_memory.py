"""Memory of many calls and masks. By hand, longer: python python/tests/test_memory.py 100000 3000"""

import gc
import sys

import numpy as np

import tilewright as tw

TABLE = np.ones(8, np.float32)


def resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4


def make_calls(count):
    """Calls whose mods, captured arrays and closures are new each time."""
    q = k = v = np.ones((1, 2, 16, 16), np.float32)
    rows = np.ones((16, 2, 16), np.float32)
    attention = tw.Attention(
        {"dtype": "f32", "head_dim": 16, "outputs": ["out", "lse"], "gradients": ["q"]}, device="cpu"
    )

    def mod(table, shift):
        return lambda score, b, h, q_idx, kv_idx: score + table[h] + tw.scalar("shift", 0.0) * shift

    for i in range(count):
        tw.flex_attention(q, k, v, mod(TABLE.copy(), i % 3), scalars={"shift": float(i)} if i % 8 == 0 else None)
        out, lse = attention.forward(q, k, v)
        if i % 16 == 0:
            attention.backward(q, k, v, out, lse, out)
            tw.varlen_attention(rows, rows, rows, [0, 16], [0, 16], score_mod=mod(TABLE.copy(), i % 3))
        if i % 64 == 0:
            try:
                tw.flex_attention(q, k, v, lambda score, b, h, q_idx, kv_idx: score.nothing())
            except tw.Error:
                pass


def make_masks(count):
    """Masks of new mods and arrays, with calls that use them."""
    q = k = v = np.ones((1, 2, 256, 16), np.float32)
    for i in range(count):
        doc = np.arange(256, dtype=np.int32) // (16 + i % 16)
        mask = tw.create_block_mask(
            lambda b, h, q_idx, kv_idx: doc[q_idx] == doc[kv_idx], None, None, 256, 256, BLOCK_SIZE=32
        )
        mask.sparsity()
        if i % 8 == 0:
            tw.flex_attention(q, k, v, block_mask=mask)


def growth_kib(work, warm, count):
    """Growth of resident memory over `count`, once the caches are full."""
    work(warm)
    gc.collect()
    before = resident_kib()
    work(count)
    gc.collect()
    return resident_kib() - before


def test_calls_and_masks_leave_nothing():
    # The first calls fill caches of at most 512 mods; 1 KiB for each of 4000 calls would be 4000.
    assert growth_kib(make_calls, 1500, 4000) < 2000
    assert growth_kib(make_masks, 600, 400) < 2000


if __name__ == "__main__":
    calls, masks = (int(n) for n in sys.argv[1:3])
    print(f"{calls} calls: {growth_kib(make_calls, 3000, calls)} KiB")
    print(f"{masks} masks: {growth_kib(make_masks, 600, masks)} KiB")
