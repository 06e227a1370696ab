"""Gradients by torch's autograd, against autograd of the plain formula in double precision."""

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402

B, H, G, L, S, D = 2, 4, 2, 24, 40, 16


def naive(q, k, v, score_mod=None, mask_mod=None, scale=None):
    """out and lse; the mods on whole tensors."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.expand(q.shape[0], *x.shape[1:]).repeat_interleave(group, 1) for x in (k, v))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    at = torch.meshgrid(*(torch.arange(n) for n in scores.shape), indexing="ij")
    if score_mod is not None:
        scores = score_mod(scores, *at)
    if mask_mod is not None:
        scores = torch.where(mask_mod(*at), scores, -float("inf"))
    lse = torch.logsumexp(scores, -1)
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v, lse


@pytest.fixture
def leaves():
    """q, k, v in float32, and the same in double precision."""
    random = torch.Generator().manual_seed(3)

    def make(*shape):
        x = torch.randn(*shape, generator=random)
        return x.requires_grad_(), x.detach().double().requires_grad_()

    return [list(t) for t in zip(make(B, H, L, D), make(B, G, S, D), make(B, G, S, D))]


def close(a, b):
    """Sums of some thousand float32 products of order 1."""
    assert a is not None and b is not None and a.shape == b.shape
    assert torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-4), (a.double() - b.double()).abs().max()


def causal(b, h, q_idx, kv_idx):
    return q_idx + 16 >= kv_idx


def capped(score, b, h, q_idx, kv_idx):
    return 3.0 * torch.tanh(score / 3.0)


@pytest.mark.parametrize("score_mod", [None, capped, lambda s, b, h, i, j: s * 0.5 + 0.01 * s * s * (j - i) / 40])
@pytest.mark.parametrize("masked", [False, True])
def test_of_query_key_and_value(leaves, score_mod, masked):
    mine, wanted = leaves
    mask = tw.create_block_mask(causal, None, None, L, S, BLOCK_SIZE=16) if masked else None
    out, lse = tw.flex_attention(*mine, score_mod, mask, enable_gqa=True, return_lse=True)
    exact = naive(*wanted, score_mod, causal if masked else None)
    dout, dlse = torch.randn(out.shape), torch.randn(lse.shape)
    ((out * dout).sum() + (lse * dlse).sum()).backward()
    ((exact[0] * dout.double()).sum() + (exact[1] * dlse.double()).sum()).backward()
    for a, b in zip(mine, wanted):
        close(a.grad, b.grad)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_of_one_alone(leaves, which):
    mine, wanted = leaves
    for i in range(3):
        if i != which:
            mine[i], wanted[i] = mine[i].detach(), wanted[i].detach()
    tw.flex_attention(*mine, enable_gqa=True).sum().backward()  # a gradient of out whose strides are 0
    naive(*wanted)[0].sum().backward()
    close(mine[which].grad, wanted[which].grad)


def test_of_captured_tensors(leaves):
    mine, wanted = leaves
    random = torch.Generator().manual_seed(5)
    values = {"slopes": torch.randn(H, generator=random), "bias": torch.randn(B, L, S, generator=random),
              "gain": torch.tensor(0.7), "table": torch.randn(9, generator=random)}  # fmt: skip

    def mod(slopes, bias, gain, table):
        def score(s, b, h, q_idx, kv_idx):
            return (
                s * gain + slopes[h] * (kv_idx - q_idx) / 8 + bias[b, q_idx, kv_idx] + (2 * table)[(q_idx + kv_idx) % 9]
            )

        return score

    single = {name: x.clone().requires_grad_() for name, x in values.items()}
    double = {name: x.double().requires_grad_() for name, x in values.items()}
    mask = tw.create_block_mask(causal, None, None, L, S, BLOCK_SIZE=16)
    (tw.flex_attention(*mine, mod(**single), mask, enable_gqa=True) ** 2).sum().backward()
    (naive(*wanted, mod(**double), causal)[0] ** 2).sum().backward()
    for name in values:
        close(single[name].grad, double[name].grad)
    close(mine[0].grad, wanted[0].grad)


def test_of_a_captured_tensor_alone_and_of_a_mask(leaves):
    mine, wanted = ([x.detach() for x in xs] for xs in leaves)
    weight, exact = (torch.linspace(-1, 1, S, dtype=t).requires_grad_() for t in (torch.float32, torch.float64))
    mask = tw.create_block_mask(lambda b, h, i, j: weight[j] < 0.5, None, None, L, S)

    def score(table):
        return lambda s, b, h, i, j: s + table[j]

    tw.flex_attention(*mine, score(weight), mask, enable_gqa=True).square().sum().backward()
    naive(*wanted, score(exact), lambda b, h, i, j: exact[j] < 0.5)[0].square().sum().backward()
    close(weight.grad, exact.grad)
    assert not tw.flex_attention(*mine, None, mask, enable_gqa=True).requires_grad


def test_of_run_time_scalars_and_converted_tensors(leaves):
    mine, wanted = leaves
    gain, exact = torch.tensor(0.5, requires_grad=True), torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    table = torch.linspace(0, 1, H, dtype=torch.float64).requires_grad_()  # read as float
    same = table.detach().clone().requires_grad_()
    out = tw.flex_attention(
        *mine, lambda s, b, h, i, j: s * tw.scalar("gain", 1.0) + table[h] * j, enable_gqa=True, scalars={"gain": gain}
    )
    out.square().sum().backward()
    naive(*wanted, lambda s, b, h, i, j: s * exact + same[h] * j)[0].square().sum().backward()
    close(gain.grad, exact.grad)
    close(table.grad, same.grad)


def test_shared_keys_and_strides():
    q, k, v = (torch.randn(2, 2, 16, n).requires_grad_() for n in (16, 16, 24))
    one, other = (x[:1].detach().clone().requires_grad_() for x in (k, v))
    exact = [x.detach().double().requires_grad_() for x in (q, one, other)]
    strided = q.transpose(1, 2).contiguous().transpose(1, 2)
    tw.flex_attention(strided, one, other).square().sum().backward()
    naive(*exact)[0].square().sum().backward()
    for mine, wanted in zip((q, one, other), exact):
        close(mine.grad, wanted.grad)


def test_a_step_of_training_changes_the_next_result():
    """Parameters that an optimizer writes in place are read anew."""
    q, k, v = (torch.randn(1, 2, 16, 16) for _ in range(3))
    bias = torch.nn.Parameter(torch.zeros(16))
    optimizer = torch.optim.SGD([bias], lr=10.0)
    results = []
    for _ in range(3):
        out = tw.flex_attention(q, k, v, lambda s, b, h, i, j: s + bias[j])
        results.append(out.detach().clone())
        close(out, naive(q.double(), k.double(), v.double(), lambda s, b, h, i, j: s + bias.detach().double()[j])[0])
        out.square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert not torch.equal(results[0], results[1])


def test_parameters_without_gradients_are_traced_once(monkeypatch):
    from tilewright import _flex

    described = []
    original = _flex.describe
    monkeypatch.setattr(_flex, "describe", lambda *args: described.append(1) or original(*args))
    q, k, v = (torch.randn(1, 2, 16, 16, requires_grad=True) for _ in range(3))
    bias = torch.nn.Parameter(torch.zeros(16))

    def mod(s, b, h, i, j):
        return s + bias[j]

    with torch.no_grad():
        for _ in range(3):
            assert not tw.flex_attention(q, k, v, mod).requires_grad
        bias.data = torch.ones(16)  # another memory
        first = tw.flex_attention(q, k, v, mod)
    assert len(described) == 1
    assert tw.flex_attention(q, k, v, mod).requires_grad and len(described) == 2
    close(first, naive(q.double(), k.double(), v.double(), lambda s, b, h, i, j: s + 1)[0].detach())


def test_packed_attention():
    random = torch.Generator().manual_seed(5)
    lengths, total = [(7, 12), (0, 3), (20, 20)], 30  # three rows of q belong to no sequence
    q, k, v = (torch.randn(n, heads, D, generator=random).requires_grad_() for n, heads in ((total, H), (35, G), (35, G)))
    spec = {"dtype": "f32", "head_dim": D, "layout": "packed", "score_mod": "score + slopes[h] * (kv_idx - q_idx)",
            "mask_mod": "q_idx >= kv_idx", "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}},
            "outputs": ["out", "lse"], "gradients": ["q", "k", "v", "slopes"]}  # fmt: skip
    attention = tw.Attention(spec, device="cpu")
    slopes = torch.full((H,), 0.1, requires_grad=True)
    bindings = attention.bind(slopes=slopes)
    begins = [np.cumsum([0, *(pair[i] for pair in lengths)]).astype(np.int32) for i in (0, 1)]
    plan = attention.plan(
        torch.from_numpy(begins[0]), num_q_heads=H, num_kv_heads=G, total_q=total,
        kv_begin=torch.from_numpy(begins[1]), total_kv=35, bindings=bindings,
    )  # fmt: skip
    out, _ = attention.forward(q, k, v, plan=plan, bindings=bindings)
    dout = torch.randn(total, H, D, generator=random)
    (out[:27] * dout[:27]).sum().backward()
    same = [x.detach().double().requires_grad_() for x in (q, k, v, slopes)]
    loss = 0
    for (rows, columns), row, column in zip(lengths, *begins):
        if rows == 0:
            continue
        one = [x[at : at + n].transpose(0, 1)[None] for x, at, n in
               ((same[0], row, rows), (same[1], column, columns), (same[2], column, columns))]  # fmt: skip
        shift = columns - rows
        found, _ = naive(
            *one,
            lambda s, b, h, i, j, shift=shift: s + same[3][h] * (j - i - shift),
            lambda b, h, i, j, shift=shift: i + shift >= j,
        )
        loss = loss + (found[0].transpose(0, 1) * dout[row : row + rows].double()).sum()
    loss.backward()
    for mine, wanted in zip((q, k, v, slopes), same):
        close(mine.grad, wanted.grad)
    with pytest.raises(tw.Error, match="backward was given no plan"):
        attention.backward(q.detach(), k.detach(), v.detach(), out.detach(), _.detach(), dout, bindings=bindings)


def test_attention(leaves):
    mine, wanted = leaves
    spec = {"dtype": "f32", "head_dim": D, "score_mod": "score * gain + slopes[h] * (kv_idx - q_idx)", "mask_mod": "q_idx + 16 >= kv_idx",
            "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}, "scalars": {"gain": {"dtype": "f32"}},
            "outputs": ["out", "lse"], "gradients": ["q", "k", "v", "slopes", "gain"]}  # fmt: skip
    attention = tw.Attention(spec, device="cpu")
    slopes, gain = torch.full((H,), 0.1, requires_grad=True), torch.tensor(0.5, requires_grad=True)
    bindings = attention.bind(slopes=slopes, gain=gain)
    out, _ = attention.forward(*mine, bindings=bindings)
    dout = torch.randn(out.shape)
    (out * dout).sum().backward()
    same = [x.detach().double().requires_grad_() for x in (slopes, gain)]
    exact, _ = naive(*wanted, lambda s, b, h, i, j: s * same[1] + same[0][h] * (j - i), causal)
    (exact * dout.double()).sum().backward()
    for a, b in zip((*mine, slopes, gain), (*wanted, *same)):
        close(a.grad, b.grad)
    with torch.no_grad():
        out, lse = attention.forward(*mine, bindings=bindings)
        found = attention.backward(*mine, out, lse, dout, bindings=bindings)
    assert list(found) == ["q", "k", "v", "slopes", "gain"]
    close(found["slopes"], same[0].grad)
    for a, b in zip(mine, "qkv"):
        assert torch.equal(found[b], a.grad)
    with torch.no_grad():
        again = attention.backward(*mine, out, lse, dout, bindings=bindings, deterministic=True)
        assert all(torch.equal(again[name], found[name]) for name in found)
        with pytest.raises(tw.Error, match="deterministic is 'a'"):
            attention.backward(*mine, out, lse, dout, bindings=bindings, deterministic="a")
    assert attention._core.backward_workspace_size(B, H, G, L, S, bindings._core, True) == 0  # of a CPU
    arrays = [x.detach().numpy() for x in (*mine, out, lse, dout)]
    numpys = attention.bind(slopes=slopes.detach().numpy(), gain=0.5)
    assert np.array_equal(attention.backward(*arrays, bindings=numpys)["k"], found["k"].numpy())


def test_refusals(leaves):
    q, k, v = leaves[0]
    spec = {"dtype": "f32", "head_dim": D, "outputs": ["out", "lse"]}
    with pytest.raises(tw.Error, match="q requires gradients"):
        tw.Attention(spec, device="cpu").forward(q, k, v)
    with pytest.raises(tw.Error, match="k requires gradients, which the spec does not name"):
        tw.Attention({**spec, "gradients": ["q"]}, device="cpu").forward(q, k, v)
    attention = tw.Attention({**spec, "gradients": ["q", "k", "v"]}, device="cpu")
    with pytest.raises(tw.Error, match="out= or lse= is given"):
        attention.forward(q, k, v, out=torch.empty(q.shape))
    with pytest.raises(tw.Error, match="names no gradients"):
        tw.Attention(spec, device="cpu").backward(q, k, v, q, q, q)
    rows = q[0].transpose(0, 1)
    with pytest.raises(tw.Error, match="q requires gradients"):
        tw.varlen_attention(rows, rows, rows, [0, L], [0, L])
    table = torch.ones(4, requires_grad=True)
    with pytest.raises(tw.Error, match="score_mod"):
        tw.flex_attention(q, k, v, "[&] { return score; }()", enable_gqa=True)
    assert table.grad is None


def test_torch_may_be_imported_last():
    code = """
from tilewright import Attention, flex_attention
attention = Attention({"dtype": "f32", "head_dim": 16, "outputs": ["out", "lse"], "gradients": ["q"]}, device="cpu")
import torch
q = torch.ones(1, 1, 8, 16, requires_grad=True)
attention.forward(q, q.detach(), q.detach())[0].sum().backward()
flex_attention(q, q, q).sum().backward()
assert q.grad is not None
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_opcheck(leaves):
    attention = tw.Attention(
        {"dtype": "f32", "head_dim": D, "outputs": ["out", "lse"], "gradients": ["q", "k", "v"]}, device="cpu"
    )
    torch.library.opcheck(torch.ops.tilewright.forward, (*leaves[0], attention._number, -1, -1, -1, None, 0, 0, None))


def test_compiled(leaves):
    mine, wanted = leaves
    mask = tw.create_block_mask(causal, None, None, L, S)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def call(q, k, v):
        return tw.flex_attention(q, k, v, capped, mask, enable_gqa=True) * 2

    call(*mine).square().sum().backward()
    (naive(*wanted, capped, causal)[0] * 2).square().sum().backward()
    for a, b in zip(mine, wanted):
        close(a.grad, b.grad)
