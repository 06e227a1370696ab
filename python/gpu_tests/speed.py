"""flex_attention of Python beside the command line's speed, and the host's time of a call, on a GPU:

    python python/gpu_tests/speed.py --tilewright build/release/cli/tilewright --peers bench [--rounds N] [--sizes B,H,S,D]

Speed: CUDA events around single calls with the L2 cache flushed before, as `tilewright bench`; both take turns, and the
ratio is of the medians (bar: 0.97). Host time: a loop of calls that waits for nothing, the median of 30 loops (bars: 15
and 25 us). Exit status 1 where a bar is missed."""

import argparse
import json
import statistics
import sys
import time

import torch

import tilewright as tw

LEAST_RATIO = 0.97
BARS = {"Attention.forward": 15.0, "flex_attention": 25.0}


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def softcap(score, b, h, q_idx, kv_idx):
    return 50.0 * torch.tanh(score / 50.0)


def spec_of(name, head_dim):
    spec = {"name": name, "dtype": "bf16", "head_dim": head_dim}
    if "causal" in name:
        spec["mask_mod"] = "q_idx >= kv_idx"
    if "softcap" in name:
        spec["score_mod"] = "50.0f * tanh(score / 50.0f)"
    return spec


def compare_speeds(arguments, sizes):
    sys.path.insert(0, arguments.peers)
    from peers import Tilewright, median_ms

    batch, heads, length, head_dim = sizes
    q, k, v = (torch.randn(batch, heads, length, head_dim, device="cuda").bfloat16() for _ in range(3))
    mask = tw.create_block_mask(causal, None, None, length, length, device="cuda")
    command_line, met = Tilewright(arguments.tilewright), True
    for name, options in {
        "full": {},
        "causal": {"block_mask": mask},
        "softcap causal": {"block_mask": mask, "score_mod": softcap},
    }.items():
        workload = {"spec": spec_of(name, head_dim), "batch": batch, "heads": heads, "q_len": length, "kv_len": length}
        theirs, ours = [], []
        for turn in range(arguments.rounds):
            for which in (theirs, ours) if turn % 2 else (ours, theirs):
                if which is theirs:
                    theirs.append(command_line.measure(workload, arguments.budget_ms)["ms"])
                else:
                    ours.append(median_ms(lambda: tw.flex_attention(q, k, v, **options), arguments.budget_ms))
        ratio = statistics.median(theirs) / statistics.median(ours)
        met &= ratio >= LEAST_RATIO
        print(
            f"| speed, {name} | {statistics.median(ours):.4f} ms | command line {statistics.median(theirs):.4f} ms "
            f"| {ratio:.3f} | {LEAST_RATIO} | {'met' if ratio >= LEAST_RATIO else 'MISSED'} |",
            flush=True,
        )
    command_line.close()
    return met


def host_microseconds(call, device, calls=50, loops=30):
    """The median over loops of the time until the host may go on, for each call."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(10):
        call()
    times = []
    for _ in range(loops):
        wait()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append(time.perf_counter() - begin)
    wait()
    return statistics.median(times) / calls * 1e6


def host_times(device, sizes):
    batch, heads, length, head_dim = sizes
    q, k, v = (torch.randn(batch, heads, length, head_dim, device=device).bfloat16() for _ in range(3))
    slopes = torch.exp2(-torch.arange(1.0, heads + 1.0, device=device))
    spec = {**spec_of("causal", head_dim), "score_mod": "score + slopes[h] * (kv_idx - q_idx)",
            "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}}  # fmt: skip

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    attention = tw.Attention(spec, device=device)
    bindings = attention.bind(slopes=slopes)
    own = attention.block_mask(batch=batch, num_q_heads=heads, q_len=length, kv_len=length, bindings=bindings)
    mask = tw.create_block_mask(causal, None, None, length, length, device=device)
    rows = {
        "Attention.forward": lambda: attention.forward(q, k, v, mask=own, bindings=bindings),
        "flex_attention": lambda: tw.flex_attention(q, k, v, alibi, mask),
    }
    met = True
    for name, call in rows.items():
        us = host_microseconds(call, device)
        met &= us < BARS[name]
        verdict = "met" if us < BARS[name] else "MISSED"
        print(f"| host time, {name}, S{length} | {us:.1f} us | bindings, mask | | {BARS[name]:.0f} us | {verdict} |", flush=True)
    return met


def host_time_of_flex(sizes):
    """PyTorch's own call, compiled, beside ours."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    batch, heads, length, head_dim = sizes
    q, k, v = (torch.randn(batch, heads, length, head_dim, device="cuda").bfloat16() for _ in range(3))
    mask = create_block_mask(causal, None, None, length, length, device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)
    us = host_microseconds(lambda: compiled(q, k, v, block_mask=mask), "cuda")
    print(f"| host time, FlexAttention, S{length} | {us:.1f} us | causal | | | |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewright")
    parser.add_argument("--peers", default="bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget-ms", type=float, default=200)
    parser.add_argument("--sizes", default="2,16,8192,128")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    sizes = [int(x) for x in arguments.sizes.split(",")]
    print("| what | ours | beside | ratio | bar | |\n| --- | --- | --- | --- | --- | --- |")
    met = True
    if arguments.device == "cuda":
        met = compare_speeds(arguments, sizes)
    # The host waits where the GPU's queue is full, so lengths whose kernels are short show it too.
    for length in (sizes[2], 1024) if arguments.device == "cuda" else (sizes[2],):
        met &= host_times(arguments.device, [*sizes[:2], length, sizes[3]])
    if arguments.device == "cuda":
        host_time_of_flex(sizes)
    print(json.dumps({"met": met}))
    sys.exit(0 if met else 1)


main()
