"""examples/vllm: each argument against double precision, sequence by sequence."""

import importlib.util
import os

import pytest

torch = pytest.importorskip("torch")

PATH = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "vllm", "attention.py")
SPEC = importlib.util.spec_from_file_location("vllm_attention", PATH)
vllm = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(vllm)

HQ, HKV, D, PAGE = 4, 2, 16, 8
Q_LENS, KV_LENS = (5, 1, 12), (20, 9, 12)
CU_Q = torch.tensor([0, 5, 6, 18], dtype=torch.int32)
CU_KV = torch.tensor([0, 20, 29, 41], dtype=torch.int32)
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


def inputs(seed=0):
    torch.manual_seed(seed)
    return [torch.randn(n, heads, D) for n, heads in ((18, HQ), (41, HKV), (41, HKV))]


def reference(q, k, v, scale, score=lambda s, h, i, j, b: s, keep=lambda h, i, j, b: i >= j):
    """i and j are positions in the sequence, its last row at its last column."""
    outs = []
    for b, (rows, columns) in enumerate(zip(Q_LENS, KV_LENS)):
        qs = q[CU_Q[b] : CU_Q[b + 1]].double().transpose(0, 1)
        ks, vs = (x[CU_KV[b] : CU_KV[b + 1]].double().transpose(0, 1).repeat_interleave(HQ // HKV, 0) for x in (k, v))
        at = (torch.arange(HQ), torch.arange(columns - rows, columns), torch.arange(columns))
        h, i, j = torch.meshgrid(*at, indexing="ij")
        scores = torch.where(keep(h, i, j, b), score(qs @ ks.mT * scale, h, i, j, b), -float("inf"))
        outs.append((torch.nan_to_num(scores.softmax(-1)) @ vs).transpose(0, 1))
    return torch.cat(outs)


def close(out, wanted):
    assert torch.allclose(out.double(), wanted, rtol=2e-5, atol=2e-5), (out.double() - wanted).abs().max()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize("biased", [False, True])
def test_attention(causal, scale, biased):
    q, k, v = inputs()
    bias = torch.randn(1, HQ, 12, 20) if biased else None
    o = torch.empty_like(q)
    given, nothing = vllm.attention(q, k, v, o, CU_Q, CU_KV, 12, 20, causal, scale, bias)

    def score(s, h, i, j, b):
        return s if bias is None else s + bias[0].double()[h, i - (KV_LENS[b] - Q_LENS[b]), j]

    assert given is o and nothing is None
    close(o, reference(q, k, v, scale, score, lambda h, i, j, b: (i >= j) | (not causal)))
    with pytest.raises(NotImplementedError):
        vllm.attention(q, k, v, None, CU_Q, CU_KV, 12, 20, fp8_scales=(1, 1, 1, 1))
    with pytest.raises(NotImplementedError):
        vllm.attention(q, k, v, None, CU_Q, CU_KV, 12, 20, fp8_out_scale=1.0)


@pytest.mark.parametrize("block, q_block", [(4, None), (4, 8)])
@pytest.mark.parametrize("max_seqlen", [None, 64])
def test_blocksparse(block, q_block, max_seqlen):
    q, k, v = inputs(1)
    rows = 24 // (q_block or block)
    seen = torch.rand(HQ, rows, 24 // block) < 0.5
    seen[:, :, 0] = True
    counts = seen.sum(-1)
    crow = torch.cat([torch.zeros(HQ, 1, dtype=torch.long), counts.cumsum(-1)], 1).int()
    col = torch.zeros(HQ, int(counts.sum(-1).max()), dtype=torch.int32)
    for h in range(HQ):
        found = seen[h].nonzero()[:, 1]
        col[h, : len(found)] = found
    out = vllm.blocksparse_flash_attn_varlen_fwd(
        q, k, v, CU_KV, CU_Q, 0.25, (crow, col), block_size=block, q_block_size=q_block, max_seqlen=max_seqlen
    )
    close(
        out, reference(q, k, v, 0.25, keep=lambda h, i, j, b: (i >= j) & seen[h, i // (q_block or block), j // block])
    )


def test_blocksparse_without_rows_of_q():
    layout = torch.tensor([[0, 1]] * HQ, dtype=torch.int32), torch.zeros(HQ, 1, dtype=torch.int32)
    q, k, v = inputs(2)
    decoded = vllm.blocksparse_flash_attn_varlen_fwd(q[:3], k, v, CU_KV, None, 0.5, layout, block_size=64)
    for b in range(3):
        rows, begins = slice(int(CU_KV[b]), int(CU_KV[b + 1])), torch.tensor([0, 1])
        last, _ = vllm.attention(q[b : b + 1], k[rows], v[rows], None, begins, begins * KV_LENS[b], 1, 20, True, 0.5)
        close(decoded[b : b + 1], last.double())
    whole = torch.randn(41, HQ, D)
    same = vllm.blocksparse_flash_attn_varlen_fwd(whole, k, v, CU_KV, None, 0.5, layout, block_size=64)
    close(same, vllm.attention(whole, k, v, None, CU_KV, CU_KV, 20, 20, True, 0.5)[0].double())


def pools(k, v, lengths):
    """k and v in pages in a random order, and the table."""
    order = torch.randperm(12).int()
    table, pages, used = torch.zeros(3, 3, dtype=torch.int32), torch.randn(2, 12, PAGE, HKV, D), 0
    for b, length in enumerate(lengths):
        for first in range(0, length, PAGE):
            page = table[b, first // PAGE] = order[used]
            used += 1
            rows = slice(CU_KV[b] + first, CU_KV[b] + min(first + PAGE, length))
            for pool, x in zip(pages, (k, v)):
                pool[page, : rows.stop - rows.start] = x[rows]
    return pages, table


@pytest.mark.parametrize("alibi", [False, True])
@pytest.mark.parametrize("window", [None, 0, 6])
@pytest.mark.parametrize("skip_decode", [False, True])
def test_context(alibi, window, skip_decode):
    q, k, v = inputs(3)
    contexts = [columns - rows for rows, columns in zip(Q_LENS, KV_LENS)]
    (k_pages, v_pages), table = pools(k, v, contexts)
    k_cache = k_pages.unflatten(-1, (D // 4, 4)).permute(0, 2, 3, 1, 4)  # [page, head, dim / x, row, x]
    v_cache = v_pages.permute(0, 2, 3, 1)
    new = [torch.cat([x[CU_KV[b] + contexts[b] : CU_KV[b + 1]] for b in range(3)]) for x in (k, v)]
    o, one = torch.full_like(q, 7.0), torch.ones(1)
    vllm.context_attention_fwd(
        q, *new, o, "auto", k_cache, v_cache, table, CU_Q, torch.tensor(KV_LENS, dtype=torch.int32), 20, 12, one, one,
        alibi_slopes=SLOPES if alibi else None, sliding_window=window, sm_scale=0.3, skip_decode=skip_decode,
    )  # fmt: skip
    wanted = reference(
        q, k, v, 0.3, lambda s, h, i, j, b: s + SLOPES.double()[h] * (j - i) if alibi else s,
        lambda h, i, j, b: (i >= j) & ((i - j < window) if window else True),
    )  # fmt: skip
    if skip_decode:
        wanted[5] = 7.0
    close(o, wanted)
    with pytest.raises(NotImplementedError):
        vllm.context_attention_fwd(q, *new, o, "fp8", k_cache, v_cache, table, CU_Q, None, 20, 12, one, one)


@pytest.mark.parametrize("softcap", [0.0, 3.0])
@pytest.mark.parametrize("window", [(-1, -1), (5, 0)])
@pytest.mark.parametrize("alibi", [False, True])
def test_unified(softcap, window, alibi):
    q, k, v = inputs(5)
    (k_pages, v_pages), table = pools(k, v, KV_LENS)
    out, used = torch.full_like(q, 9.0), torch.tensor(KV_LENS, dtype=torch.int32)
    shapes = (q, k_pages, v_pages, out, CU_Q, 12, used, 20, 0.4)
    vllm.unified_attention(*shapes, True, window, table, softcap, None, None, None, SLOPES if alibi else None)

    def score(s, h, i, j, b):
        s = softcap * torch.tanh(s / softcap) if softcap else s
        return s + SLOPES.double()[h] * (j - i) if alibi else s

    def keep(h, i, j, b):
        return (i >= j) & ((i - j <= window[0]) if window[0] >= 0 else True)

    close(out, reference(q, k, v, 0.4, score, keep))
    with pytest.raises(AssertionError):
        vllm.unified_attention(*shapes, False, window, table, 0.0, None, None, None)


def test_flex():
    q, k, v = (torch.randn(1, HQ, 12, D) for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    close(vllm.flex_attention(q, k, v), wanted)
