#!/usr/bin/env python3
"""Tilewright's CPU backend beside PyTorch on the same CPU, in one run.

    python3 bench/peers_cpu.py --tilewright build/release/cli/tilewright [--threads N] [--q-len N]

Peers: scaled_dot_product_attention, and FlexAttention under torch.compile. Each row runs the peer and
Tilewright in turn, three times, with the same number of threads, f32, fresh random data, after a
warm-up; it shows the median of the three medians. Ratios above 1 mean that Tilewright is faster.
Needs PyTorch 2.5 or newer and a C++ compiler.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

BATCH, HEADS, HEAD_DIM = 1, 8, 64
SLOPES = {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0.004, 0.5]}}
CAUSAL = "q_idx >= kv_idx"

# name, Tilewright's snippets, which peer
WORKLOADS = [
    ("dense", {}, "sdpa"),
    ("causal", {"mask_mod": CAUSAL}, "sdpa_causal"),
    ("causal", {"mask_mod": CAUSAL}, "flex"),
    ("alibi_causal", {"score_mod": "score + slopes[h] * (kv_idx - q_idx)", "mask_mod": CAUSAL,
                      "buffers": SLOPES}, "flex"),
    ("window_256", {"mask_mod": CAUSAL + " && q_idx - kv_idx < 256"}, "flex"),
    ("softcap", {"score_mod": "30.0 * tanh(score / 30.0)"}, "flex"),
]


def tilewright_ms(arguments, spec, q_len):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"dtype": "f32", "head_dim": HEAD_DIM} | spec, file)
        file.flush()
        command = [arguments.tilewright, "bench", "--spec", file.name, "--batch", str(BATCH),
                   "--heads", str(HEADS), "--q-len", str(q_len), "--threads", str(arguments.threads),
                   "--seed", str(time.time_ns() % 10**9), "--json"]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env=os.environ | {"TILEWRIGHT_DEVICE": "cpu"})
    return json.loads(result.stdout)["rows"][0]["ms"]


def peer_call(name, peer, q_len):
    """A function that runs the peer once on fresh random data."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (torch.randn(BATCH, HEADS, q_len, HEAD_DIM) for _ in range(3))
    if peer.startswith("sdpa"):
        causal = peer == "sdpa_causal"
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    slopes = torch.exp2(-8.0 * torch.arange(1, HEADS + 1) / HEADS)
    score_mods = {
        "alibi_causal": lambda score, b, h, i, j: score + slopes[h] * (j - i),
        "softcap": lambda score, b, h, i, j: 30.0 * torch.tanh(score / 30.0),
    }
    mask_mods = {
        "causal": lambda b, h, i, j: i >= j,
        "alibi_causal": lambda b, h, i, j: i >= j,
        "window_256": lambda b, h, i, j: (i >= j) & (i - j < 256),
    }
    mask = mask_mods.get(name)
    block_mask = create_block_mask(mask, None, None, q_len, q_len, device="cpu") if mask else None
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(q, k, v, score_mod=score_mods.get(name), block_mask=block_mask)


def median_ms(call, seconds=1.0):
    call()
    call()
    samples = []
    end = time.perf_counter() + seconds
    while len(samples) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        samples.append(1e3 * (time.perf_counter() - start))
    return statistics.median(samples)


def measure(arguments, name, spec, peer, q_len):
    import torch

    torch._dynamo.reset()
    with torch.no_grad():
        ours, theirs = [], []
        for _ in range(3):
            theirs.append(median_ms(peer_call(name, peer, q_len)))
            ours.append(tilewright_ms(arguments, spec, q_len))
    return statistics.median(ours), statistics.median(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, help="the executable")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--q-len", type=int, default=4096)
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(arguments.threads)
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads, f32, "
          f"B{BATCH} H{HEADS} S{arguments.q_len} D{HEAD_DIM}; medians, ms")
    print(f"{'workload':14} {'peer':12} {'peer ms':>9} {'ours ms':>9} {'ratio':>6}")
    ratios = []
    for name, spec, peer in WORKLOADS:
        ours, theirs = measure(arguments, name, spec, peer, arguments.q_len)
        ratios.append(theirs / ours)
        print(f"{name:14} {peer:12} {theirs:9.2f} {ours:9.2f} {ratios[-1]:6.2f}", flush=True)
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    print(f"geometric mean of the ratios: {mean:.2f}")


if __name__ == "__main__":
    main()
