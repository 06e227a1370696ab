"""Sequences over the ranks of torchrun, forward and gradients, compared with the undivided call.

torchrun --nproc-per-node 2 python/gpu_tests/ranks.py          GPUs, over NCCL
torchrun --nproc-per-node 2 python/gpu_tests/ranks.py cpu      CPUs, over gloo
"""

import os
import sys

import tilewright as tw
import torch

on_cpu = sys.argv[1:] == ["cpu"]
torch.distributed.init_process_group("gloo" if on_cpu else "nccl")
device = "cpu" if on_cpu else f"cuda:{os.environ['LOCAL_RANK']}"
if not on_cpu:
    torch.cuda.set_device(device)
dtype = torch.float32 if on_cpu else torch.bfloat16
# Of values of size 1: a few roundings of the dtype. Sums of slopes have as many terms as kept elements.
BOUND = 1e-4 if on_cpu else 2e-2
HEADS, KV_HEADS = 4, 2
COMMON = {
    "dtype": "f32" if on_cpu else "bf16",
    "outputs": ["out", "lse"],
    "score_mod": "score + slopes[h] * 0.01f * (kv_idx - q_idx)",
    "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}},
    "gradients": ["q", "k", "v", "slopes"],
}
CAUSAL, WINDOW = "q_idx >= kv_idx", "q_idx >= kv_idx && q_idx - kv_idx < 200"
# A rank's part begins within a sequence; one sequence is shorter than a tile, one is empty.
BEGIN = [0, 700, 733, 733, 1500]


def normal(*shape):
    return torch.randn(*shape).to(device, dtype)


def stream():
    return 0 if on_cpu else torch.cuda.current_stream().cuda_stream


def distance(got, wanted):
    return float((got.float() - wanted.float()).abs().max() / max(1.0, float(wanted.float().abs().max())))


def compare(name, spec, shape_of, undivided, sizes):
    """The greatest distance of this rank's rows from the undivided call's. undivided(attention, q, k, v, dout, slopes)
    gives out, lse and gradients; shape_of(heads) the shape of q, k or v; sizes are those of plan()."""
    torch.manual_seed(1)
    whole = {of: normal(*shape_of(HEADS if of in ("q", "dout") else KV_HEADS)) for of in ("q", "k", "v", "dout")}
    slopes = torch.randn(HEADS).to(device)
    attention = tw.Attention(spec, device=device)
    out, lse, wanted = undivided(attention, *whole.values(), slopes)

    context = tw.context_parallel(attention)
    plan = context.plan(num_q_heads=HEADS, num_kv_heads=KV_HEADS, slopes=slopes, **sizes)
    q, k, v = (context.take(plan, whole[of], of=of) for of in "qkv")
    dout = context.take(plan, whole["dout"])
    own_out, own_lse = context.forward(q, k, v, plan)
    gradients = context.backward(q, k, v, own_out, own_lse, dout, plan)
    context.wait(stream())

    found = {"out": distance(own_out, context.take(plan, out))}
    found["lse"] = distance(own_lse, context.take(plan, lse, of="lse"))
    found.update((of, distance(gradients[of], context.take(plan, wanted[of], of=of))) for of in "qkv")
    found["slopes"] = distance(gradients["slopes"], wanted["slopes"])
    text = ", ".join(f"{of} {value:.1e}" for of, value in found.items())
    right = all(value <= BOUND for value in found.values())  # NaN is wrong
    print(f"rank {context.rank}, {name}: {text}{'' if right else '  WRONG'}", flush=True)
    return right


def dense(attention, q, k, v, dout, slopes):
    bindings = attention.bind(slopes=slopes)
    out, lse = attention.forward(q, k, v, bindings=bindings)
    return out, lse, attention.backward(q, k, v, out, lse, dout, bindings=bindings)


def packed(attention, q, k, v, dout, slopes):
    begin = torch.tensor(BEGIN, dtype=torch.int32, device=device)
    bindings = attention.bind(slopes=slopes)
    plan = attention.plan(
        begin, num_q_heads=HEADS, num_kv_heads=KV_HEADS, total_q=BEGIN[-1], kv_begin=begin, bindings=bindings
    )
    out, lse = attention.forward(q, k, v, plan=plan, bindings=bindings)
    return out, lse, attention.backward(q, k, v, out, lse, dout, plan=plan, bindings=bindings)


def main():
    right = True
    for head_dim in (64, 128):
        for name, mask in (("causal", CAUSAL), ("window", WINDOW)):
            spec = {**COMMON, "head_dim": head_dim, "mask_mod": mask}
            right &= compare(
                f"dense {name} {head_dim}", spec, lambda heads: (1, heads, 1500, head_dim), dense,
                {"q_len": 1500, "kv_len": 1500},
            )  # fmt: skip
            right &= compare(
                f"packed {name} {head_dim}", {**spec, "layout": "packed"}, lambda heads: (BEGIN[-1], heads, head_dim),
                packed, {"q_begin": BEGIN},
            )  # fmt: skip
    torch.distributed.destroy_process_group()
    sys.exit(not right)


main()
