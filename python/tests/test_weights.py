"""The output weights: exp(score - lse) of each element."""

import numpy as np
import pytest
import reference
import tilewright as tw

SPEC = {
    "dtype": "f32",
    "head_dim": 16,
    "score_mod": "score * 2 + 1",
    "mask_mod": "q_idx > kv_idx",
    "block": [16, 16],
    "outputs": ["out", "lse", "weights"],
}


def test_weights_are_the_softmax(rng):
    q = rng.standard_normal((2, 4, 33, 16)).astype(np.float32)
    k, v = (rng.standard_normal((2, 2, 40, 16)).astype(np.float32) for _ in range(2))
    out, lse, weights = tw.Attention(SPEC, device="cpu").forward(q, k, v)
    scores = 2 * (q.astype(np.float64) @ np.repeat(k, 2, 1).swapaxes(2, 3) / 4) + 1
    rows, columns = np.ogrid[:33, :40]
    wanted = np.where(rows > columns, np.exp(scores - np.where(np.isfinite(lse), lse, 0)[..., None]), 0)
    assert weights.shape == (2, 4, 33, 40) and weights.dtype == np.float32
    assert reference.close(weights, wanted)
    assert np.all(weights[:, :, 0] == 0) and np.all(out[:, :, 0] == 0)
    assert reference.close(weights @ np.repeat(v, 2, 1), out)


def test_outputs_come_in_the_order_of_their_names(rng):
    q = rng.standard_normal((1, 1, 20, 16)).astype(np.float32)
    spec = {**SPEC, "outputs": ["out", "lse", "max_scores", "weights"]}
    shapes = [array.shape for array in tw.Attention(spec, device="cpu").forward(q, q, q)]
    assert shapes == [(1, 1, 20, 16), (1, 1, 20), (1, 1, 20), (1, 1, 20, 20)]


def test_packed_sequences_have_none():
    with pytest.raises(tw.Error, match="weights"):
        tw.Attention({**SPEC, "layout": "packed"}, device="cpu")


def test_check_of_a_spec_with_gradients(rng):
    q = rng.standard_normal((1, 1, 20, 16)).astype(np.float32)
    report = tw.check({**SPEC, "gradients": ["q"]}, q, q, q, device="cpu")
    assert report["ok"] and report["weights_bound"] > 0 and report["gradients"]["dq"]["ok"]


@pytest.mark.parametrize("head_dim", [13, 20, 24])
def test_rows_that_a_tile_pads(rng, head_dim):
    q = rng.standard_normal((1, 2, 20, head_dim)).astype(np.float32)
    v = rng.standard_normal((1, 2, 20, 20)).astype(np.float32)
    spec = {"dtype": "f32", "head_dim": head_dim, "v_head_dim": 20, "outputs": SPEC["outputs"]}
    out, _, weights = tw.Attention(spec, device="cpu").forward(q, q, v)
    assert reference.close(weights @ v, out)
