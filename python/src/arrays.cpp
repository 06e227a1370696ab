#include "arrays.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "base/error.hpp"
#include "dtypes.hpp"
#include "exchange.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorCode::tensor, std::string(name) + ' ' + what, hint);
}

[[noreturn]] void refuse_dtype(const char* name, const std::string& dtype) {
  refuse(name, "has dtype " + dtype, kDTypeHint);
}

void set_rank(TensorView& view, const char* name, std::int64_t rank) {
  if (rank > kMaxRank) {
    refuse(name, "has " + std::to_string(rank) + " dimensions, but a tensor has at most 5");
  }
  view.rank = static_cast<int>(rank);
}

bool truth(const nb::object& value) {
  return PyObject_IsTrue(value.ptr()) == 1;
}

std::int64_t whole(const nb::object& value) {
  const long long number = PyLong_AsLongLong(value.ptr());
  if (number == -1 && PyErr_Occurred()) nb::raise_python_error();
  return number;
}

std::uintptr_t address(const nb::object& value) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(value.ptr());
  if (PyErr_Occurred()) nb::raise_python_error();
  return number;
}

std::string text(nb::handle value) {
  return nb::str(value).c_str();
}

// Of PyTorch's and numpy's dtypes.
std::optional<DType> dtype_named(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  constexpr std::array<std::pair<std::string_view, DType>, 14> known = {{{"float32", f32},
                                                                         {"float16", f16},
                                                                         {"bfloat16", bf16},
                                                                         {"int32", i32},
                                                                         {"int64", i64},
                                                                         {"uint8", u8},
                                                                         {"bool", boolean},
                                                                         {"float8_e4m3fn", f8e4m3},
                                                                         {"float8_e5m2", f8e5m2},
                                                                         {"int8", i8},
                                                                         {"float64", f64},
                                                                         {"int16", i16},
                                                                         {"uint16", u16},
                                                                         {"uint32", u32}}};
  for (const auto& [known_name, dtype] : known) {
    if (name == known_name) return dtype;
  }
  return std::nullopt;
}

DType dtype_or_refuse(const char* name, nb::handle dtype) {
  // dtypes of torch and numpy live as long as the process. The GIL guards the map.
  static auto& known = *new std::unordered_map<PyObject*, DType>;
  if (const auto found = known.find(dtype.ptr()); found != known.end()) return found->second;
  const std::string name_of_dtype = text(dtype);
  const std::optional<DType> found = dtype_named(name_of_dtype);
  if (!found) refuse_dtype(name, name_of_dtype);
  known.emplace(nb::object(nb::borrow(dtype)).release().ptr(), *found);
  return *found;
}

std::optional<DType> dtype_of_format(const char* format) {
  std::string_view code = format ? format : "B";
  if (code.starts_with('@') || code.starts_with('=') || code.starts_with('<'))
    code.remove_prefix(1);
  if (code == "f") return f32;
  if (code == "e") return f16;
  if (code == "i") return i32;
  if (code == "l" || code == "q") return i64;
  if (code == "B") return u8;
  if (code == "b") return i8;
  if (code == "?") return boolean;
  if (code == "d") return f64;
  if (code == "h") return i16;
  if (code == "H") return u16;
  if (code == "I") return u32;
  return std::nullopt;
}

void require_device(const char* name, const Device& device, bool on_gpu, int index) {
  const bool fits =
      device.kind() == Device::Kind::cuda ? on_gpu && index == device.index() : !on_gpu;
  if (fits) return;
  const std::string where = on_gpu ? "cuda:" + std::to_string(index) : "cpu";
  refuse(name, "lies on " + where + ", but this attention runs on " + device.name(),
         "move it to " + device.name() + ", or make the attention with device=\"" + where + "\"");
}

// numpy, and jax on a CPU.
std::optional<TensorView> view_of_buffer(nb::handle array, const char* name, Use use) {
  Py_buffer buffer;
  const int flags = PyBUF_FORMAT | PyBUF_STRIDES | (use == Use::write ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(array.ptr(), &buffer, flags) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  struct Release {
    Py_buffer* buffer;
    ~Release() { PyBuffer_Release(buffer); }
  } release{&buffer};
  const std::optional<DType> dtype = dtype_of_format(buffer.format);
  if (!dtype) {
    if (!nb::hasattr(array, "dtype")) refuse_dtype(name, buffer.format);
    refuse_dtype(name, text(array.attr("dtype")));
  }
  TensorView view{.data = buffer.buf, .dtype = *dtype};
  set_rank(view, name, buffer.ndim);
  for (int i = 0; i < buffer.ndim; ++i) {
    view.shape[i] = buffer.shape[i];
    if (buffer.strides[i] % buffer.itemsize != 0)
      refuse(name, "has strides that are no whole elements", "copy it");
    view.strides[i] = buffer.strides[i] / buffer.itemsize;
  }
  return view;
}

// The dtypes of ml_dtypes, which no buffer and no DLPack of numpy carries.
TensorView view_of_interface(nb::handle array, const char* name, Use use) {
  const DType dtype = dtype_or_refuse(name, array.attr("dtype"));
  const nb::object interface = array.attr("__array_interface__");
  const nb::object data = interface["data"];
  if (use == Use::write && truth(data[1]))
    refuse(name, "is read-only", "give an array that can be written");
  TensorView view{.data = reinterpret_cast<void*>(address(data[0])), .dtype = dtype};
  const nb::object shape = array.attr("shape");
  const nb::object strides = array.attr("strides");
  set_rank(view, name, static_cast<std::int64_t>(nb::len(shape)));
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (int i = 0; i < view.rank; ++i) {
    view.shape[i] = whole(shape[i]);
    view.strides[i] = whole(strides[i]) / bytes;
  }
  return view;
}

bool wants_gradients(nb::handle array) {
  static PyObject* const attribute = PyUnicode_InternFromString("requires_grad");
  const nb::object wants = nb::steal(PyObject_GetAttr(array.ptr(), attribute));
  if (!wants.is_valid()) nb::raise_python_error();
  return truth(wants) && truth(nb::module_::import_("torch").attr("is_grad_enabled")());
}

// Sparse tensors, and those that stand for others inside torch.vmap, have no memory.
void* data_of_torch(nb::handle array, const char* name) {
  try {
    return reinterpret_cast<void*>(address(array.attr("data_ptr")()));
  } catch (const nb::python_error&) {
    refuse(name, "has no memory",
           "pass a dense tensor, and call outside of torch.vmap and torch.func");
  }
}

TensorView view_of_torch(nb::handle array, const char* name, const Device& device) {
  if (wants_gradients(array)) {
    refuse(name, "requires gradients, which this call does not compute",
           "call under torch.no_grad(), or pass " + std::string(name) + ".detach()");
  }
  if (const std::optional<Exchanged> found = exchange(array)) {
    require_device(name, device, found->gpu >= 0, found->gpu);
    return found->view;
  }
  TensorView view{.dtype = dtype_or_refuse(name, array.attr("dtype"))};
  if (truth(array.attr("is_cuda"))) {
    require_device(name, device, true, static_cast<int>(whole(array.attr("get_device")())));
  } else {
    const std::string kind = truth(array.attr("is_cpu")) ? "cpu" : text(array.attr("device"));
    if (kind != "cpu") refuse(name, "lies on " + kind, "move it to " + device.name());
    require_device(name, device, false, 0);
  }
  view.data = data_of_torch(array, name);
  const nb::object shape = array.attr("shape");
  const nb::object strides = array.attr("stride")();
  set_rank(view, name, static_cast<std::int64_t>(nb::len(shape)));
  for (int i = 0; i < view.rank; ++i) {
    view.shape[i] = whole(shape[i]);
    view.strides[i] = whole(strides[i]);
  }
  return view;
}

TensorView view_of_dlpack(nb::handle array, const char* name, const Device& device) {
  nb::ndarray<nb::ro> tensor;
  if (!nb::try_cast(array, tensor)) {
    refuse(name, std::string("is a ") + Py_TYPE(array.ptr())->tp_name + ", not an array",
           "pass an array of numpy, torch or jax, or any other with __dlpack__");
  }
  if (tensor.device_type() != nb::device::cpu::value && tensor.device_type() != 3) {
    require_device(name, device, true, tensor.device_id());
  } else {
    require_device(name, device, false, 0);
  }
  const nb::dlpack::dtype given = tensor.dtype();
  const std::optional<DType> dtype = dtype_of_dlpack(given);
  if (!dtype) {
    refuse_dtype(name, "with DLPack's code " + std::to_string(given.code) + " and " +
                           std::to_string(given.bits) + " bits");
  }
  TensorView view{.data = const_cast<void*>(tensor.data()), .dtype = *dtype};
  set_rank(view, name, static_cast<std::int64_t>(tensor.ndim()));
  for (int i = 0; i < view.rank; ++i) {
    view.shape[i] = static_cast<std::int64_t>(tensor.shape(static_cast<std::size_t>(i)));
    view.strides[i] = tensor.stride(static_cast<std::size_t>(i));
  }
  return view;
}

}  // namespace

TensorView view_of(nb::handle array, const char* name, const Device& device, Use use) {
  if (PyObject_CheckBuffer(array.ptr())) {
    if (const std::optional<TensorView> view = view_of_buffer(array, name, use)) {
      require_device(name, device, false, 0);
      return *view;
    }
  }
  static PyObject* const data_ptr = PyUnicode_InternFromString("data_ptr");
  if (PyObject_HasAttr(array.ptr(), data_ptr)) return view_of_torch(array, name, device);
  if (nb::hasattr(array, "__array_interface__") && nb::hasattr(array, "strides")) {
    require_device(name, device, false, 0);
    return view_of_interface(array, name, use);
  }
  return view_of_dlpack(array, name, device);
}

}  // namespace tilewright::py
