#!/usr/bin/env python3
"""Tilewright beside PyTorch on one GPU, in one run: cuDNN, FlashAttention-2 and FlexAttention.

    python3 bench/peers.py --tilewright build/release/cli/tilewright [--suite dense|mods|all] [--chart F.svg]

Every figure is the median over runs on fresh random bf16 data after a warm-up; peers and Tilewright take
turns within each row. Peers are timed by CUDA events with the L2 cache flushed before each run;
`tilewright bench` times a call and the wait for it by the wall clock, about 10 us more, on a warm cache. Ratios
above 1 mean that Tilewright is faster. Needs PyTorch 2.5 or newer with CUDA.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

CAUSAL = "q_idx >= kv_idx"
SLOPES = {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0.004, 0.5]}}
DOCUMENTS = {"doc": {"dtype": "i32", "shape": ["q_len"], "range": [0, 11], "sorted": True}}
BIAS = {"bias": {"dtype": "f32", "shape": [None], "range": [-1, 1]}}
ALIBI = "score + slopes[h] * (kv_idx - q_idx)"
SAME_DOCUMENT = "q_idx >= kv_idx && doc[q_idx] == doc[kv_idx]"

# name -> Tilewright's snippets. FlexAttention's own stand in flex_snippets under the same names.
MODS = {
    "causal": {"mask_mod": CAUSAL},
    "window_1024": {"mask_mod": CAUSAL + " && q_idx - kv_idx < 1024"},
    "documents_causal": {"mask_mod": SAME_DOCUMENT, "buffers": DOCUMENTS},
    "prefix_2048": {"mask_mod": "q_idx >= kv_idx || kv_idx < 2048"},
    "natten_2d": {"mask_mod": "abs(q_idx / 128 - kv_idx / 128) <= 6 && abs(q_idx % 128 - kv_idx % 128) <= 6"},
    "alibi_causal": {"score_mod": ALIBI, "mask_mod": CAUSAL, "buffers": SLOPES},
    "alibi_documents": {"score_mod": ALIBI, "mask_mod": SAME_DOCUMENT, "buffers": SLOPES | DOCUMENTS},
    "softcap_causal": {"score_mod": "50.0 * tanh(score / 50.0)", "mask_mod": CAUSAL},
    "softcap": {"score_mod": "50.0 * tanh(score / 50.0)"},
    "relative_bias": {"score_mod": "score + bias[q_idx - kv_idx + q_len]", "buffers": BIAS},
}


def tilewright_ms(executable, spec, shape):
    batch, heads, q_len, head_dim = shape
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"dtype": "bf16", "head_dim": head_dim} | spec, file)
        file.flush()
        command = [executable, "bench", "--spec", file.name, "--batch", str(batch), "--heads",
                   str(heads), "--q-len", str(q_len), "--budget-ms", "200", "--seed",
                   str(time.time_ns() % 10**9), "--json"]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env=os.environ | {"TILEWRIGHT_DEVICE": "cuda"})
    return json.loads(result.stdout)["rows"][0]["ms"]


def random_qkv(shape):
    import torch

    return [torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)]


def median_ms(call, repeats=15):
    """CUDA events around single runs, the L2 cache flushed before each."""
    import torch

    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for _ in range(4):
        call()
    samples = []
    for _ in range(repeats):
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end))
    return statistics.median(samples)


def sdpa_ms(backend, causal, shape):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = random_qkv(shape)
    with sdpa_kernel(getattr(SDPBackend, backend)):
        return median_ms(
            lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))


def flex_snippets(name, heads, q_len):
    """score_mod and mask_mod of a workload, with buffers like those that Tilewright draws."""
    import torch

    slopes = torch.exp2(-8.0 * torch.arange(1, heads + 1, device="cuda") / heads)
    doc = torch.sort(torch.randint(0, 12, (q_len,), device="cuda", dtype=torch.int32)).values
    bias = torch.rand(2 * q_len, device="cuda")

    def causal(b, h, i, j):
        return i >= j

    def documents(b, h, i, j):
        return (i >= j) & (doc[i] == doc[j])

    def natten(b, h, i, j):
        return ((i // 128 - j // 128).abs() <= 6) & ((i % 128 - j % 128).abs() <= 6)

    masks = {"causal": causal, "alibi_causal": causal, "softcap_causal": causal,
             "documents_causal": documents, "alibi_documents": documents, "natten_2d": natten,
             "window_1024": lambda b, h, i, j: (i >= j) & (i - j < 1024),
             "prefix_2048": lambda b, h, i, j: (i >= j) | (j < 2048)}
    scores = {}
    for key in ("alibi_causal", "alibi_documents"):
        scores[key] = lambda s, b, h, i, j: s + slopes[h] * (j - i)
    for key in ("softcap_causal", "softcap"):
        scores[key] = lambda s, b, h, i, j: 50.0 * torch.tanh(s / 50.0)
    scores["relative_bias"] = lambda s, b, h, i, j: s + bias[i - j + q_len]
    return scores.get(name), masks.get(name)


def flex_ms(name, shape):
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    _, heads, q_len, _ = shape
    torch._dynamo.reset()
    score_mod, mask_mod = flex_snippets(name, heads, q_len)
    mask = create_block_mask(mask_mod, None, None, q_len, q_len, device="cuda") if mask_mod else None
    compiled = torch.compile(flex_attention, dynamic=False)
    q, k, v = random_qkv(shape)
    return median_ms(lambda: compiled(q, k, v, score_mod=score_mod, block_mask=mask))


def take_turns(measures, rounds=3):
    """The median of several rounds, each measure once a round; a peer that fails is None."""
    samples = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            try:
                samples[name].append(measure())
            except RuntimeError:
                pass
    return {name: statistics.median(times) if times else None for name, times in samples.items()}


def dense_rows(executable):
    for head_dim in (64, 128, 256):
        for q_len in (2048, 8192, 16384):
            shape = (16384 // q_len, 2048 // head_dim, q_len, head_dim)
            for causal in (False, True):
                spec = {"mask_mod": CAUSAL} if causal else {}
                name = f"d{head_dim} {'causal' if causal else 'full'} {q_len // 1024}k"
                operations = 4 * shape[0] * shape[1] * q_len * q_len * head_dim / (2 if causal else 1)
                yield name, operations, take_turns({
                    "cudnn": lambda: sdpa_ms("CUDNN_ATTENTION", causal, shape),
                    "fa2": lambda: sdpa_ms("FLASH_ATTENTION", causal, shape),
                    "ours": lambda: tilewright_ms(executable, spec, shape)})


def mod_rows(executable):
    shape = (2, 16, 8192, 128)
    for name, spec in MODS.items():
        yield name, None, take_turns({"flex": lambda: flex_ms(name, shape),
                                      "ours": lambda: tilewright_ms(executable, spec, shape)})


def format_row(name, operations, times, peers):
    text = f"{name:18}"
    for peer in peers + ["ours"]:
        ms = times.get(peer)
        text += f"{ms:9.3f}" if ms else f"{'-':>9}"
        if operations:
            text += f" {operations / ms / 1e9:6.0f}" if ms else f" {'-':>6}"
    for peer in peers:
        text += f" {times[peer] / times['ours']:7.2f}" if times.get(peer) else f" {'-':>7}"
    return text


def report(title, rows, peers):
    """Prints a table as it is measured; returns [(name, {peer: ratio})]."""
    print(f"\n{title}; ms{' and TFLOP/s' if 'dense' in title else ''}, then the ratio to each peer")
    print(f"{'':18}" + "".join(f"{peer:>{16 if 'dense' in title else 9}}" for peer in peers + ["ours"])
          + "".join(f"{'x ' + peer:>8}" for peer in peers))
    ratios = []
    for name, operations, times in rows:
        print(format_row(name, operations, times, peers), flush=True)
        ratios.append((name, {peer: times[peer] / times["ours"] for peer in peers if times.get(peer)}))
    for peer in peers:
        known = [ratio[peer] for _, ratio in ratios if peer in ratio]
        if known:
            mean = math.exp(statistics.fmean(map(math.log, known)))
            print(f"geometric mean of the ratios to {peer}: {mean:.2f}")
    return ratios


def chart(ratios, path):
    """Bars of the ratios, with a line at 1."""
    bars = [(f"{name} / {peer}", ratio) for name, row in ratios for peer, ratio in row.items()]
    width, left, step = 720, 220, 18
    scale = (width - left - 60) / max(ratio for _, ratio in bars)
    height = step * len(bars) + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="#fff"/>']
    for row, (name, ratio) in enumerate(bars):
        y = 10 + row * step
        colour = "#0072b2" if ratio >= 1 else "#d55e00"
        parts.append(f'<text x="{left - 6}" y="{y + 11}" text-anchor="end">{name}</text>'
                     f'<rect x="{left}" y="{y}" width="{ratio * scale:.1f}" height="{step - 4}" fill="{colour}"/>'
                     f'<text x="{left + ratio * scale + 4:.1f}" y="{y + 11}">{ratio:.2f}</text>')
    x = left + scale
    parts.append(f'<line x1="{x}" y1="4" x2="{x}" y2="{height - 14}" stroke="#000" stroke-dasharray="3 3"/>'
                 f'<text x="{x}" y="{height - 3}" text-anchor="middle">as fast as the peer</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", required=True, help="the executable")
    parser.add_argument("--suite", choices=["dense", "mods", "all"], default="all")
    parser.add_argument("--chart", help="an SVG file for the ratios")
    arguments = parser.parse_args()

    import torch

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    ratios = []
    if arguments.suite in ("dense", "all"):
        ratios += report("dense bf16, 16k tokens, 2048 hidden", dense_rows(arguments.tilewright), ["cudnn", "fa2"])
    if arguments.suite in ("mods", "all"):
        ratios += report("mods, bf16 B2 H16 S8192 D128", mod_rows(arguments.tilewright), ["flex"])
    if arguments.chart:
        chart(ratios, arguments.chart)
        print(f"wrote {arguments.chart}")


if __name__ == "__main__":
    main()
