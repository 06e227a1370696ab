"""context_parallel over torch.distributed's gloo, with processes as ranks."""

import os
import socket

import pytest

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402

SPEC = {
    "dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx", "block": [16, 16],
    "outputs": ["out", "lse"], "gradients": ["q", "k", "v"],
}  # fmt: skip
LEARNT = {
    **SPEC,
    "score_mod": "score + slopes[h] * 0.01f * (kv_idx - q_idx)",
    "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}},
    "gradients": ["q", "k", "v", "slopes"],
}


def run_rank(rank, size, port, failures):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    torch.manual_seed(1)
    q, k, v, dout = (torch.randn(1, 2, 75, 16) for _ in range(4))
    slopes = torch.randn(2, requires_grad=True)
    attention = tw.Attention(LEARNT, device="cpu")
    bindings = attention.bind(slopes=slopes)
    out, lse = (result.detach() for result in attention.forward(q, k, v, bindings=bindings))
    wanted = attention.backward(q, k, v, out, lse, dout, bindings=bindings)
    context = tw.context_parallel(attention)
    plan = context.plan(q_len=75, kv_len=75, num_q_heads=2, slopes=slopes)
    own = [context.take(plan, array, of=name) for name, array in zip("qkv", (q, k, v))]
    own_out, own_lse = (result.detach() for result in context.forward(*own, plan))
    gradients = context.backward(*own, own_out, own_lse, context.take(plan, dout), plan)
    with_graph = [tensor.detach().requires_grad_() for tensor in own]
    graph_out, _ = context.forward(*with_graph, plan)
    graph_out.backward(context.take(plan, dout))
    pairs = [(tensor.grad, gradients[name]) for name, tensor in zip("qkv", with_graph)]
    pairs += [(slopes.grad, gradients["slopes"]), (slopes.grad, wanted["slopes"])]
    pairs += [(own_out, context.take(plan, out)), (own_lse, context.take(plan, lse, of="lse"))]
    pairs += [(gradients[name], context.take(plan, wanted[name], of=name)) for name in "qkv"]
    for got, expected in pairs:
        if not torch.allclose(got, expected, rtol=0, atol=1e-4):
            failures.put(f"rank {rank}: {(got - expected).abs().max()}")
    torch.distributed.destroy_process_group()


def spawn(rank_of, size):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failures = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(rank_of, (size, port, failures), nprocs=size)
    assert failures.empty(), failures.get()


def test_gloo():
    spawn(run_rank, 3)


def test_without_a_group():
    with pytest.raises(tw.Error, match="torch.distributed has no group yet"):
        tw.context_parallel(SPEC, device="cpu")


def refuse_on_rank(rank, size, port, failures):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    context = tw.context_parallel({**SPEC, "gradients": ["v"]}, device="cpu")
    plan = context.plan(q_len=32, kv_len=32, num_q_heads=1)
    q = torch.zeros(1, 1, plan.q_rows, 16)
    out = torch.zeros_like(q)
    for message, arguments, options in (
        ("q requires gradients, which the spec does not name", (q.clone().requires_grad_(), q, q), {}),
        ("out= or lse= is given, but gradients are wanted", (q, q, q.clone().requires_grad_()), {"out": out}),
    ):
        try:
            context.forward(*arguments, plan, **options)
            failures.put(f"rank {rank}: no error says that {message}")
        except tw.Error as error:
            if message not in str(error):
                failures.put(f"rank {rank}: {error}")
    torch.distributed.destroy_process_group()


def test_refusals_where_gradients_are_wanted():
    spawn(refuse_on_rank, 2)
