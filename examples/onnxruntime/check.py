"""A causal ALiBi node in ONNX Runtime against double precision, by the operator in C++ or the one in Python:
python check.py [libtilewright_onnxruntime.so]"""

import json
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

SPEC = {"head_dim": 64, "score_mod": "score + slopes[h] * (kv_idx - q_idx)", "mask_mod": "q_idx >= kv_idx",
        "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}}
DTYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}


def model(spec, domain="tilewright"):
    dtype = DTYPES[spec["dtype"]]
    node = helper.make_node("Attention", ["q", "k", "v", "slopes"], ["out"], domain=domain,
                            spec=json.dumps(spec), buffers="slopes")
    inputs = [helper.make_tensor_value_info(name, dtype, ["batch", f"heads_{name}", f"length_{name}", 64]) for name in "qkv"]
    inputs.append(helper.make_tensor_value_info("slopes", TensorProto.FLOAT, ["heads_q"]))
    graph = helper.make_graph([node], "attention", inputs, [helper.make_tensor_value_info("out", dtype, None)])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def inputs(dtype, rows):
    random = np.random.default_rng(rows)
    tensors = {name: random.standard_normal((2, heads, length, 64), np.float32).astype(dtype)
               for name, heads, length in (("q", 8, rows), ("k", 2, 300), ("v", 2, 300))}
    return {**tensors, "slopes": 2.0 ** -np.arange(8, dtype=np.float32)}


def reference(q, k, v, slopes):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    distance = np.arange(k.shape[2]) - (np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2])
    scores = np.where(distance <= 0, q @ k.swapaxes(2, 3) / 8 + slopes[:, None, None] * distance, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def check(library, domain, cases):
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(library)
    for name, dtype, bound in cases:
        session = onnxruntime.InferenceSession(model({"dtype": name, **SPEC}, domain), options)
        for rows in (300, 1):
            given = inputs(dtype, rows)
            worst = np.abs(session.run(None, given)[0] - reference(**given)).max()
            print(f"{name}, {rows} rows: at most {worst:.1g} from double precision")
            assert worst < bound
    return options


def check_cpp(library):
    options = check(library, "tilewright", [("f32", np.float32, 1e-5), ("f16", np.float16, 4e-3)])
    try:
        onnxruntime.InferenceSession(model({"dtype": "f32", **SPEC, "mask_mod": "q_idx >= kv_index"}), options)
    except Exception as error:
        print(error)
        assert "write kv_idx" in str(error)
    else:
        raise AssertionError("kv_index is no name of a mask_mod")


def check_python():
    import onnxruntime_extensions
    import pyop

    check(onnxruntime_extensions.get_library_path(), pyop.DOMAIN, [("f32", np.float32, 1e-5)])


if __name__ == "__main__":
    check_cpp(sys.argv[1]) if sys.argv[1:] else check_python()
