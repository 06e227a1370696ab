"""Host time of calls of tiny shapes on a CPU, microseconds: python python/bench/host_time.py [numpy|torch]

Each line is the least mean of 100 runs of 200 calls. The kernel is part of it: the last line is a call of the module alone."""

import sys
import time
from typing import Any, Callable

import numpy as np

import tilewright as tw

if sys.argv[1:] == ["torch"]:
    import torch

    xp: Any = torch
    array = torch.from_numpy
else:
    xp, array = np, np.asarray


def microseconds(call: Callable[[], Any]) -> float:
    call()
    best = float("inf")
    for _ in range(100):
        begin = time.perf_counter()
        for _ in range(200):
            call()
        best = min(best, time.perf_counter() - begin)
    return best / 200 * 1e6


def main() -> None:
    q, k, v = (array(np.random.default_rng(i).standard_normal((1, 2, 4, 16)).astype(np.float32)) for i in range(3))
    slopes, cap = array(np.array([0.5, 0.25], np.float32)), 20.0

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    def softcap(score, b, h, q_idx, kv_idx):
        return cap * xp.tanh(score / cap)

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    mask = tw.create_block_mask(causal, None, None, 4, 4)
    spec = {"dtype": "f32", "head_dim": 16, "score_mod": "score + slopes[h] * (kv_idx - q_idx)", "mask_mod": "q_idx >= kv_idx",
            "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}}  # fmt: skip
    attention = tw.Attention(spec, device="cpu")
    bindings = attention.bind(slopes=slopes)
    own = attention.block_mask(num_q_heads=2, q_len=4, kv_len=4, bindings=bindings)
    out = attention.forward(q, k, v, mask=own, bindings=bindings)
    core = (q, k, v, out, None, own._core_mask(), None, bindings._core, None, 0, 0, 0, None, None)
    lines = {
        "flex_attention(q, k, v)": lambda: tw.flex_attention(q, k, v),
        "flex_attention(q, k, v, softcap)": lambda: tw.flex_attention(q, k, v, softcap),
        "flex_attention(q, k, v, alibi)": lambda: tw.flex_attention(q, k, v, alibi),
        "flex_attention(q, k, v, alibi, mask)": lambda: tw.flex_attention(q, k, v, alibi, mask),
        "Attention.forward(q, k, v, mask=, bindings=)": lambda: attention.forward(q, k, v, mask=own, bindings=bindings),
        "the same with out=": lambda: attention.forward(q, k, v, out=out, mask=own, bindings=bindings),
        "the module's call alone": lambda: attention._core.forward(*core),
    }
    for name, call in lines.items():
        print(f"{name:48} {microseconds(call):7.1f}")


main()
