"""tw.check of specs with gradients."""

import numpy as np
import pytest

import tilewright as tw

SPEC = {"dtype": "f32", "head_dim": 16, "score_mod": "score * gain + slopes[h] * (kv_idx - q_idx)", "mask_mod": "q_idx >= kv_idx",
        "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}, "scalars": {"gain": {"dtype": "f32", "default": 1}},
        "outputs": ["out", "lse"], "gradients": ["q", "k", "v", "slopes", "gain"]}  # fmt: skip


def test_gradients_have_verdicts(qkv):
    slopes = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)
    report = tw.check(SPEC, *qkv, slopes=slopes, gain=0.5, device="cpu")
    assert report["ok"] and list(report["gradients"]) == ["d_gain", "d_slopes", "dk", "dq", "dv"]
    for verdict in report["gradients"].values():
        assert verdict["ok"] and 0 < verdict["error_max"] <= verdict["bound"]
    ones, zeros = np.ones((2, 4, 40, 16), np.float32), np.zeros((2, 4, 40), np.float32)
    assert tw.check(SPEC, *qkv, slopes=slopes, dout=ones, dlse=zeros, device="cpu")["ok"]


def test_without_gradients(qkv):
    spec = {"dtype": "f32", "head_dim": 16}
    assert "gradients" not in tw.check(spec, *qkv, device="cpu")
    with pytest.raises(tw.Error, match="names no gradients"):
        tw.check(spec, *qkv, dout=qkv[0], device="cpu")
    with pytest.raises(tw.Error, match="dout is a list"):
        tw.check(SPEC, *qkv, slopes=np.ones(4, np.float32), dout=[1], device="cpu")


def test_a_wrong_gradient_is_found(qkv, monkeypatch):
    right = tw.Attention.backward

    def wrong(self, *args, **kwargs):
        found = right(self, *args, **kwargs)
        found["k"] *= 1.01
        return found

    monkeypatch.setattr(tw.Attention, "backward", wrong)
    report = tw.check(SPEC, *qkv, slopes=np.ones(4, np.float32), device="cpu")
    assert not report["ok"] and not report["gradients"]["dk"]["ok"] and report["gradients"]["dq"]["ok"]
