#include "dtypes.hpp"

#include <array>
#include <cstdint>

namespace nb = nanobind;

namespace tilewright::py {
namespace {

using Code = nb::dlpack::dtype_code;

struct DlpackDType {
  Code code;
  int bits;
  DType dtype;
};

// DLPack's kDLFloat8_e4m3fn and kDLFloat8_e5m2.
constexpr auto kFloat8E4M3 = static_cast<Code>(10);
constexpr auto kFloat8E5M2 = static_cast<Code>(12);

constexpr std::array kDlpackDTypes = {
    DlpackDType{Code::Float, 32, f32},   DlpackDType{Code::Float, 16, f16},
    DlpackDType{Code::Bfloat, 16, bf16}, DlpackDType{Code::Int, 32, i32},
    DlpackDType{Code::Int, 64, i64},     DlpackDType{Code::Int, 8, i8},
    DlpackDType{Code::UInt, 8, u8},      DlpackDType{Code::Bool, 8, boolean},
    DlpackDType{Code::Float, 64, f64},   DlpackDType{Code::Int, 16, i16},
    DlpackDType{Code::UInt, 16, u16},    DlpackDType{Code::UInt, 32, u32},
    DlpackDType{kFloat8E4M3, 8, f8e4m3}, DlpackDType{kFloat8E5M2, 8, f8e5m2}};

}  // namespace

std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype dtype) {
  for (const DlpackDType& known : kDlpackDTypes) {
    if (dtype.code == static_cast<std::uint8_t>(known.code) && dtype.bits == known.bits &&
        dtype.lanes == 1) {
      return known.dtype;
    }
  }
  return std::nullopt;
}

}  // namespace tilewright::py
