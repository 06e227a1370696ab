import json
import threading

import numpy as np
import pytest
import reference

import tilewright as tw
from tilewright import _arrays

SPEC = {"dtype": "f32", "head_dim": 16, "score_mod": "score * gain", "mask_mod": "q_idx + 16 >= kv_idx",
        "scalars": {"gain": {"dtype": "f32", "default": 1.0}}, "outputs": ["out", "lse"]}  # fmt: skip


def wanted(qkv, gain=1.0):
    return reference.attention(*qkv, lambda s, b, h, i, j: s * gain, lambda b, h, i, j: i + 16 >= j)


def test_forward_makes_its_mask_and_outputs(qkv):
    attention = tw.Attention(SPEC)
    out, lse = attention.forward(*qkv)
    assert reference.close(out, wanted(qkv)[0]) and reference.close(lse, wanted(qkv)[1])
    bindings = attention.bind(gain=2)
    mask = attention.block_mask(batch=2, num_q_heads=4, q_len=40, kv_len=56)
    mine = np.empty_like(out)
    same, _ = attention.forward(*qkv, out=mine, mask=mask, bindings=bindings)
    assert same is mine and reference.close(mine, wanted(qkv, 2.0)[0])


def test_from_text_and_file(tmp_path):
    path = tmp_path / "my.json"
    path.write_text(json.dumps(SPEC))
    attention = tw.Attention(path, device="cpu")
    assert attention.spec == tw.Attention(json.dumps(SPEC)).spec and attention.device == "cpu"
    assert attention.builds()[0]["kernel"].startswith("forward")
    assert "fast_paths" in attention.explain()


def test_errors_have_parts(tmp_path):
    path = tmp_path / "my.json"
    path.write_text('{"dtype": "f32",\n "head_dims": 64}')
    with pytest.raises(tw.Error) as raised:
        tw.Attention(path)
    error = raised.value
    assert error.code == "spec" and error.hint == 'did you mean "head_dim"?'
    assert error.place.file == str(path) and (error.place.line, error.place.column) == (2, 2)
    assert "^" in str(error) and str(path) in str(error)


def test_read_only_and_strided_arrays(qkv):
    q, k, v = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in qkv)
    attention = tw.Attention({"dtype": "f32", "head_dim": 16})
    q.flags.writeable = False
    assert reference.close(attention.forward(q, k, v), reference.attention(*qkv)[0])
    with pytest.raises(tw.Error, match="out "):
        attention.forward(q, k, v, out=q)


def test_threads(qkv):
    attention = tw.Attention({"dtype": "f32", "head_dim": 16})
    results = []

    def work():
        results.append(attention.forward(*qkv))

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(results) == 8 and all((result == results[0]).all() for result in results)


def test_decode_changes_no_call_on_a_cpu(qkv):
    spec = {"dtype": "f32", "head_dim": qkv[0].shape[-1]}
    q = qkv[0][:, :, :1]
    plain = tw.Attention(spec, device="cpu").forward(q, *qkv[1:])
    assert (tw.Attention(spec, device="cpu", decode=True).forward(q, *qkv[1:]) == plain).all()
    with pytest.raises(tw.Error, match="decode is"):
        tw.Attention(spec, decode="yes")


def test_a_workspace_is_zeroed_aligned_and_shared():
    first = _arrays.zeroed_workspace(np.zeros(1), 5000, "test", 1)
    assert first.ctypes.data % 256 == 0 and first.shape[0] >= 5000 and not first.any()
    assert _arrays.zeroed_workspace(np.zeros(1), 4000, "test", 1) is first
    assert _arrays.zeroed_workspace(np.zeros(1), 4000, "test", 2) is not first
    greater = _arrays.zeroed_workspace(np.zeros(1), 2 * first.shape[0], "test", 1)
    assert greater.shape[0] >= 2 * first.shape[0] and greater.ctypes.data % 256 == 0


@pytest.mark.parametrize("name", ["mask", "plan", "bindings"])
def test_arguments_of_the_wrong_kind(qkv, name):
    attention = tw.Attention({"dtype": "f32", "head_dim": 16})
    with pytest.raises(tw.Error, match=f"{name} is a int"):
        attention.forward(*qkv, **{name: 3})


def test_bind_copies_nothing():
    spec = {
        "dtype": "f32",
        "head_dim": 16,
        "score_mod": "score + s[h]",
        "buffers": {"s": {"dtype": "f32", "shape": [None]}},
    }
    with pytest.raises(tw.Error, match="s has dtype uint64"):
        tw.Attention(spec).bind(s=np.zeros(4, np.uint64))
    with pytest.raises(tw.Error, match="given: f64"):
        tw.Attention(spec).bind(s=np.zeros(4))
    with pytest.raises(tw.Error, match="cpu"):
        tw.Attention(spec, device="cuda:77")
