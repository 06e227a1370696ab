"""The operator in Python, for onnxruntime_extensions: a session that registers get_library_path() calls it."""

import functools
import json

import tilewright as tw
from onnxruntime_extensions import PyCustomOpDef, onnx_op

DOMAIN = "ai.onnx.contrib"  # of all operators in Python
FLOAT, STRING = PyCustomOpDef.dt_float, PyCustomOpDef.dt_string


@functools.cache
def compiled(spec):
    return tw.Attention(json.loads(spec), device="cpu")


@onnx_op(op_type="Attention", inputs=[FLOAT] * 4, outputs=[FLOAT], attrs={"spec": STRING, "buffers": STRING})
def attention(q, k, v, buffer, spec, buffers):
    bindings = compiled(spec).bind(**{buffers: buffer})
    return compiled(spec).forward(q, k, v, bindings=bindings, q_offset=k.shape[2] - q.shape[2])
