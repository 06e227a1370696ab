"""Functions and operators that mods may call mean what they mean in numpy and in Python."""

import math

import evaluate
import numpy as np
import pytest

import tilewright as tw

TABLE = np.array([[0.5, -1.25, 2.0], [3.0, 0.0, -0.5], [1.0, 1.5, -2.5], [0.25, 4.0, 0.75]], np.float32)
COUNTS, SMALL = np.array([3, -2, 7, 0], np.int32), np.array([1, 2, 3, 250], np.uint8)
FLAGS = np.array([True, False, True, True])
POINTS = [dict(score=s, b=b, h=h, q_idx=i, kv_idx=j) for s, b, h, i, j in (
    (0.75, 0, 0, 5, 3), (-1.5, 1, 1, 0, 7), (2.25, 0, 2, 9, 9), (0.0, 1, 3, 4, 1))]  # fmt: skip

EXPRESSIONS = """
np.add(s, h) ; np.subtract(s, j) ; np.multiply(s, 2) ; np.divide(i, 4) ; np.true_divide(s, 4) ; np.floor_divide(i - 6, 4) ; np.mod(i - 6, 4) ; np.remainder(i - 6, -4) ; np.fmod(i - 6, 4)
np.power(s, 2) ; s**3 ; i**2 ; 2**h ; np.abs(i - j) ; np.fabs(s) ; np.absolute(s) ; np.negative(s) ; np.square(s) ; np.reciprocal(s + 9) ; np.sign(i - j) ; np.positive(s) ; np.float_power(s + 9, 2)
np.exp(s) ; np.exp2(s) ; np.expm1(s) ; np.log(s + 9) ; np.log2(s + 9) ; np.log10(s + 9) ; np.log1p(s + 9) ; np.sqrt(s + 9) ; np.sin(s) ; np.cos(s) ; np.tan(s) ; np.sinh(s) ; np.cosh(s) ; np.tanh(s) ; np.deg2rad(s)
np.floor(s) ; np.ceil(s) ; np.trunc(s) ; np.where(i > j, s, -s) ; np.maximum(s, h) ; np.minimum(i, j) ; np.fmax(s, h) ; np.fmin(s, h) ; np.clip(s, -1, 1) ; np.clip(s, a_min=-1, a_max=1) ; np.isin(i, [3, 5]) ; np.isinf(s) ; np.isnan(s)
np.equal(i, j) ; np.not_equal(i, j) ; np.less(i, j) ; np.less_equal(i, j) ; np.greater(i, j) ; np.greater_equal(i, j) ; np.logical_and(i > j, s > 0) ; np.logical_or(i > j, s > 0) ; np.logical_xor(i > j, s > 0) ; np.logical_not(i > j)
np.bitwise_and(i, 6) ; np.bitwise_or(i, 8) ; np.bitwise_xor(i, 5) ; np.left_shift(i, 2) ; np.right_shift(i, 1) ; np.invert(i) ; divmod(i - 6, 4)[0] * 10 + divmod(i - 6, 4)[1] ; (i > j) * s ; (i > j) & (s > 0) ; ~(i > j)
TABLE[h, 1] ; TABLE[h][1] ; TABLE[h - 1, 0] ; TABLE[..., 0][h] ; TABLE[:, 1][h] ; TABLE[h].sum() ; np.sum(TABLE[h]) ; TABLE[h].mean() ; TABLE[h].max() ; np.max(TABLE[h]) ; np.amin(TABLE[h]) ; TABLE[h].prod() ; TABLE.max() ; TABLE.max(axis=1)[h]
np.dot(TABLE[h], TABLE[h - 1]) ; TABLE[h] @ TABLE[0] ; np.linalg.norm(TABLE[h]) ; (TABLE[h] > 0).any() ; (TABLE[h] > 0).all() ; (TABLE[h] > 0).sum() ; np.mean(TABLE[h] > 0) ; np.sum(TABLE[h] > 0) ; np.stack([s, s * 2]).sum() ; (2 * TABLE)[h, 0]
TABLE.T[1, h] ; TABLE[h, 1:].sum() ; TABLE[h, ::2].sum() ; TABLE.shape[1] * s ; len(TABLE) * s ; COUNTS[h] // 2 ; COUNTS[h] % 4 ; COUNTS[h] * s ; COUNTS[h] / 2 ; FLAGS[h] * s ; FLAGS[h] & (i > j) ; SMALL[h] * 2.0 ; SMALL[h] + i
s.astype(np.int32) ; i.astype(np.float32) / 4 ; (i > j).astype(np.int32) + 1 ; np.float32(2) * s ; s + np.array(2.5, np.float32) ; np.asarray(s) + 1 ; np.zeros_like(s) + s ; np.full_like(s, 3.0) ; math.exp(s) ; math.floor(s) ; abs(s) ; -s ; +s
"""


def expressions():
    return [part.strip() for line in EXPRESSIONS.strip().split("\n") for part in line.split(" ; ")]


@pytest.mark.parametrize("text", expressions())
def test_means_the_same(text):
    mod = eval(f"lambda s, b, h, i, j: {text}", {**globals()})
    tree = evaluate.traced(mod)
    for at in POINTS:
        wanted = mod(np.float32(at["score"]), *(np.int32(at[name]) for name in evaluate.NAMES))
        found = evaluate.value(tree, at)
        assert math.isclose(found, wanted, rel_tol=1e-5, abs_tol=1e-6), (text, at, tw.trace(mod).code, found, wanted)
