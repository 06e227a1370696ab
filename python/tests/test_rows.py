"""Attention.merge and Attention.append."""

import numpy as np
import pytest
import reference

import tilewright as tw

DENSE = {"dtype": "f32", "head_dim": 16, "outputs": ["out", "lse"]}
PAGED = {"dtype": "f32", "head_dim": 16, "layout": "packed", "kv_layout": "paged", "mask_mod": "q_idx >= kv_idx"}


def test_parts_of_the_columns_join(qkv):
    q, k, v = qkv
    attention = tw.Attention(DENSE, device="cpu", merge=True)
    parts = [attention.forward(q, k[:, :, a:z], v[:, :, a:z]) for a, z in ((0, 8), (8, 24), (24, 56))]
    outs, lses = zip(*parts)
    out, lse = attention.merge(outs, lses)
    wanted = reference.attention(q, k, v)
    assert reference.close(out, wanted[0]) and reference.close(lse, wanted[1])
    nothing = np.full_like(lses[0], -np.inf)
    same, _ = attention.merge([outs[0], np.full_like(outs[0], np.nan)], [lses[0], nothing], out=outs[0], lse=lses[0])
    assert same is outs[0] and reference.close(same, reference.attention(q, k[:, :, :8], v[:, :, :8])[0])


def test_refusals_of_merge(qkv):
    attention = tw.Attention(DENSE, device="cpu", merge=True)
    out, lse = attention.forward(*qkv)
    with pytest.raises(tw.Error, match="merge=True"):
        tw.Attention(DENSE, device="cpu").merge([out, out], [lse, lse])
    for outs, lses, words in (
        ([out], [lse], "part"),
        ([out, out], [lse], "2 outs, but 1 lses"),
        (out, lse, "outs is a ndarray"),
        ([out, None], [lse, lse], r"outs\[1\] is None"),
        ([out, out[:1]], [lse, lse], "out"),
        ([out, out], [lse, lse[0]], "lse"),
    ):
        with pytest.raises(tw.Error, match=words):
            attention.merge(outs, lses)


def test_new_rows_go_to_their_slots_and_columns(rng):
    attention = tw.Attention(PAGED, device="cpu", append=True)
    k_new, v_new = rng.standard_normal((2, 5, 2, 16)).astype(np.float32)
    q = rng.standard_normal((5, 4, 16)).astype(np.float32)
    before = rng.standard_normal((2, 6, 4, 2, 16)).astype(np.float32)
    q_begin, kv_len, table = (np.array(x, np.int32) for x in ([0, 2, 5], [7, 3], [[5, 0], [3, 1]]))
    plan = attention.plan(q_begin, kv_len, page_table=table, num_q_heads=4, num_kv_heads=2, total_q=5)
    rows = [(0, 1), (0, 2), (3, 0), (3, 1), (3, 2)]  # columns 5 and 6 of the first sequence, 0 to 2 of the second
    wanted = before.copy()
    for place, (page, row) in enumerate(rows):
        wanted[:, page, row] = k_new[place], v_new[place]
    for given in ({"plan": plan}, {"slots": np.array([page * 4 + row for page, row in rows], np.int64)}):
        pools = before.copy()
        attention.append(k_new, v_new, *pools, **given)
        assert (pools == wanted).all()
    out = attention.forward(q, *wanted, plan=plan)
    assert reference.close(out, tw.paged_attention(q, *wanted, q_begin, kv_len, table, mask_mod="q_idx >= kv_idx"))


def test_refusals_of_append():
    rows, pool = np.zeros((2, 2, 16), np.float32), np.zeros((3, 4, 2, 16), np.float32)
    attention = tw.Attention(PAGED, device="cpu", append=True)
    with pytest.raises(tw.Error, match="append=True"):
        tw.Attention(PAGED, device="cpu").append(rows, rows, pool, pool.copy(), slots=np.zeros(2, np.int32))
    for arrays, options, words in (
        ((rows, rows, pool, pool.copy()), {}, "slots"),
        ((rows, rows, pool, pool), {"slots": np.zeros(2, np.int32)}, "v_pool|overlap|shares"),
        ((rows, rows[:1], pool, pool.copy()), {"slots": np.zeros(2, np.int32)}, "v_new"),
        ((None, rows, pool, pool.copy()), {}, "k_new is None"),
        ((rows, rows, pool, pool.copy()), {"slots": [0, 1]}, "slots is a list"),
        ((rows, rows, pool, pool.copy()), {"slots": np.zeros(2, np.float32)}, "slots"),
        ((rows, rows, pool, pool.copy()), {"plan": 3}, "plan is a int"),
    ):
        with pytest.raises(tw.Error, match=words):
            attention.append(*arrays, **options)


QUANTISED = {"dtype": "f32", "head_dim": 16, "kv_dtype": "i8", "k_scale": "0.5f", "v_scale": "1.0f * (1 + kv_idx)"}


def test_tensors_of_one_byte(rng):
    attention = tw.Attention(QUANTISED, device="cpu", quantise=True)
    k = (rng.standard_normal((1, 2, 7, 16)) * 40).astype(np.float32)
    wanted = np.clip(np.rint(k / np.float32(0.5)), -128, 127).astype(np.int8)
    stored = attention.quantise(k, "k")
    assert stored.dtype == np.int8 and (stored == wanted).all()
    given = np.zeros_like(stored)
    assert attention.quantise(k, "k", out=given) is given and (given == wanted).all()
    by_position = np.rint(k / np.arange(4, 11, dtype=np.float32)[:, None]).astype(np.int8)
    assert (attention.quantise(k, "v", shape=(1, 2, 2, 1, 7), kv_offset=3) == by_position).all()


def test_a_plan_says_which_rows_become_one_byte(rng):
    spec = {**QUANTISED, "layout": "packed"}
    attention = tw.Attention(spec, device="cpu", quantise=True)
    begins = np.array([0, 2, 5], np.int32)
    plan = attention.plan(begins, kv_begin=begins, num_q_heads=2, num_kv_heads=2, total_q=6, total_kv=6)
    v = (rng.standard_normal((6, 2, 16)) * 40).astype(np.float32)
    stored = attention.quantise(v, "v", out=np.full(v.shape, 77, np.int8), plan=plan)
    scales = np.array([1, 2, 1, 2, 3], np.float32)[:, None, None]
    assert (stored[:5] == np.clip(np.rint(v[:5] / scales), -128, 127)).all() and (stored[5] == 77).all()


def test_refusals_of_quantise():
    k = np.zeros((1, 2, 7, 16), np.float32)
    attention = tw.Attention(QUANTISED, device="cpu", quantise=True)
    with pytest.raises(tw.Error, match="quantise=True"):
        tw.Attention(QUANTISED, device="cpu").quantise(k, "k")
    for array, operand, options, words in (
        (k, "p", {}, "operand is 'p'"),
        (k, "q", {}, "q is f32"),
        (None, "k", {}, "array is None"),
        (k, "k", {"out": k.copy()}, "to is f32"),
        (k, "k", {"kv_offset": 1}, "without a shape"),
        (k, "k", {"shape": (1, 2)}, r"shape is \(1, 2\)"),
        (k, "k", {"shape": (1, 2, 2, 1, 8)}, "kv_len 7"),
    ):
        with pytest.raises(tw.Error, match=words):
            attention.quantise(array, operand, **options)
