#include "exchange.hpp"

#include <unordered_map>

#include <nanobind/ndarray.h>

#include "dtypes.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

using Fill = int (*)(void* array, nb::dlpack::dltensor* tensor);

// DLPackExchangeAPI of DLPack 1.2 and later, of which the fifth function is used.
struct Table {
  std::uint32_t major;
  std::uint32_t minor;
  Table* older;
  void* allocate;
  void* managed_from_array;
  void* array_from_managed;
  Fill fill;
};

Fill find_fill(PyTypeObject* type) {
  PyObject* capsule =
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  const auto* table =
      capsule ? static_cast<const Table*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"))
              : nullptr;
  Py_XDECREF(capsule);
  PyErr_Clear();
  while (table && table->major > 1) table = table->older;
  return table && table->major == 1 ? table->fill : nullptr;
}

// The GIL guards the map. Types that it knows are never freed.
Fill fill_of(PyTypeObject* type) {
  static auto& known = *new std::unordered_map<PyTypeObject*, Fill>;
  const auto found = known.find(type);
  if (found != known.end()) return found->second;
  Py_INCREF(type);
  return known.emplace(type, find_fill(type)).first->second;
}

}  // namespace

std::optional<Exchanged> exchange(nb::handle array) {
  constexpr int kCpu = 1, kCuda = 2, kCudaHost = 3;
  const Fill fill = fill_of(Py_TYPE(array.ptr()));
  if (!fill) return std::nullopt;
  nb::dlpack::dltensor tensor = {};
  if (fill(array.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const std::optional<DType> dtype = dtype_of_dlpack(tensor.dtype);
  const int kind = tensor.device.device_type;
  if (!dtype || tensor.ndim > kMaxRank || !tensor.strides ||
      (kind != kCpu && kind != kCuda && kind != kCudaHost)) {
    return std::nullopt;
  }
  Exchanged result{.gpu = kind == kCuda ? tensor.device.device_id : -1};
  result.view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  result.view.dtype = *dtype;
  result.view.rank = tensor.ndim;
  for (int i = 0; i < tensor.ndim; ++i) {
    result.view.shape[i] = tensor.shape[i];
    result.view.strides[i] = tensor.strides[i];
  }
  return result;
}

}  // namespace tilewright::py
