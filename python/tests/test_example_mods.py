"""examples/python/mods.py computes what the specs of examples/ do."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SIZES = {"batch": 2, "num_q_heads": 4, "num_kv_heads": 2, "q_len": 256, "kv_len": 256, None: 63}
DTYPES = {"f16": np.float32, "bf16": np.float32, "f32": np.float32, "i32": np.int32, "i64": np.int64, "bool": np.bool_}

spec = importlib.util.spec_from_file_location("mods", EXAMPLES / "python" / "mods.py")
mods = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mods)
# What FlexAttention's functions have no argument for.
UNSAID = {"sink", "q_scale", "k_scale", "v_scale", "out_scale"}
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.json") if not UNSAID & json.loads(path.read_text()).keys())


def contents(rng, buffer):
    shape = [SIZES.get(extent, extent) for extent in buffer["shape"]]
    least, greatest = buffer["range"]
    dtype = DTYPES[buffer["dtype"]]
    if dtype == np.float32:
        return rng.uniform(least, greatest, shape).astype(dtype)
    values = rng.integers(least, greatest + 1, shape)
    return (np.sort(values, axis=-1) if buffer.get("sorted") else values).astype(dtype)


def test_every_example_has_a_mod():
    assert NAMES == sorted(name for name in vars(mods) if name not in ("np",) and not name.startswith("_"))


@pytest.mark.parametrize("name", NAMES)
def test_mods_compute_what_the_spec_does(name):
    spec = json.loads((EXAMPLES / f"{name}.json").read_text())
    spec.update(dtype="f32", layout="bhsd", outputs=["out"])
    rng = np.random.default_rng(7)
    buffers = {key: contents(rng, buffer) for key, buffer in spec.get("buffers", {}).items()}
    for buffer in spec.get("buffers", {}).values():
        if buffer["dtype"] in ("f16", "bf16"):
            buffer["dtype"] = "f32"
    q = rng.standard_normal((2, 4, 256, spec["head_dim"]), dtype=np.float32)
    k = rng.standard_normal((2, 2, 256, spec["head_dim"]), dtype=np.float32)
    v = rng.standard_normal((2, 2, 256, spec.get("v_head_dim", spec["head_dim"])), dtype=np.float32)

    attention = tw.Attention(spec, device="cpu")
    wanted = attention.forward(q, k, v, bindings=attention.bind(**buffers))
    score_mod, mask_mod = getattr(mods, name)(**buffers)
    mask = mask_mod and tw.create_block_mask(mask_mod, 2, 4, 256, 256, device="cpu")
    out = tw.flex_attention(q, k, v, score_mod, mask, scale=spec.get("scale"), enable_gqa=True)
    assert np.abs(wanted).max() > 0.1
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
