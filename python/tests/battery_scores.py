"""score_mods of the kinds that PyTorch's tests and attention-gym have, for torch and numpy (`xp`)."""

import functools
import math
import operator


def score_mods(xp, B, H, L, S):
    """name: (score, b, h, q_idx, kv_idx) -> score"""
    f32, i32 = xp.float32, xp.int32
    slopes = xp.asarray([2.0 ** -(i + 1) for i in range(H)], dtype=f32)
    batch_scale = xp.asarray([0.5 + i for i in range(B)], dtype=f32)
    bias = xp.asarray(
        [
            [[[math.sin(b + 2 * h + 3 * q + 5 * k) for k in range(S)] for q in range(L)] for h in range(H)]
            for b in range(B)
        ],
        dtype=f32,
    )
    head_bias = bias[0]
    table = xp.asarray([math.cos(i) for i in range(L + S)], dtype=f32)
    ids = xp.asarray([(7 * i) % 5 for i in range(max(L, S))], dtype=i32)
    docs = xp.asarray([[i // 6 + b for i in range(max(L, S))] for b in range(B)], dtype=i32)
    wide = xp.asarray([i % 3 for i in range(max(L, S))], dtype=xp.int64)
    flags = xp.asarray([i % 2 == 0 for i in range(max(L, S))], dtype=xp.bool)
    small = xp.asarray([i % 4 for i in range(max(L, S))], dtype=xp.uint8)
    doubles = xp.asarray([0.1 * i for i in range(S)], dtype=xp.float64)
    shorts = xp.asarray([-i for i in range(S)], dtype=xp.int16)
    gain = xp.asarray(1.5, dtype=f32)
    points = xp.asarray([[math.sin(i), math.cos(i), 0.1 * i] for i in range(max(L, S))], dtype=f32)
    holder = type("Holder", (), {})()
    holder.slopes, holder.config = slopes, {"gain": gain, "list": [table, slopes]}

    def helper(score, h):
        return score * slopes[h]

    def outer(mod):
        def inner(score, b, h, q, k):
            return mod(score, b, h, q, k) * 2

        return inner

    def with_default(score, b, h, q, k, s=slopes):
        return score + s[h]

    def rel(q, k):
        return q - k

    class Callable:
        def __init__(self):
            self.slopes = slopes

        def __call__(self, score, b, h, q, k):
            return score - self.slopes[h]

        def method(self, score, b, h, q, k):
            return score + self.slopes[h] * self.relative(q, k)

        def relative(self, q, k):
            return k - q

    def swish_steps(score, b, h, q, k):
        x = score * 0.5
        y = xp.exp(-x)
        return score / (1 + y)

    def t5(score, b, h, q, k):
        n = xp.maximum(q - k, xp.asarray(0))
        large = 4 + xp.log(xp.where(n < 1, 1.0, n / 4.0)) / math.log(8.0) * 4
        return (
            score
            + table[
                xp.where(
                    n < 4,
                    n,
                    xp.minimum(xp.floor(large), xp.asarray(7.0)).astype(i32)
                    if xp.__name__ == "numpy"
                    else xp.clamp(xp.floor(large), max=7.0).to(i32),
                )
            ]
        )

    return {
        "identity": lambda s, b, h, q, k: s,
        "times_two": lambda s, b, h, q, k: s * 2,
        "squared": lambda s, b, h, q, k: s * s,
        "power": lambda s, b, h, q, k: s**2,
        "cube": lambda s, b, h, q, k: s**3 * 0.1,
        "causal": lambda s, b, h, q, k: xp.where(q >= k, s, float("-inf")),
        "inverse_causal": lambda s, b, h, q, k: xp.where(q <= k, s, float("-inf")),
        "rel_bias": lambda s, b, h, q, k: s + (q - k),
        "rel_bias_reversed": lambda s, b, h, q, k: (k - q) + s,
        "rel_causal": lambda s, b, h, q, k: xp.where(q >= k, s + (q - k), -float("inf")),
        "alibi": lambda s, b, h, q, k: s + slopes[h] * (k - q),
        "alibi_bidirectional": lambda s, b, h, q, k: s - slopes[h] * xp.abs(q - k),
        "alibi_computed": lambda s, b, h, q, k: s + (k - q) * xp.exp2(-((h + 1) * 8.0 / H)),
        "alibi_causal": lambda s, b, h, q, k: xp.where(q >= k, s + slopes[h] * (k - q), float("-inf")),
        "softcap": lambda s, b, h, q, k: 2.0 * xp.tanh(s / 2.0),
        "softcap_alibi": lambda s, b, h, q, k: 5 * xp.tanh((s + slopes[h] * (k - q)) / 5),
        "trig": lambda s, b, h, q, k: xp.sin(xp.cos(s)) + xp.tan(s * 0.1),
        "trig2": lambda s, b, h, q, k: xp.cos(xp.sin(s)) * 2,
        "head_scale": lambda s, b, h, q, k: s * slopes[h],
        "batch_scale": lambda s, b, h, q, k: s * batch_scale[b],
        "batch_head_scale": lambda s, b, h, q, k: s * batch_scale[b] * slopes[h],
        "bias_4d": lambda s, b, h, q, k: s + bias[b, h, q, k],
        "bias_chained": lambda s, b, h, q, k: s + bias[b][h][q][k],
        "bias_3d": lambda s, b, h, q, k: s + head_bias[h, q, k],
        "bias_2d": lambda s, b, h, q, k: s + head_bias[0][q, k],
        "bias_view": lambda s, b, h, q, k: s + bias[0, h][q, k],
        "rel_table": lambda s, b, h, q, k: s + table[q - k + S],
        "rel_table_negative": lambda s, b, h, q, k: s + table[q - k],
        "last_of_table": lambda s, b, h, q, k: s + table[-1] * table[-2],
        "gather_twice": lambda s, b, h, q, k: s + table[ids[q]] * table[ids[k]],
        "gather_of_gather": lambda s, b, h, q, k: s + table[ids[wide[q]]],
        "document_bias": lambda s, b, h, q, k: xp.where(docs[b, q] == docs[b, k], s, s - 1),
        "document_chained": lambda s, b, h, q, k: xp.where(docs[b][q] == docs[b][k], s, float("-inf")),
        "wide_ids": lambda s, b, h, q, k: s + (wide[q] - wide[k]) * 0.5,
        "flags": lambda s, b, h, q, k: xp.where(flags[q] | flags[k], s, s * 0.5),
        "flag_times": lambda s, b, h, q, k: s + flags[k] * 2.0,
        "bool_times_float": lambda s, b, h, q, k: s + (q > k) * 0.5,
        "bool_sum": lambda s, b, h, q, k: s + ((q > k) + (q > 3)) * 0.25,
        "bytes": lambda s, b, h, q, k: s + small[q] * small[k] * 0.1,
        "doubles": lambda s, b, h, q, k: s + doubles[k],
        "shorts": lambda s, b, h, q, k: s + shorts[k] * 0.05,
        "zero_dim": lambda s, b, h, q, k: s * gain,
        "zero_dim_twice": lambda s, b, h, q, k: (s + gain) / gain,
        "attribute": lambda s, b, h, q, k: s + holder.slopes[h],
        "attribute_dict": lambda s, b, h, q, k: s * holder.config["gain"] + holder.config["list"][0][k],
        "partial": functools.partial(lambda s, b, h, q, k, w: s + w[h], w=slopes),
        "default_argument": with_default,
        "helper": lambda s, b, h, q, k: helper(s, h) + 1,
        "nested_function": outer(lambda s, b, h, q, k: s + slopes[h]),
        "composed": outer(outer(lambda s, b, h, q, k: s - batch_scale[b])),
        "callable_object": Callable(),
        "bound_method": Callable().method,
        "floor_division": lambda s, b, h, q, k: s + (q // 3 - k // 5) * 0.5,
        "floor_division_negative": lambda s, b, h, q, k: s + ((q - k) // 4) * 0.25,
        "floor_division_by_negative": lambda s, b, h, q, k: s + ((q - k) // -3) * 0.25,
        "modulo": lambda s, b, h, q, k: s + (q % 3 - k % 5) * 0.5,
        "modulo_negative": lambda s, b, h, q, k: s + ((q - k) % 4) * 0.25,
        "modulo_by_negative": lambda s, b, h, q, k: s + ((q - k) % -3) * 0.25,
        "float_floor_division": lambda s, b, h, q, k: s + (q - k) * 0.5 // 1.5,
        "float_modulo": lambda s, b, h, q, k: s + ((q - k) * 0.5) % 1.25,
        "division": lambda s, b, h, q, k: s + q / (k + 1),
        "reciprocal": lambda s, b, h, q, k: 1 / (1 + s * s),
        "power_of_two": lambda s, b, h, q, k: s + 2 ** (h + 1) * 0.1,
        "power_of_three": lambda s, b, h, q, k: s + 3**h * 0.1,
        "unary": lambda s, b, h, q, k: +(-s),
        "absolute": lambda s, b, h, q, k: abs(s) - abs(q - k) * 0.1,
        "shift": lambda s, b, h, q, k: s + ((q << 1) - (k >> 2)) * 0.1,
        "bits": lambda s, b, h, q, k: s + ((q & 3) | (k ^ 1)) * 0.1,
        "clip": lambda s, b, h, q, k: xp.clip(s, -1.0, 1.0),
        "minmax": lambda s, b, h, q, k: xp.maximum(xp.minimum(s, s * 0.5), -s),
        "exp": lambda s, b, h, q, k: xp.exp(s * 0.5),
        "log": lambda s, b, h, q, k: xp.log(1 + s * s),
        "log1p": lambda s, b, h, q, k: xp.log1p(s * s) + xp.expm1(s * 0.1),
        "sqrt": lambda s, b, h, q, k: xp.sqrt(abs(s)),
        "sign": lambda s, b, h, q, k: xp.sign(s) * s * s,
        "floor": lambda s, b, h, q, k: s + xp.floor(s * 0.1 + 0.03) + xp.ceil(q * 0.3),
        "swish": swish_steps,
        "square_function": lambda s, b, h, q, k: xp.square(s) - xp.square(q - k) * 0.01,
        "constant": lambda s, b, h, q, k: 1.0,
        "constant_of_head": lambda s, b, h, q, k: h * 0.5,
        "everything": lambda s, b, h, q, k: (s + b * 0.5 - h) * 0.5 + (q - k) * 0.1,
        "distance_window": lambda s, b, h, q, k: xp.where(abs(q - k) < 5, s, s - abs(q - k)),
        "chained_where": lambda s, b, h, q, k: xp.where(q < 5, s, xp.where(k < 5, s * 2, s * 3)),
        "local_global": lambda s, b, h, q, k: xp.where((k < 2) | (abs(q - k) < 4), s, float("-inf")),
        "reduce_rows": lambda s, b, h, q, k: s + (points[q] * points[k]).sum(),
        "row_element": lambda s, b, h, q, k: s + points[q][0] * points[k, 2],
        "row_norm": lambda s, b, h, q, k: s - xp.sqrt(((points[q] - points[k]) ** 2).sum()),
        "used_twice": lambda s, b, h, q, k: rel(q, k) * 0.1 + s * xp.exp(-xp.abs(s)) + xp.exp(-xp.abs(s)),
        "t5_buckets": t5,
        "reduce_operator": lambda s, b, h, q, k: functools.reduce(operator.add, [s, table[q], table[k]]),
        "logical": lambda s, b, h, q, k: xp.where(xp.logical_and(q > k, xp.logical_not(k > 4)), s, s + 1),
    }  # fmt: skip


def torch_score_mods(torch, B, H, L, S):
    """What numpy has no name for."""
    nn = torch.nn.functional
    slopes = torch.tensor([0.5**i for i in range(H)])
    generator = torch.Generator(device="cpu").manual_seed(0)
    points = torch.randn(max(L, S), 4, generator=generator, device="cpu").to(torch.get_default_device())
    return {
        "gelu": lambda s, b, h, q, k: nn.gelu(s),
        "gelu_tanh": lambda s, b, h, q, k: nn.gelu(s, approximate="tanh"),
        "erf": lambda s, b, h, q, k: torch.erf(s) + torch.special.erfc(s),
        "silu": lambda s, b, h, q, k: nn.silu(s),
        "sigmoid": lambda s, b, h, q, k: torch.sigmoid(s) + s.sigmoid(),
        "softplus": lambda s, b, h, q, k: nn.softplus(s),
        "relu": lambda s, b, h, q, k: nn.relu(s) + s.relu(),
        "relu_squared": lambda s, b, h, q, k: torch.square(torch.relu(s)),
        "leaky": lambda s, b, h, q, k: nn.leaky_relu(s, 0.2) + nn.elu(s),
        "rsqrt": lambda s, b, h, q, k: torch.rsqrt(1 + s * s),
        "clamp": lambda s, b, h, q, k: torch.clamp(s, min=-1) + s.clamp(max=0.5),
        "masked_fill": lambda s, b, h, q, k: s.masked_fill(q < k, float("-inf")),
        "methods": lambda s, b, h, q, k: s.mul(2).add(1).sub(q.float() * 0.1).div(3),
        "to": lambda s, b, h, q, k: s + (q - k).to(torch.float32) * 0.1 + (q > k).to(s.dtype) + (s > 0).int(),
        "dot": lambda s, b, h, q, k: s + torch.dot(points[q], points[k]),
        "matmul": lambda s, b, h, q, k: s + points[q] @ points[k],
        "vector_norm": lambda s, b, h, q, k: s - torch.linalg.vector_norm(points[q] - points[k]),
        "stack": lambda s, b, h, q, k: torch.stack([s, s * 2, s - q]).sum(0),
        "view": lambda s, b, h, q, k: s + slopes.view(-1, 1)[h, 0] + torch.exp(slopes)[h],
        "full_like": lambda s, b, h, q, k: torch.where(q >= k, s, torch.full_like(s, -10.0)),
        "zeros": lambda s, b, h, q, k: s + torch.zeros_like(s) + q.new_ones(()) + torch.ones_like(s),
        "rounding": lambda s, b, h, q, k: s + torch.div(q - k, 4, rounding_mode="floor") + torch.div(q - k, 4, rounding_mode="trunc") * 0.5,
        "remainder": lambda s, b, h, q, k: s + torch.remainder(q - k, 3) * 0.5 + torch.fmod(q - k, 3) * 0.25,
        "pow": lambda s, b, h, q, k: torch.pow(s, 2) + torch.pow(torch.abs(s) + 1, 0.3),
        "lerp": lambda s, b, h, q, k: torch.lerp(s, s * 2, 0.25) + torch.add(s, q, alpha=0.1),
        "tensor_inside": lambda s, b, h, q, k: torch.where(q >= k, s, torch.tensor(-5.0)),
        "finfo": lambda s, b, h, q, k: torch.where(q >= k, s, torch.finfo(s.dtype).min),
    }  # fmt: skip
