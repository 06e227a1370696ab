"""context_parallel: ranks that are threads, over a transport in Python, against the undivided call."""

import queue
import threading

import numpy as np
import pytest
import tilewright as tw

SPEC = {
    "dtype": "f32",
    "head_dim": 16,
    "score_mod": "score + slopes[h] * (kv_idx - q_idx)",
    "mask_mod": "q_idx >= kv_idx && q_idx - kv_idx < window",
    "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}},
    "scalars": {"window": {"dtype": "i32"}},
    "block": [16, 16],
    "outputs": ["out", "lse"],
    "gradients": ["q", "k", "v", "slopes"],
}
HEADS, LENGTH = 2, 75


class Queues:
    """One rank's end of queues between all ranks, each of which has a way to each other one."""

    def __init__(self, ways, rank, size):
        self.ways, self.rank, self.size = ways, rank, size

    def send(self, peer, data):
        self.ways[self.rank, peer].put(bytes(data))

    def receive(self, peer):
        return self.ways[peer, self.rank].get(timeout=20)

    def all_gather(self, mine):
        for peer in range(self.size):
            self.send(peer, mine)
        return b"".join(self.receive(peer) for peer in range(self.size))

    def exchange(self, sends, receives):
        for peer, memory in sends:
            self.send(peer, memory)
        for peer, memory in receives:
            memory[:] = self.receive(peer)


def run_ranks(size, body):
    """What body(transport) returns on each rank; raises what a rank raised."""
    ways = {(i, j): queue.Queue() for i in range(size) for j in range(size)}
    results = [None] * size

    def run(rank):
        try:
            results[rank] = body(Queues(ways, rank, size))
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture
def whole(rng):
    """q, k, v, dout."""
    return [rng.standard_normal((1, HEADS, LENGTH, 16)).astype(np.float32) for _ in range(4)]


@pytest.mark.parametrize("sharding", ["zigzag", "contiguous"])
def test_three_ranks_are_the_undivided_call(whole, sharding):
    q, k, v, dout = whole
    slopes = np.array([0.1, 0.3], np.float32)
    undivided = tw.Attention(SPEC, device="cpu")
    bindings = undivided.bind(slopes=slopes, window=40)
    out, lse = undivided.forward(q, k, v, bindings=bindings)
    wanted = undivided.backward(q, k, v, out, lse, dout, bindings=bindings)

    def body(transport):
        context = tw.context_parallel(undivided, transport)
        plan = context.plan(
            q_len=LENGTH, kv_len=LENGTH, num_q_heads=HEADS, sharding=sharding, slopes=slopes, window=40
        )
        own = [context.take(plan, array, of=name) for name, array in zip("qkv", (q, k, v))]
        own_out, own_lse = context.forward(*own, plan)
        own_dout = context.take(plan, dout)
        gradients = context.backward(*own, own_out, own_lse, own_dout, plan)
        context.wait()
        return context, plan, own_out, own_lse, gradients

    for result in run_ranks(3, body):
        assert not isinstance(result, Exception), result
        context, plan, own_out, own_lse, gradients = result
        assert plan.sharding == sharding and plan.traffic["bytes_sent"] >= 0
        np.testing.assert_allclose(own_out, context.take(plan, out), rtol=0, atol=1e-5)
        np.testing.assert_allclose(own_lse, context.take(plan, lse, of="lse"), rtol=0, atol=1e-4)
        for name in "qkv":
            np.testing.assert_allclose(gradients[name], context.take(plan, wanted[name], of=name), rtol=0, atol=1e-4)
        np.testing.assert_allclose(gradients["slopes"], wanted["slopes"], rtol=1e-3)


@pytest.mark.parametrize("sharding", ["zigzag", "contiguous"])
def test_packed_sequences_of_three_ranks(rng, sharding):
    spec = {**SPEC, "layout": "packed"}
    begins = np.array([0, 5, 60, 60, 75], np.int32)
    q, k, v, dout = (rng.standard_normal((75, HEADS, 16)).astype(np.float32) for _ in range(4))
    slopes = np.array([0.1, 0.3], np.float32)
    undivided = tw.Attention(spec, device="cpu")
    bindings = undivided.bind(slopes=slopes, window=40)
    whole_plan = undivided.plan(
        begins, kv_begin=begins, num_q_heads=HEADS, num_kv_heads=HEADS, total_q=75, total_kv=75, bindings=bindings
    )
    out, lse = undivided.forward(q, k, v, plan=whole_plan, bindings=bindings)
    wanted = undivided.backward(q, k, v, out, lse, dout, plan=whole_plan, bindings=bindings)

    def body(transport):
        context = tw.context_parallel(undivided, transport)
        plan = context.plan(q_begin=begins, num_q_heads=HEADS, sharding=sharding, slopes=slopes, window=40)
        own = [context.take(plan, array, of=name) for name, array in zip("qkv", (q, k, v))]
        own_out, own_lse = context.forward(*own, plan)
        return context, plan, own_out, own_lse, context.backward(*own, own_out, own_lse, context.take(plan, dout), plan)

    for result in run_ranks(3, body):
        assert not isinstance(result, Exception), result
        context, plan, own_out, own_lse, gradients = result
        np.testing.assert_allclose(own_out, context.take(plan, out), rtol=0, atol=1e-5)
        np.testing.assert_allclose(own_lse, context.take(plan, lse, of="lse"), rtol=0, atol=1e-4)
        for name in "qkv":
            np.testing.assert_allclose(gradients[name], context.take(plan, wanted[name], of=name), rtol=0, atol=1e-4)
        np.testing.assert_allclose(gradients["slopes"], wanted["slopes"], rtol=1e-3)


def test_errors_name_the_rank():
    def other_spec(transport):
        tw.context_parallel({**SPEC, "head_dim": 16 + 16 * transport.rank}, transport, device="cpu")

    for rank, error in enumerate(run_ranks(2, other_spec)):
        assert isinstance(error, tw.Error) and error.code == "spec"
        assert f"rank {rank}: head_dim is 16 on rank 0 and 32 on rank 1" in str(error)

    def cut(transport):
        transport.all_gather = lambda mine: 1 / 0
        tw.context_parallel(SPEC, transport, device="cpu")

    for rank, error in enumerate(run_ranks(2, cut)):
        assert isinstance(error, tw.Error) and error.code == "device"
        assert f"rank {rank}: the group failed while gathering from all ranks: division by zero" in str(error)
        assert error.hint.startswith("a rank has ended")


def test_refusals():
    def body(transport):
        context = tw.context_parallel(SPEC, transport, device="cpu")
        with pytest.raises(tw.Error, match="sharding is"):
            context.plan(q_len=40, kv_len=40, num_q_heads=2, sharding="ring", slopes=np.zeros(2, np.float32), window=3)
        with pytest.raises(tw.Error, match="plan is a NoneType"):
            context.forward(None, None, None, None)
        with pytest.raises(tw.Error, match="q_begin or kv_begin is given for a dense spec"):
            context.plan(q_begin=[0, 40], num_q_heads=2, slopes=np.zeros(2, np.float32), window=3)
        packed = tw.context_parallel({**SPEC, "layout": "packed"}, transport, device="cpu")
        for message, given in (
            ("q_len or kv_len is given for a packed spec", {"q_len": 40}),
            ("plan was given no q_begin", {}),
            ("q_offset is 3", {"q_begin": [0, 40], "q_offset": 3}),
        ):
            with pytest.raises(tw.Error, match=message):
                packed.plan(num_q_heads=2, slopes=np.zeros(2, np.float32), window=3, **given)

    assert run_ranks(1, body) == [None]
