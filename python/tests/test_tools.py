import json
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw

SPEC = {
    "dtype": "f32",
    "head_dim": 16,
    "score_mod": "score + slopes[h]",
    "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}},
}


def test_check_and_render(qkv):
    report = tw.check(SPEC, *qkv, slopes=np.ones(4, np.float32))
    assert report["ok"] and report["error_max"] <= report["bound"]
    assert "score + slopes[h]" in tw.render(SPEC)
    assert "__global__" in tw.render({"dtype": "bf16", "head_dim": 64}, "sm_80")
    with pytest.raises(tw.Error, match="sm_81"):
        tw.render(SPEC, "sm_81")


def test_record_and_precompile(tmp_path, qkv):
    attention = tw.Attention({"dtype": "f32", "head_dim": 16, "scale": 2})
    with tw.record(tmp_path / "manifest.json"):
        tw.flex_attention(*qkv)
        tw.flex_attention(*qkv)
        attention.forward(*qkv)
    assert len(json.loads((tmp_path / "manifest.json").read_text())["specs"]) == 2
    with pytest.raises(tw.Error, match="no target is named"):
        tw.precompile(tmp_path / "manifest.json")


def test_importing_takes_no_framework_and_little_time():
    code = """
import sys, time
begin = time.process_time()
import tilewright
taken = time.process_time() - begin
tilewright.Attention
assert not {"numpy", "torch", "jax"} & set(sys.modules), "a framework was imported"
print(1000 * taken)
"""
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(5)
    ]
    assert min(times) < 30  # milliseconds
