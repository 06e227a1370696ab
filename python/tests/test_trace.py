import functools
import math

import numpy as np
import pytest

import tilewright as tw

TABLE = np.arange(10, dtype=np.float32)


def code(fn):
    return tw.trace(fn).code


@pytest.mark.parametrize(
    "fn, text",
    [
        (lambda s, b, h, q, k: 50.0 * np.tanh(s / 50.0), "50.0 * tanh(score / 50.0)"),
        (lambda s, b, h, q, k: s - (q - k), "score - (q_idx - kv_idx)"),
        (lambda s, b, h, q, k: s - (s - (s + s)) * 2, "score - (score - (score + score)) * 2"),
        (lambda s, b, h, q, k: -(-s), "-(-score)"),
        (lambda s, b, h, q, k: s * (q / k), "score * ((float)q_idx / kv_idx)"),
        (lambda s, b, h, q, k: q // 2 - k % 3, "(float)(q_idx / 2 - kv_idx % 3)"),
        (lambda s, b, h, q, k: (q - k) // 2, "(float)floor_div(q_idx - kv_idx, 2)"),
        (lambda s, b, h, q, k: 2**h, "(float)(1 << h)"),
        (lambda s, b, h, q, k: 7, "7.0"),
        (lambda s, b, h, q, k: math.exp(s), "exp(score)"),
        (lambda s, b, h, q, k: np.float32(2) * s, "2.0 * score"),
        (lambda s, b, h, q, k: TABLE[h] + TABLE[-1], "TABLE[h] + TABLE[9]"),
        (
            lambda b, h, q, k: (q >= k) & ((q - k < 4) | (k == 0)),
            "q_idx >= kv_idx && (q_idx - kv_idx < 4 || kv_idx == 0)",
        ),
        (lambda b, h, q, k: ~(q >= k), "!(q_idx >= kv_idx)"),
        (lambda b, h, q, k: (q & 1) == (k & 1), "(q_idx & 1) == (kv_idx & 1)"),
        (lambda b, h, q, k: q & 1, "(q_idx & 1) != 0"),
        (lambda b, h, q, k: (q > k) + (q > 3), "q_idx > kv_idx || q_idx > 3"),
        (lambda b, h, q, k: q - k < tw.scalar("window", 4), "q_idx - kv_idx < window"),
    ],
)
def test_code(fn, text):
    assert code(fn) == text


def test_scalars_and_buffers():
    snippet = tw.trace(lambda s, b, h, q, k: s * tw.scalar("gain", 1.5) + TABLE[h])
    assert snippet.scalars == {"gain": 1.5} and snippet.buffers["TABLE"] is TABLE


def test_arrays_of_one_name():
    a, b_ = np.ones(3, np.float32), np.ones(4, np.float32)
    holders = [type("Holder", (), {"x": array})() for array in (a, b_)]
    snippet = tw.trace(lambda s, b, h, q, k: s + holders[0].x[h] * holders[1].x[h])
    assert snippet.code == "score + x[h] * x_2[h]" and snippet.buffers["x"] is a


def branches(b, h, q_idx, kv_idx):
    if q_idx > kv_idx:
        return True
    return False


def chained(b, h, q_idx, kv_idx):
    return 0 <= q_idx < kv_idx


def converts(score, b, h, q_idx, kv_idx):
    return score + int(q_idx)


def indexes_a_list(score, b, h, q_idx, kv_idx):
    return score + [1.0, 2.0][h]


def divides(score, b, h, q_idx, kv_idx):
    return score + q_idx // 0


def float_index(score, b, h, q_idx, kv_idx):
    return score + TABLE[q_idx * 0.5]


def rounds(score, b, h, q_idx, kv_idx):
    return np.round(score)


def text(score, b, h, q_idx, kv_idx):
    return "score"


@pytest.mark.parametrize(
    "fn, line, form",
    [
        (branches, 1, "torch.where(condition, x, y)"),
        (chained, 1, "(a <= x) & (x < b)"),
        (converts, 1, "x.to(torch.int32)"),
        (indexes_a_list, 1, "index a tensor in place of a list"),
        (divides, 1, "check the number"),
        (float_index, 1, "index.to(torch.int32)"),
        (rounds, 1, "torch.floor(x + 0.5)"),
    ],
)
def test_refusals_stand_at_the_users_line(fn, line, form):
    with pytest.raises(tw.Error) as raised:
        tw.trace(fn)
    error = raised.value
    assert error.code == "snippet" and error.place.file == __file__ and form in error.hint
    assert error.place.line == fn.__code__.co_firstlineno + line
    assert f"{__file__}:{error.place.line}" in str(error) and "^" in str(error)


def test_what_is_no_mod():
    for wrong in (3, None):
        with pytest.raises(tw.Error, match="a mod is a"):
            tw.trace(wrong)
    with pytest.raises(tw.Error, match="a str"):
        tw.trace(text)


def test_helpers_partials_and_nesting():
    inner = functools.partial(lambda table, i: table[i], TABLE)

    def outer():
        return lambda s, b, h, q, k: s + inner(k) + helper(q)

    assert code(outer()) == "score + inner[kv_idx] + inner[q_idx]"


def helper(i):
    return TABLE[i]
