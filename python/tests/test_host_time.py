"""What a call costs the host: docs/python.md has the measured figures."""

import time

import numpy as np

import tilewright as tw

SLOPES = np.array([0.5, 0.25], np.float32)


def least_microseconds(call):
    best = float("inf")
    for _ in range(100):
        begin = time.perf_counter()
        for _ in range(50):
            call()
        best = min(best, time.perf_counter() - begin)
    return best / 50 * 1e6


def test_a_call_that_is_ready():
    q = k = v = np.ones((1, 2, 4, 16), np.float32)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + SLOPES[h] * (kv_idx - q_idx)

    mask = tw.create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 4, 4)
    assert least_microseconds(lambda: tw.flex_attention(q, k, v, alibi, mask)) < 25
    attention = tw.Attention({"dtype": "f32", "head_dim": 16}, device="cpu")
    assert least_microseconds(lambda: attention.forward(q, k, v)) < 15
