"""What the package asks of numpy, torch and jax arrays. No framework is imported before an array of it is seen."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._arguments import require_module
from ._error import Error

DTYPES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float64": "f64",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "uint16": "u16",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "bool": "bool",
}
# Of k and v; f8e4m3 of q and out too.
QUANTISED = {"float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "int8": "i8"}
_NAMES = {short: name for name, short in (*DTYPES.items(), *QUANTISED.items())}

_torch_dtypes: Dict[str, Any] = {}


_frameworks: Dict[type, str] = {}


def framework(array: Any) -> str:
    """ "numpy", "torch", "jax", or "" for any other object."""
    found = _frameworks.get(type(array))
    if found is None:
        found = _framework(array)
        if found:
            _frameworks[type(array)] = found
    return found


def _framework(array: Any) -> str:
    module = type(array).__module__.partition(".")[0]
    if module == "numpy":
        return "numpy" if hasattr(array, "__array_interface__") and hasattr(array, "ndim") else ""
    if module in ("jax", "jaxlib"):
        return "jax" if hasattr(array, "ndim") else ""
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and isinstance(array, torch.Tensor) else ""


def is_array(value: Any) -> bool:
    """True for arrays that a mod may read, 0-d ones too; numpy's scalars are numbers."""
    if framework(value):
        return type(value).__module__ != "numpy" or type(value).__name__ in ("ndarray", "memmap")
    return hasattr(value, "__dlpack__") and hasattr(value, "dtype") and hasattr(value, "shape")


def dtype_name(array: Any) -> str:
    """ "float32", "bfloat16", ..."""
    return str(array.dtype).rpartition("torch.")[2]


def float_dtype(array: Any, name: str) -> str:
    """ "f32", "f16" or "bf16" of q, k or v."""
    short = DTYPES.get(dtype_name(array), "")
    if short not in ("f32", "f16", "bf16"):
        raise Error("tensor", f"{name} has dtype {dtype_name(array)}", "convert it to float32, float16 or bfloat16")
    return short


def stored_dtype(array: Any, name: str) -> str:
    """The same of k or v, which may have one byte: "f8e4m3", "f8e5m2" or "i8"."""
    return QUANTISED.get(dtype_name(array)) or float_dtype(array, name)


def device_of(array: Any) -> str:
    """ "cpu" or "cuda:0"."""
    kind = framework(array)
    if kind == "torch":
        device = array.device
        return "cpu" if device.type == "cpu" else f"{device.type}:{device.index or 0}"
    if kind == "jax" and not is_traced(array):
        device = next(iter(array.devices()))
        return "cpu" if device.platform == "cpu" else f"cuda:{device.id}"
    return "cpu"


def is_traced(array: Any) -> bool:
    """True for an array inside jax.jit."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)


def empty_like(array: Any, shape: Sequence[int], dtype: str) -> Any:
    """An array without contents, of the framework and on the device of `array`. `dtype` is a spec's: "f32"."""
    if framework(array) == "torch":
        wanted = _torch_dtypes.get(dtype) or _torch_dtype(dtype)
        if array.dtype is wanted and array.shape == shape:
            return _empty_like(array)  # much the fastest, and in the order of the array's strides
        return array.new_empty(shape, dtype=wanted)
    known = _numpy_dtypes.get(dtype) or _numpy_dtype(dtype)
    return _numpy_empty(shape, known)


def dense_like(array: Any, shape: Sequence[int], dtype: str) -> Any:
    """The same, row-major whatever the strides of `array` are."""
    if framework(array) == "torch":
        return array.new_empty(shape, dtype=_torch_dtypes.get(dtype) or _torch_dtype(dtype))
    return empty_like(array, shape, dtype)


_workspaces: Dict[Tuple[str, int], Any] = {}  # the one in use of each device and stream
_outgrown: List[Any] = []  # which graphs may still use


def zeroed_workspace(array: Any, size: int, device: str, stream: int) -> Any:
    """Memory for calls in one stream of a device, zeroed once and shared by all attentions: at least `size` bytes."""
    found = _workspaces.get((device, stream))
    if found is not None and found.shape[0] >= size:
        return found
    if found is not None:
        _outgrown.append(found)
    size = max(1 << 20, 1 << (size - 1).bit_length())
    if framework(array) == "torch":
        made = array.new_zeros((size,), dtype=_torch_dtypes.get("u8") or _torch_dtype("u8"))
    else:
        numpy = require_module("numpy")
        memory = numpy.zeros(size + 256, numpy.uint8)
        after = memory.ctypes.data % 256
        made = memory[256 - after : 256 - after + size]
    _workspaces[device, stream] = made
    return made


_numpy_dtypes: Dict[str, Any] = {}
_numpy_empty: Any = None
_empty_like: Any = None


def _numpy_dtype(dtype: str) -> Any:
    global _numpy_empty
    numpy = require_module("numpy")
    _numpy_empty = numpy.empty
    of_ml_dtypes = dtype in ("bf16", "f8e4m3", "f8e5m2")
    found = numpy.dtype(getattr(require_module("ml_dtypes"), _NAMES[dtype]) if of_ml_dtypes else _NAMES[dtype])
    return _numpy_dtypes.setdefault(dtype, found)


def _torch_dtype(dtype: str) -> Any:
    global _empty_like
    torch = sys.modules["torch"]
    _empty_like = torch.empty_like
    return _torch_dtypes.setdefault(dtype, getattr(torch, _NAMES[dtype]))


def readable(array: Any) -> Any:
    """The array as the extension reads it: jax's as numpy's, which copies nothing on a CPU."""
    if framework(array) == "jax" and not is_traced(array):
        import numpy

        return numpy.asarray(array)
    return array


def stream_of(array: Any) -> int:
    """torch's current stream of the array's GPU; 0 on a CPU."""
    if _frameworks.get(type(array)) != "torch" or not array.is_cuda:
        return 0
    torch = sys.modules["torch"]
    return int(torch._C._cuda_getCurrentRawStream(array.device.index))


def same_framework(**arrays: Any) -> str:
    """The framework that all arrays belong to, named as the arguments are."""
    kinds = {name: framework(array) for name, array in arrays.items()}
    for name, array in arrays.items():
        require_array(name, array)
    first_name, first = next(iter(kinds.items()))
    for name, kind in kinds.items():
        if kind != first:
            raise Error(
                "tensor",
                f"{first_name} is a {first} array, but {name} is a {kind} array",
                "pass arrays of one framework",
            )
    return first


def require_array(name: str, value: Any, rank: Optional[int] = None) -> None:
    """Refuses what is not an array, or one of another rank."""
    if not framework(value):
        shown = "None" if value is None else f"a {type(value).__name__}"
        raise Error("tensor", f"{name} is {shown}, not an array", "pass an array of numpy, torch or jax")
    if rank is not None and len(value.shape) != rank:
        raise Error("tensor", f"{name} has {len(value.shape)} dimensions, not {rank}: {list(shape_of(value))}")


def shape_of(array: Any) -> Tuple[int, ...]:
    return tuple(int(size) for size in array.shape)
