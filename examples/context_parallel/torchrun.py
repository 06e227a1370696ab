"""One sequence over the ranks of torchrun, forward and backward, compared with one rank's call.

torchrun --nproc-per-node 4 examples/context_parallel/torchrun.py          GPUs, over NCCL
torchrun --nproc-per-node 4 examples/context_parallel/torchrun.py cpu      CPUs, over gloo
"""

import os
import sys

import tilewright as tw
import torch

LENGTH, HEADS, HEAD_DIM = 4096, 8, 64
on_cpu = sys.argv[1:] == ["cpu"]
torch.distributed.init_process_group("gloo" if on_cpu else "nccl")
device = "cpu" if on_cpu else f"cuda:{os.environ['LOCAL_RANK']}"
if not on_cpu:
    torch.cuda.set_device(device)

attention = tw.Attention(
    {
        "dtype": "f32" if on_cpu else "bf16",
        "head_dim": HEAD_DIM,
        "mask_mod": "q_idx >= kv_idx && q_idx - kv_idx < 1024",
        "outputs": ["out", "lse"],
        "gradients": ["q", "k", "v"],
    },
    device=device,
)
dtype = torch.float32 if on_cpu else torch.bfloat16
torch.manual_seed(1)
whole = [torch.randn(1, HEADS, LENGTH, HEAD_DIM).to(device, dtype) for _ in range(4)]

context = tw.context_parallel(attention)
plan = context.plan(q_len=LENGTH, kv_len=LENGTH, num_q_heads=HEADS)
q, k, v, dout = (context.take(plan, array, of=name) for name, array in zip("qkvq", whole))
out, lse = context.forward(q, k, v, plan)
gradients = context.backward(q, k, v, out, lse, dout, plan)
context.wait(0 if on_cpu else torch.cuda.current_stream().cuda_stream)

wanted_out, wanted_lse = attention.forward(*whole[:3])
wanted = attention.backward(*whole[:3], wanted_out, wanted_lse, whole[3])
distance = max(
    [float((out - context.take(plan, wanted_out)).abs().max())]
    + [float((gradients[name] - context.take(plan, wanted[name], of=name)).abs().max()) for name in "qkv"]
)
shards = ", ".join(f"{begin}..{begin + rows - 1}" for begin, rows, _, _ in plan.shards)
sent = plan.traffic["bytes_sent"] / max(plan.traffic["bytes_of_full_ring"], 1)
print(f"rank {context.rank} has {shards}, sent {100 * sent:.0f} % of a full ring, differs by {distance:.1e}")
torch.distributed.destroy_process_group()
