"""ctypes_client.py LIBRARY: README's example from Python's standard library alone."""

import ctypes as c
import sys


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("shape", c.c_int64 * 5), ("strides", c.c_int64 * 5), ("rank", c.c_int32),
                ("dtype", c.c_int32), ("device_type", c.c_int32), ("device_id", c.c_int32)]


class Options(c.Structure):
    # An earlier header's: the library takes the fields that are there.
    _fields_ = [("struct_size", c.c_size_t), ("device", c.c_char_p)]


class Shape(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, c.c_int64) for name in (
        "batch", "num_q_heads", "num_kv_heads", "q_len", "kv_len", "q_offset", "kv_offset")]


class Call(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, Tensor) for name in ("q", "k", "v", "out", "lse")] + [
        ("mask", c.c_void_p), ("plan", c.c_void_p), ("bindings", c.c_void_p)]


class Info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, c.c_int64) for name in (
        "batch", "heads", "q_blocks", "kv_blocks", "block_q", "block_kv", "partial_tiles", "full_tiles")]


library = c.CDLL(sys.argv[1])
library.tw_tensor_contiguous.restype = Tensor
library.tw_tensor_contiguous.argtypes = [c.c_void_p, c.c_int32, c.c_int32, c.POINTER(c.c_int64)]
library.tw_error_report.restype = c.c_char_p
library.tw_error_report.argtypes = [c.c_void_p]
library.tw_error_destroy.argtypes = [c.c_void_p]
library.tw_mask_destroy.argtypes = library.tw_attention_destroy.argtypes = [c.c_void_p]


def call(function, *arguments):
    error = c.c_void_p()
    status = function(*arguments, c.byref(error))
    if status:
        report = library.tw_error_report(error).decode()
        library.tw_error_destroy(error)
        raise RuntimeError(f"{status}: {report}")


def sized(struct, **fields):
    return struct(struct_size=c.sizeof(struct), **fields)


sizes = (c.c_int64 * 4)(1, 8, 512, 64)
count = 8 * 512 * 64
q, out = (c.c_float * count)(*[0.5] * count), (c.c_float * count)()
attention, mask, info = c.c_void_p(), c.c_void_p(), sized(Info)
call(library.tw_attention_create, b'{"dtype": "f32", "head_dim": 64, "mask_mod": "q_idx >= kv_idx"}',
     c.byref(sized(Options, device=b"cpu")), c.byref(attention))
shape = sized(Shape, batch=1, num_q_heads=8, num_kv_heads=8, q_len=512, kv_len=512)
call(library.tw_mask_create, attention, c.byref(shape), None, None, c.byref(mask))
call(library.tw_mask_describe, mask, c.byref(info))
x = library.tw_tensor_contiguous(q, 0, 4, sizes)
y = library.tw_tensor_contiguous(out, 0, 4, sizes)
call(library.tw_forward, attention, c.byref(sized(Call, q=x, k=x, v=x, out=y, mask=mask)))
print(f"out[0] = {out[0]:g}, {100 * (info.partial_tiles + info.full_tiles) / 16:.0f} % of the tiles visited")
try:
    call(library.tw_attention_create, b'{"dtype": "f32", "head_dims": 64}', None, c.byref(c.c_void_p()))
except RuntimeError as error:
    print(error)
library.tw_mask_destroy(mask)
library.tw_attention_destroy(attention)
