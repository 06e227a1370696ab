#!/usr/bin/env python3
"""PyTorch's context_parallel over all GPUs, causal and full, and scaled_dot_product_attention on one GPU.

Prints one JSON object a line: {"mask", "backend", "rotate", "gpus", "ms"} or {..., "error"}. Forward alone, bf16.
"""
import argparse
import contextlib
import json
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def rotation(name):
    """Chooses how k and v travel, wherever this version keeps the function."""
    try:
        from torch.distributed.tensor.experimental._attention import set_rotate_method
    except ImportError:
        from torch.distributed.tensor.experimental._context_parallel._attention import set_rotate_method
    set_rotate_method(name)


def greatest(value, is_group):
    if not is_group:
        return value
    number = torch.tensor([value], device="cuda", dtype=torch.float64)
    dist.all_reduce(number, op=dist.ReduceOp.MAX)
    return number.item()


def sample(call, seconds, is_group):
    """The median of calls that begin together, each as long as its slowest rank."""
    times, total = [], 0.0
    for i in range(-2, 200):
        torch.cuda.synchronize()
        if is_group:
            dist.barrier()
            torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        taken = greatest((time.perf_counter() - start) * 1e3, is_group)
        if i < 0:
            continue
        times.append(taken)
        total += taken / 1e3
        if len(times) >= 5 and total > seconds:
            break
    return statistics.median(times)


def measure(rank, size, args, mask, backend, rotate):
    torch.manual_seed(0)
    shape = (1, args.heads, args.tokens, args.head_dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    where = contextlib.nullcontext()
    if size > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.experimental import context_parallel

        rotation(rotate)
        mesh = init_device_mesh("cuda", (size,))
        where = context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2], no_restore_buffers={q, k, v})
    with torch.no_grad(), where, sdpa_kernel(BACKENDS[backend]):
        return sample(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=mask == "causal"), args.seconds, size > 1)


def run(rank, size, port, args):
    torch.cuda.set_device(rank)
    if size > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
        dist.init_process_group("nccl", rank=rank, world_size=size)
    for mask in args.masks.split(","):
        for backend in BACKENDS:
            for rotate in ["allgather", "alltoall"] if size > 1 else ["none"]:
                row = {"mask": mask, "backend": backend, "rotate": rotate, "gpus": size}
                try:
                    row["ms"] = measure(rank, size, args, mask, backend, rotate)
                except Exception as error:  # what a version refuses is a result too
                    row["error"] = str(error).splitlines()[0][:200]
                if rank == 0:
                    print(json.dumps(row), flush=True)
                torch.cuda.empty_cache()
    if size > 1:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=131072)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2, help="of measuring for a row")
    parser.add_argument("--masks", default="causal,full")
    parser.add_argument("--gpus", type=int, default=0, help="0: all")
    args = parser.parse_args()
    size = args.gpus or torch.cuda.device_count()
    print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0), "gpus": size}), flush=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(run, args=(1, port, args), nprocs=1)
    if size > 1:
        mp.spawn(run, args=(size, port, args), nprocs=size)


if __name__ == "__main__":
    main()
