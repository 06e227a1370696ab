"""Every function that mods may call means what it means in torch, for tensors of one element and rows."""

import math

import evaluate
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

import tilewright as tw  # noqa: E402

TABLE = torch.tensor([[0.5, -1.25, 2.0], [3.0, 0.0, -0.5], [1.0, 1.5, -2.5], [0.25, 4.0, 0.75]])
COUNTS = torch.tensor([3, -2, 7, 0], dtype=torch.int32)
FLAGS = torch.tensor([True, False, True, True])
POINTS = [dict(score=s, b=b, h=h, q_idx=i, kv_idx=j) for s, b, h, i, j in (
    (0.75, 0, 0, 5, 3), (-1.5, 1, 1, 0, 7), (2.25, 0, 2, 9, 9), (0.0, 1, 3, 4, 1), (-0.25, 2, 3, 3, 2))]  # fmt: skip

EXPRESSIONS = """
torch.add(s, h) ; torch.add(s, h, alpha=2) ; torch.sub(s, j, alpha=3) ; torch.subtract(s, j) ; torch.rsub(s, 2.0) ; s.add(1).sub(2).mul(3).div(4)
torch.mul(s, j) ; torch.multiply(s, 2) ; torch.div(s, 4) ; torch.divide(i, 4) ; torch.true_divide(i, 4)
torch.div(i - 6, 4, rounding_mode="floor") ; torch.div(i - 6, 4, rounding_mode="trunc") ; torch.div(s, 0.4, rounding_mode="floor")
torch.div(s, 0.4, rounding_mode="trunc") ; torch.floor_divide(i - 6, 4) ; torch.remainder(i - 6, 4) ; torch.fmod(i - 6, 4) ; torch.remainder(s, 0.4)
torch.fmod(s, 0.4) ; (i - 6) % -4 ; (i - 6) // -4 ; s // 0.4 ; s % -0.4 ; divmod(i - 6, 4)[0] * 10 + divmod(i - 6, 4)[1] ; divmod(7, h + 1)[1]
torch.pow(s, 2) ; s**3 ; torch.pow(i, 2) ; i**3 ; 2**h ; 3**h ; torch.pow(2.0, h) ; torch.abs(s) ** 0.5 ; (torch.abs(s) + 1) ** -0.5 ; (s + 9) ** -1 ; (s + 9) ** h
torch.float_power(s + 9, 2) ; torch.neg(s) ; torch.negative(i) ; -s ; +s ; torch.positive(s) ; torch.abs(i - j) ; torch.absolute(s) ; abs(i - j) ; torch.square(s) ; torch.reciprocal(s + 9)
torch.sign(s) ; torch.sgn(s) ; torch.sign(i - j) ; torch.lerp(s, s * 3, 0.25) ; torch.exp(s) ; torch.exp2(s) ; torch.expm1(s) ; torch.log(s + 9) ; torch.log2(s + 9) ; torch.log10(s + 9)
torch.log1p(s + 9) ; torch.sqrt(s + 9) ; torch.rsqrt(s + 9) ; torch.sin(s) ; torch.cos(s) ; torch.tan(s) ; torch.sinh(s) ; torch.cosh(s) ; torch.tanh(s) ; torch.erf(s) ; torch.erfc(s)
torch.deg2rad(s) ; torch.floor(s) ; torch.ceil(s) ; torch.trunc(s) ; torch.fix(s) ; torch.floor(i) ; torch.special.erf(s) ; torch.special.expm1(s) ; torch.special.expit(s) ; torch.special.exp2(s)
torch.special.log1p(s + 9) ; torch.special.erfc(s) ; math.exp(s) ; math.sqrt(s + 9) ; math.floor(s) ; math.ceil(s) ; math.trunc(s) ; math.fabs(s) ; math.pow(s + 9, 2)
torch.sigmoid(s) ; F.sigmoid(s) ; F.logsigmoid(s) ; F.softplus(s) ; F.softplus(s, beta=2.0, threshold=1.0) ; F.softsign(s) ; F.gelu(s) ; F.gelu(s, approximate="tanh") ; torch.relu(s) ; F.relu(s)
F.relu6(s * 9) ; F.leaky_relu(s) ; F.leaky_relu(s, 0.2) ; F.leaky_relu(s, negative_slope=0.3) ; F.elu(s) ; F.elu(s, alpha=2.0) ; F.silu(s) ; F.mish(s) ; F.hardtanh(s) ; F.hardtanh(s, -0.5, 0.5) ; F.hardtanh(s, min_val=-0.2, max_val=0.3)
torch.where(i > j, s, -s) ; torch.where(i > j, 1.0, s) ; s.masked_fill(i > j, -7.0) ; torch.masked_fill(s, i > j, -7.0) ; torch.maximum(s, h) ; torch.minimum(s, h) ; torch.fmax(s, h) ; torch.fmin(s, h)
torch.max(s, h * 1.0) ; torch.min(s, h * 1.0) ; torch.max(i, j) ; s.max(s * 2) ; torch.max(s) ; s.min() ; torch.max(TABLE[h, 0], TABLE[h, 1]) ; torch.max(input=s, other=s * 2)
torch.clamp(s, -1, 1) ; torch.clamp(s, min=0) ; torch.clamp(s, max=0) ; torch.clip(s, -0.5, 0.5) ; s.clamp(min=-1, max=1) ; torch.clamp_min(s, 0) ; torch.clamp_max(s, 0) ; torch.clamp(i, 2, 6) ; torch.clamp(s, min=TABLE[h, 0])
torch.isin(i, torch.tensor([3, 5])) ; torch.isinf(s) ; torch.isnan(s) ; torch.eq(i, j) ; torch.ne(i, j) ; torch.lt(i, j) ; torch.le(i, j) ; torch.gt(i, j) ; torch.ge(i, j) ; torch.less(i, j) ; torch.greater_equal(i, j) ; torch.not_equal(s, 0)
torch.logical_and(i > j, s > 0) ; torch.logical_or(i > j, s > 0) ; torch.logical_xor(i > j, s > 0) ; torch.logical_not(i > j) ; torch.logical_and(i, h) ; ~(i > j) ; (i > j) & (s > 0) ; (i > j) | (s > 0) ; (i > j) ^ (s > 0)
torch.bitwise_and(i, 6) ; torch.bitwise_or(i, 8) ; torch.bitwise_xor(i, 5) ; torch.bitwise_not(i) ; i & 3 ; i | 16 ; i ^ j ; ~i ; i << 2 ; i >> 1 ; torch.bitwise_left_shift(i, 2) ; torch.bitwise_right_shift(i, 1)
(i > j) * s ; (i > j) + (s > 0) ; (i > j) * 2 + 1 ; s * True ; i / 2 ; 7 / (h + 1) ; 1 - s ; 3 // (h + 1) ; 7 % (h + 2) ; 1 << h ; 5 & i
TABLE[h, 1] ; TABLE[h][1] ; TABLE[h, -1] ; TABLE[-1, 0] ; TABLE[h - 1, 0] ; TABLE[..., 0][h] ; TABLE[h].sum() ; TABLE[h].mean() ; TABLE[h].prod() ; TABLE[h].max() ; TABLE[h].min() ; TABLE.max() ; TABLE[:, 1][h]
TABLE[h].sum(0) ; TABLE[h].sum(dim=0) ; TABLE[h].sum(-1) ; torch.sum(TABLE[h]) ; TABLE[h].max(0).values ; TABLE[h].max(0)[0] ; torch.max(TABLE[h], dim=0).values ; torch.min(TABLE[h], 0)[0] ; torch.amax(TABLE[h]) ; TABLE[h].amin(-1)
(TABLE[h] * 2).sum() ; (TABLE[h] + TABLE[h - 1]).sum() ; torch.dot(TABLE[h], TABLE[h - 1]) ; TABLE[h] @ TABLE[h - 1] ; torch.norm(TABLE[h]) ; TABLE[h].norm() ; torch.linalg.norm(TABLE[h]) ; torch.linalg.vector_norm(TABLE[h]) ; torch.norm(TABLE[h], p=2, dim=0)
(TABLE[h] > 0).any() ; (TABLE[h] > 0).all() ; torch.any(TABLE[h] > 3) ; (TABLE[h] > 0).sum() ; torch.stack([s, s * 2]).sum() ; torch.stack([s, s * 2]).max() ; TABLE[h, 1:].sum() ; TABLE[h, ::2].sum() ; (2 * TABLE)[h, 0] ; TABLE.T[1, h] ; TABLE.sum(1)[h]
TABLE[h, [0, 2]].sum() ; torch.where(TABLE[h] > 0, TABLE[h], 0.0).sum() ; TABLE[h].abs().sum() ; TABLE[h].float().sum() ; len(TABLE) * s ; TABLE.shape[1] * s ; TABLE.size(0) * s ; TABLE.numel() + s ; (TABLE[h] ** 2).mean() ; TABLE[h][TABLE.shape[1] - 1]
COUNTS[h] ; COUNTS[h] + i ; COUNTS[h] // 2 ; COUNTS[h] % 4 ; COUNTS[h] * s ; COUNTS[h] / 2 ; FLAGS[h] ; FLAGS[h] & (i > j) ; FLAGS[h] * s ; ~FLAGS[h] ; FLAGS[h] + 1 ; COUNTS[h] > j ; TABLE[COUNTS[0], 0]
s.to(torch.int32) ; s.int() ; s.long() ; s.bool() ; i.float() ; i.to(torch.float32) / 4 ; s.to(torch.float64) ; s.double() ; (i > j).int() ; (i > j).float() ; i.to(s.dtype) ; i.type_as(s) ; s.type(torch.int32) ; i.bool()
torch.zeros_like(s) ; torch.ones_like(s) + s ; torch.full_like(s, 3.0) ; torch.full_like(s, fill_value=3.0) ; s.new_zeros(()) ; s.new_full((), 2.0) ; s.new_tensor(2.5) ; s.clone() ; s.detach() ; s.contiguous() ; s.unsqueeze(0).squeeze(0) ; s.view(1).sum() ; s.expand(1)[0] if False else s
torch.tensor(2.5) * s ; s + torch.tensor(3) ; torch.where(i > j, s, torch.tensor(-1.0)) ; s.add(other=2) ; torch.mul(s, other=3) ; torch.pow(s, exponent=2) ; torch.sub(input=s, other=1) ; s.item() if False else s
torch.sum(TABLE[h], dtype=torch.int32) ; torch.add(s, 1, out=None) ; TABLE[h].sum(dim=0, keepdim=True).sum() ; torch.mean(TABLE[h], dim=0) ; torch.prod(TABLE[h], 0) ; torch.all(TABLE[h] > -3) ; torch.vdot(TABLE[h], TABLE[0])
"""


def expressions():
    return [part.strip() for line in EXPRESSIONS.strip().split("\n") for part in line.split(" ; ")]


@pytest.mark.parametrize("text", expressions())
def test_means_the_same(text):
    mod = eval(f"lambda s, b, h, i, j: {text}", {**globals()})
    tree = evaluate.traced(mod)
    for at in POINTS:
        numbers = [torch.tensor(at["score"])] + [torch.tensor(at[name], dtype=torch.int32) for name in evaluate.NAMES]
        try:
            wanted = mod(*numbers)
        except TypeError:  # functions of math take no tensors of several kinds
            wanted = mod(*(x.item() for x in numbers))
        wanted = wanted.item() if hasattr(wanted, "item") else wanted
        found = evaluate.value(tree, at)
        assert math.isclose(found, wanted, rel_tol=1e-5, abs_tol=1e-6), (text, at, tw.trace(mod).code, found, wanted)
