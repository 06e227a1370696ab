import numpy as np
import pytest
import reference

import tilewright as tw


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def test_plain(qkv):
    out, lse = tw.flex_attention(*qkv, return_lse=True)
    wanted = reference.attention(*qkv)
    assert isinstance(out, np.ndarray) and out.dtype == np.float32
    assert reference.close(out, wanted[0]) and reference.close(lse, wanted[1])


def test_score_mod_and_block_mask(qkv):
    slopes = np.array([0.5, 0.25, 0.125, 0.0625], dtype=np.float32)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    mask = tw.create_block_mask(causal, None, None, 40, 56)
    out = tw.flex_attention(*qkv, alibi, mask, scale=0.5)
    assert reference.close(out, reference.attention(*qkv, alibi, causal, 0.5)[0])


def test_new_closure_values_and_array_contents_are_seen(qkv):
    for cap in (1.0, 2.0):

        def mod(score, b, h, q_idx, kv_idx):
            return cap * np.tanh(score / cap)

        assert reference.close(tw.flex_attention(*qkv, mod), reference.attention(*qkv, mod)[0])
    gain = np.ones(4, dtype=np.float32)

    def scaled(score, b, h, q_idx, kv_idx):
        return score * gain[h]

    tw.flex_attention(*qkv, scaled)
    gain[:] = 3
    assert reference.close(tw.flex_attention(*qkv, scaled), reference.attention(*qkv, scaled)[0])


def test_grouped_queries_and_cpp(qkv):
    q, k, v = qkv
    k, v = k[:, :2], v[:, :2]
    with pytest.raises(tw.Error, match="enable_gqa=True"):
        tw.flex_attention(q, k, v)
    bias = np.linspace(-1, 1, 4, dtype=np.float32)
    out = tw.flex_attention(q, k, v, "score + bias[h]", enable_gqa=True, buffers={"bias": bias})
    assert reference.close(out, reference.attention(q, k, v, lambda s, b, h, i, j: s + bias[h])[0])


def test_run_time_scalars(qkv):
    window = tw.scalar("window", 8)

    def local(b, h, q_idx, kv_idx):
        return abs(q_idx - kv_idx) < window

    for value in (None, 3):
        given = {} if value is None else {"window": value}
        mask = tw.create_block_mask(local, None, None, 40, 56, scalars=given)
        out = tw.flex_attention(*qkv, block_mask=mask)
        n = 8 if value is None else value
        assert reference.close(out, reference.attention(*qkv, None, lambda b, h, i, j: abs(i - j) < n)[0])


@pytest.mark.parametrize("heads, kv_heads, most", [(1, 1, 16), (8, 2, 4), (6, 2, 5), (16, 1, 1), (17, 1, 0)])
def test_few_rows(heads, kv_heads, most):
    from tilewright._flex import has_few_rows

    key = np.empty((1, kv_heads, 9, 16), np.float32)
    found = [rows for rows in range(1, 40) if has_few_rows(np.empty((2, heads, rows, 16), np.float32), key)]
    assert found == list(range(1, most + 1))


def test_aux(qkv):
    out, aux = tw.flex_attention(*qkv, return_aux=tw.AuxRequest(lse=True))
    assert reference.close(aux.lse, reference.attention(*qkv)[1])
    scores = np.einsum("bhqd,bhkd->bhqk", qkv[0], qkv[1].repeat(qkv[0].shape[1] // qkv[1].shape[1], 1)) / np.sqrt(
        qkv[0].shape[3]
    )
    same, both = tw.flex_attention(*qkv, return_aux=tw.AuxRequest(lse=True, max_scores=True))
    assert np.array_equal(same, out) and np.array_equal(both.lse, aux.lse)
    assert reference.close(both.max_scores, scores.max(-1))
    mask = tw.create_block_mask(lambda b, h, i, j: (i >= j) & (i > 0), None, None, 40, 56)
    _, alone = tw.flex_attention(
        *qkv, lambda score, b, h, i, j: score * 2 + 1, mask, return_aux=tw.AuxRequest(max_scores=True)
    )
    kept = np.where(np.tri(40, 56, dtype=bool) & (np.arange(40)[:, None] > 0), scores * 2 + 1, -np.inf)
    assert alone.lse is None and reference.close(alone.max_scores, kept.max(-1))
    assert np.all(np.isneginf(alone.max_scores[:, :, 0]))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda q, k, v: (q[0], k, v), "query has 3 dimensions"),
        (lambda q, k, v: (q, k.astype(np.float64), v), "key has dtype float64"),
        (lambda q, k, v: (q, k, v[:, :, :4]), "only the last dimensions may differ"),
        (lambda q, k, v: (q, k[..., :8], v), "key has 8"),
        (lambda q, k, v: (q, [1], v), "key is a list"),
    ],
)
def test_refusals_name_the_argument(qkv, change, words):
    with pytest.raises(tw.Error) as raised:
        tw.flex_attention(*change(*qkv))
    assert raised.value.code == "tensor" and words in str(raised.value)


def test_mask_of_other_lengths(qkv):
    mask = tw.create_block_mask(causal, None, None, 40, 40)
    with pytest.raises(tw.Error, match="KV_LEN 40.*56"):
        tw.flex_attention(*qkv, block_mask=mask)
