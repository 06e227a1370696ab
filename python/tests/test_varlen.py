import numpy as np
import pytest
import reference

import tilewright as tw

Q_BEGIN, KV_BEGIN = [0, 5, 5, 12], [0, 9, 20, 40]


def packed(rng):
    return tuple(rng.standard_normal((n, heads, 16)).astype(np.float32) for n, heads in ((12, 4), (40, 2), (40, 2)))


def wanted(q, k, v, b, causal=False):
    """Of sequence b: the last row and the last column have the same position."""
    one = [x.swapaxes(0, 1)[None] for x in (q, k, v)]
    one = [
        x[:, :, a:z] for x, (a, z) in zip(one, ((Q_BEGIN[b], Q_BEGIN[b + 1]),) + ((KV_BEGIN[b], KV_BEGIN[b + 1]),) * 2)
    ]
    shift = one[1].shape[2] - one[0].shape[2]
    return reference.attention(*one, None, (lambda b, h, i, j: i + shift >= j) if causal else None)


def test_packed(rng):
    q, k, v = packed(rng)
    out, lse = tw.varlen_attention(q, k, v, Q_BEGIN, KV_BEGIN, mask_mod=lambda b, h, i, j: i >= j, return_lse=True)
    for b in (0, 2):
        rows = slice(Q_BEGIN[b], Q_BEGIN[b + 1])
        o, l = wanted(q, k, v, b, causal=True)
        assert reference.close(out[rows].swapaxes(0, 1), o[0]) and reference.close(lse[:, rows], l[0])


def test_a_plan_serves_many_calls_and_is_rebuilt(rng):
    q, k, v = packed(rng)
    attention = tw.Attention({"dtype": "f32", "head_dim": 16, "layout": "packed"})
    begin, kv_begin = np.array(Q_BEGIN, np.int32), np.array(KV_BEGIN, np.int32)
    plan = attention.plan(begin, num_q_heads=4, num_kv_heads=2, total_q=12, kv_begin=kv_begin, total_kv=40)
    assert plan.report() == ""
    out = tw.varlen_attention(q, k, v, begin, kv_begin)
    assert (attention.forward(q, k, v, plan=plan) == out).all()
    begin[:] = [0, 3, 3, 12]
    attention.rebuild(plan)
    assert reference.close(attention.forward(q, k, v, plan=plan), tw.varlen_attention(q, k, v, begin, kv_begin))


def test_paged_equals_packed(rng):
    q, k, v = packed(rng)
    kv_len = np.diff(KV_BEGIN).astype(np.int32)
    table, pools = np.full((3, 5), -1, np.int32), [np.zeros((10, 4, 2, 16), np.float32) for _ in range(2)]
    free = list(rng.permutation(10))
    for b, n in enumerate(kv_len):
        for page in range(-(-n // 4)):
            table[b, page] = free.pop() if free else 0
            rows = slice(KV_BEGIN[b] + 4 * page, min(KV_BEGIN[b] + 4 * page + 4, KV_BEGIN[b + 1]))
            for pool, x in zip(pools, (k, v)):
                pool[table[b, page], : rows.stop - rows.start] = x[rows]
    kv_len[2] = 8  # two of the five pages, as ten pages hold no more
    paged = tw.paged_attention(q, *pools, Q_BEGIN, kv_len, table)
    same = tw.varlen_attention(q, k, v, Q_BEGIN, KV_BEGIN[:3], kv_len=kv_len)
    assert reference.close(paged[:5], same[:5]) and reference.close(paged[5:], same[5:])


def test_sinks_and_scales_of_pages(rng):
    q = rng.standard_normal((3, 4, 16)).astype(np.float32)
    pools = rng.standard_normal((2, 4, 4, 2, 16)).astype(np.float32)
    call = ([0, 1, 3], [7, 5], [[0, 1], [3, 2]])
    out, lse = tw.paged_attention(q, *pools, *call, return_lse=True)
    sinks = np.array([0.5, -1, 2, -np.inf], np.float32)
    sunk, lse_sunk = tw.paged_attention(q, *pools, *call, sink=sinks, return_lse=True)
    assert reference.close(lse_sunk, np.logaddexp(lse, sinks[:, None]))
    assert reference.close(sunk, out * np.exp(lse - lse_sunk).T[:, :, None])
    assert reference.close(tw.paged_attention(q, *pools, *call, sink="s[h]", buffers={"s": sinks}), sunk)
    by_head, by_slot = np.array([0.5, 2], np.float32), rng.uniform(0.5, 2, (2, 16)).astype(np.float32)
    scaled = tw.paged_attention(q, pools[0] * by_head[:, None], pools[1] * 0.25, *call)
    assert reference.close(tw.paged_attention(q, *pools, *call, k_scale=by_head, v_scale=0.25), scaled)
    of_slots = by_slot.T.reshape(4, 4, 2, 1)
    scaled = tw.paged_attention(q, pools[0], pools[1] * of_slots, *call)
    assert reference.close(tw.paged_attention(q, *pools, *call, v_scale=by_slot), scaled)
    with pytest.raises(tw.Error, match="sink has shape"):
        tw.paged_attention(q, *pools, *call, sink=np.zeros(3, np.float32))


def test_a_plan_that_the_first_call_completes(rng):
    q, k, v = packed(rng)
    attention = tw.Attention({"dtype": "f32", "head_dim": 16, "layout": "packed"})
    begin, kv_begin = np.array(Q_BEGIN, np.int32), np.array(KV_BEGIN, np.int32)
    plan = attention.plan(begin, kv_begin=kv_begin, num_q_heads=4, num_kv_heads=2, total_q=12)
    out = tw.varlen_attention(q, k, v, begin, kv_begin)
    assert (attention.forward(q, k, v, plan=plan) == out).all()
    assert (tw.varlen_attention(q, k, v, begin, kv_begin, plan=plan) == out).all()
    with pytest.raises(tw.Error, match="another spec"):
        tw.varlen_attention(q, k, v, begin, kv_begin, mask_mod="q_idx >= kv_idx", plan=plan)


def test_new_rows_beside_pages(rng):
    q, new = rng.standard_normal((6, 4, 16)).astype(np.float32), rng.standard_normal((2, 6, 2, 16)).astype(np.float32)
    pools = rng.standard_normal((2, 6, 4, 2, 16)).astype(np.float32)
    out = tw.paged_attention(q, *pools, [0, 2, 6], [7, 9], [[0, 1], [2, 3]], k_new=new[0], v_new=new[1])
    pages = pools[:, :4].reshape(2, 2, 8, 2, 16)[:, :, :5]
    k, v = (np.concatenate([pages[i, 0], new[i][:2], pages[i, 1], new[i][2:]]) for i in (0, 1))
    assert reference.close(out, tw.varlen_attention(q, k, v, [0, 2, 6], [0, 7, 16]))


def test_pages_in_blocks_of_16_bytes(rng):
    q = rng.standard_normal((5, 4, 16)).astype(np.float32)
    pools = rng.standard_normal((2, 6, 4, 2, 16)).astype(np.float32)
    new = rng.standard_normal((2, 5, 2, 16)).astype(np.float32)
    k = np.ascontiguousarray(pools[0].reshape(6, 4, 2, 4, 4).transpose(0, 2, 3, 1, 4))  # [pages, heads, D / x, rows, x]
    v = np.ascontiguousarray(pools[1].transpose(0, 2, 3, 1))  # [pages, heads, D, rows]
    call = (np.array([0, 2, 5], np.int32), np.array([7, 3], np.int32), np.array([[5, 0], [3, 1]], np.int32))
    wanted = tw.paged_attention(q, *pools, *call, mask_mod="q_idx >= kv_idx")
    assert (tw.paged_attention(q, k, v, *call, mask_mod="q_idx >= kv_idx") == wanted).all()
    spec = {"dtype": "f32", "head_dim": 16, "layout": "packed", "kv_layout": "paged_x", "mask_mod": "q_idx >= kv_idx"}
    attention = tw.Attention(spec, device="cpu", append=True)
    plan = attention.plan(*call[:2], page_table=call[2], num_q_heads=4, num_kv_heads=2, total_q=5)
    assert (attention.forward(q, k, v, plan=plan) == wanted).all()
    attention.append(new[0], new[1], k, v, plan=plan)
    assert (k[5, :, :, 3] == pools[0][5, 3].reshape(2, 4, 4)).all()  # column 3 of the first sequence is no new one
    assert (k[0, :, :, 1] == new[0][0].reshape(2, 4, 4)).all() and (v[0, :, :, 1] == new[1][0]).all()
    with pytest.raises(tw.Error, match="rank 5|k has rank"):
        attention.forward(q, *pools, plan=plan)
