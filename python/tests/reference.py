"""softmax(mask(score_mod(q k^T * scale))) v in double precision, with the user's own mods on whole arrays."""

import numpy as np


def indices(batch, heads, q_len, kv_len):
    """b, h, q_idx, kv_idx, broadcast over [batch, heads, q_len, kv_len]."""
    return np.ogrid[:batch, :heads, :q_len, :kv_len]


def attention(q, k, v, score_mod=None, mask_mod=None, scale=None):
    """out and lse."""
    q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = q @ k.swapaxes(2, 3) * (q.shape[-1] ** -0.5 if scale is None else scale)
    at = indices(*scores.shape)
    if score_mod is not None:
        scores = np.broadcast_to(score_mod(scores, *at), scores.shape)
    if mask_mod is not None:
        scores = np.where(np.broadcast_to(mask_mod(*at), scores.shape), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(total > 0, weights @ v / total, 0)
        lse = (np.log(total) + np.where(np.isfinite(top), top, 0))[..., 0]
    return out, lse


# f32 scores of a few units are off by some 1e-6, and out and lse are of order 1.
TOLERANCE = 2e-5


def host(array):
    """A numpy array, also of a tensor on a GPU."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array, dtype=np.float64)


def close(result, wanted):
    return np.allclose(host(result), host(wanted), rtol=TOLERANCE, atol=TOLERANCE)
