#!/usr/bin/env python3
"""Compares our f8e4m3 forward with cuDNN's and with our own bf16, in turns on one GPU. q, k, v and out have 8 bits, and
every scale is 1.

    python3 bench/peers_fp8.py --tilewright build/release/cli/tilewright [--rounds 5] [--budget-ms 60]

16k tokens and 2048 hidden in calls of 8k, full and causal. Timed as peers.py does it. Needs PyTorch with CUDA and the
package nvidia-cudnn-frontend; what cuDNN refuses is named.
"""

import argparse
import statistics

import torch

from peers import Tilewright, median_ms

TOKENS, HIDDEN, LENGTH = 16384, 2048, 8192
# The fastest blocks of the mask: multiples of the kernel's tiles.
CAUSAL_BLOCKS = {"f8e4m3": {64: [128, 128], 128: [192, 96], 256: [128, 96]},
                 "bf16": {64: [128, 128], 128: [192, 80], 256: [128, 128]}}


def workload(head_dim, causal, dtype):
    spec = {"dtype": dtype, "head_dim": head_dim}
    if dtype == "f8e4m3":
        spec |= {"out_dtype": dtype} | {f"{of}_scale": "1.0f" for of in ("q", "k", "v", "out")}
    if causal:
        spec |= {"mask_mod": "q_idx >= kv_idx", "block": CAUSAL_BLOCKS[dtype][head_dim]}
    heads = HIDDEN // head_dim
    return {"spec": spec, "batch": TOKENS // LENGTH, "heads": heads, "kv_heads": heads, "q_len": LENGTH, "kv_len": LENGTH}


def cudnn_fp8(head_dim, causal):
    """A call of cuDNN's graph; tensors are [batch, rows, heads, head_dim] in memory, which it serves best."""
    import cudnn

    batch, heads = TOKENS // LENGTH, HIDDEN // head_dim
    float8, float32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
    q, k, v = (torch.randn(batch, LENGTH, heads, head_dim, device="cuda").to(torch.float8_e4m3fn).transpose(1, 2)
               for _ in range(3))
    out = torch.zeros(batch, LENGTH, heads, head_dim, device="cuda").to(torch.float8_e4m3fn).transpose(1, 2)
    amax = torch.zeros(1, 1, 1, 1, device="cuda")
    names = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")
    scales = {name: torch.ones(1, 1, 1, 1, device="cuda") for name in names}

    graph = cudnn.pygraph(io_data_type=float8, intermediate_data_type=float32, compute_data_type=float32)
    inputs = [graph.tensor_like(tensor).set_data_type(float8) for tensor in (q, k, v)]
    factors = {name: graph.tensor_like(scale) for name, scale in scales.items()}
    results = graph.sdpa_fp8(q=inputs[0], k=inputs[1], v=inputs[2], **factors, is_inference=True,
                             attn_scale=head_dim**-0.5, use_causal_mask=causal)
    of_out, of_amax = results[0], results[-1]
    of_out.set_output(True).set_dim(out.size()).set_stride(out.stride()).set_data_type(float8)
    of_amax.set_output(True).set_dim(amax.size()).set_stride(amax.stride()).set_data_type(float32)
    of_amax_s = results[-2]
    of_amax_s.set_output(True).set_dim(amax.size()).set_stride(amax.stride()).set_data_type(float32)
    graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    workspace = torch.empty(max(1, graph.get_workspace_size()), dtype=torch.uint8, device="cuda")
    tensors = dict(zip(inputs, (q, k, v)))
    tensors |= {factors[name]: scales[name] for name in names}
    tensors |= {of_out: out, of_amax: amax, of_amax_s: torch.zeros_like(amax)}
    handle = cudnn.create_handle()
    cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)

    def call():
        graph.execute(tensors, workspace, handle=handle)
        return amax

    return call


def teraflops(row, ms):
    return row["gflops"] * row["ms"] / ms / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilewright", default="build/release/cli/tilewright")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget-ms", type=float, default=60)
    options = parser.parse_args()
    ours = Tilewright(options.tilewright, kept=2)
    print("| call | cuDNN, f8 | Tilewright, f8 | bf16 | to cuDNN | to bf16 |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for head_dim in (64, 128, 256):
        for causal in (False, True):
            name = f"d{head_dim} {'causal' if causal else 'full'} 8k"
            peer = None
            try:
                peer = cudnn_fp8(head_dim, causal)
            except Exception as error:  # whatever cuDNN says of what it lacks
                print(f"{name}: cuDNN has no kernel: {str(error).splitlines()[0]}")
            times = {"f8e4m3": [], "bf16": [], "cudnn": []}
            for _ in range(options.rounds):
                for dtype in ("f8e4m3", "bf16"):
                    row = ours.measure(workload(head_dim, causal, dtype), options.budget_ms)
                    times[dtype].append(row["ms"])
                if peer:
                    times["cudnn"].append(median_ms(peer, options.budget_ms))
            ms = {what: statistics.median(values) if values else None for what, values in times.items()}
            rate = {what: f"{teraflops(row, value):.0f}" if value else "none" for what, value in ms.items()}
            to_peer = f"{ms['cudnn'] / ms['f8e4m3']:.2f}" if peer else ""
            print(f"| {name} | {rate['cudnn']} | {rate['f8e4m3']} | {rate['bf16']} | {to_peer} "
                  f"| {ms['bf16'] / ms['f8e4m3']:.2f} |", flush=True)
    ours.close()


if __name__ == "__main__":
    main()
