#include "tests/generator/cpu_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "generator/render/templates.hpp"

namespace tilewright::test {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + ' ';
  return text;
}

void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

std::shared_ptr<void> compile(const std::string& text, const std::vector<std::string>& options) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "tilewright-test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const std::string stem = folder + "/kernel";
  std::ofstream(stem + ".cpp") << text;
  const char* const cxx = std::getenv("CXX");
  const std::string compiler = cxx != nullptr ? cxx : "c++";
  // Two steps, so that -fsanitize links no library.
  shell(compiler + " -std=c++20 -fPIC -w " + join(options) + "-c " + stem + ".cpp -o " + stem +
        ".o");
  shell(compiler + " -shared " + stem + ".o -o " + stem + ".so");
  void* const object = dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) throw std::runtime_error(dlerror());
  fs::remove_all(folder);
  return {object, dlclose};
}

// Bytes that end where a page ends that must not be touched: reading past them crashes.
class GuardedBytes {
 public:
  explicit GuardedBytes(const std::vector<unsigned char>& bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = (bytes.size() + page - 1) / page * page;
    size_ = room + page;
    base_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    auto* const first = static_cast<unsigned char*>(base_);
    if (mprotect(first + room, page, PROT_NONE) != 0) throw std::runtime_error("mprotect failed");
    data_ = first + (room - bytes.size());
    std::memcpy(data_, bytes.data(), bytes.size());
  }
  ~GuardedBytes() { munmap(base_, size_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  unsigned char* data() { return data_; }

 private:
  void* base_;
  std::size_t size_;
  unsigned char* data_;
};

}  // namespace

CompiledText::CompiledText(const std::string& text, const std::vector<std::string>& options) {
  static std::map<std::string, std::shared_ptr<void>> compiled;
  std::shared_ptr<void>& object = compiled[join(options) + text];
  if (!object) object = compile(text, options);
  object_ = object;
}

void* CompiledText::address(const char* name) const {
  void* const found = dlsym(object_.get(), name);
  if (found == nullptr) throw std::runtime_error(std::string("no symbol ") + name);
  return found;
}

CompiledText load_kernel(const Spec& spec, std::string_view kernel, const Target& target) {
  const KernelSource source =
      render_kernel(spec, target, KernelVariant::parse(kernel), *default_template_loader());
  return {source.text, source.options};
}

bool can_run(const Target& target) {
#if defined(__x86_64__)
  if (target.name() == "cpu-x86-64-v4") return __builtin_cpu_supports("avx512vl") != 0;
  if (target.name() == "cpu-x86-64-v3") return __builtin_cpu_supports("avx2") != 0;
#endif
  return target.name() == "cpu";
}

std::uint16_t round_to(DType dtype, float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int mantissa_bits = dtype == DType::f16 ? 10 : 7;
  const int least_exponent = dtype == DType::f16 ? -14 : -126;
  const int infinity = dtype == DType::f16 ? 0x7c00 : 0x7f80;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), least_exponent);
  // A count of units in the last place; one more exponent's worth of them carries by itself.
  const double units = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  const int bits = static_cast<int>(units) + ((exponent - least_exponent) << mantissa_bits);
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

float widen(DType dtype, std::uint16_t bits) {
  const int mantissa_bits = dtype == DType::f16 ? 10 : 7;
  const int bias = dtype == DType::f16 ? 15 : 127;
  const int magnitude = bits & 0x7fff;
  const int exponent = magnitude >> mantissa_bits;
  const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
  double value = std::ldexp(mantissa + (exponent > 0 ? 1 << mantissa_bits : 0),
                            std::max(exponent, 1) - bias - mantissa_bits);
  if (exponent == 2 * bias + 1) {
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  }
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

BlockLists::BlockLists(const Spec& spec, const CallShape& shape, const Mods& mods, int mask_batch,
                       int mask_heads)
    : row_offsets{0}, full_row_offsets{0}, batch(mask_batch), heads(mask_heads) {
  const int block_q = static_cast<int>(spec.block[0]), block_kv = static_cast<int>(spec.block[1]);
  q_blocks = (shape.q_len + block_q - 1) / block_q;
  for (int row = 0; row < batch * heads * q_blocks; ++row) {
    const int b = row / q_blocks / heads, h = row / q_blocks % heads;
    const int first_q = row % q_blocks * block_q;
    for (int first_kv = 0; first_kv < shape.kv_len; first_kv += block_kv) {
      bool some = false, all = true;
      for (int i = first_q; i < std::min(first_q + block_q, shape.q_len); ++i) {
        for (int j = first_kv; j < std::min(first_kv + block_kv, shape.kv_len); ++j) {
          const bool kept = mods.mask(b, h, i + shape.q_offset, j + shape.kv_offset);
          some |= kept;
          all &= kept;
        }
      }
      if (some) (all ? full_indices : indices).push_back(first_kv / block_kv);
    }
    row_offsets.push_back(static_cast<long long>(indices.size()));
    full_row_offsets.push_back(static_cast<long long>(full_indices.size()));
  }
}

abi::BlockMaskArgument BlockLists::argument() const {
  return {row_offsets.data(),
          indices.data(),
          full_row_offsets.data(),
          full_indices.data(),
          batch,
          heads,
          q_blocks};
}

long long Call::Tensor::index(int b, int h, int row, int d) const {
  return b * batch_stride + h * head_stride + row * row_stride + d;
}

double Call::Tensor::get(int b, int h, int row, int d) const {
  const std::uint32_t bits = storage[static_cast<std::size_t>(index(b, h, row, d))];
  if (dtype != DType::f32) return widen(dtype, static_cast<std::uint16_t>(bits));
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void Call::Tensor::set(int b, int h, int row, int d, float value) {
  std::uint32_t bits = 0;
  if (dtype == DType::f32) {
    std::memcpy(&bits, &value, sizeof bits);
  } else {
    bits = round_to(dtype, value);
  }
  storage[static_cast<std::size_t>(index(b, h, row, d))] = bits;
}

std::vector<unsigned char> Call::Tensor::bytes(std::size_t count) const {
  std::vector<unsigned char> bytes;
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t i = 0; i < size_of(dtype); ++i) {
      bytes.push_back(static_cast<unsigned char>(storage[j] >> (8 * i)));
    }
  }
  return bytes;
}

Call::Tensor Call::make_tensor(DType dtype, Layout layout, int batch, int heads, int rows,
                               int dim) {
  Tensor tensor{dtype, layout, heads, rows, dim, 0, 0, 0, {}};
  const long long size = 1LL * heads * rows * dim;
  tensor.row_stride = layout == Layout::bhsd ? dim : 1LL * heads * dim;
  tensor.head_stride = layout == Layout::bhsd ? 1LL * rows * dim : dim;
  tensor.batch_stride = size;
  // NaN all over and past the end: what is not written, or read by mistake, shows.
  const std::uint32_t nan = dtype == DType::f32   ? 0x7fc00000
                            : dtype == DType::f16 ? 0x7e00
                                                  : 0x7fc0;
  tensor.storage.assign(static_cast<std::size_t>(batch * size) + kBehind, nan);
  return tensor;
}

Call::Call(const Spec& spec, const CallShape& shape, unsigned seed) : spec_(spec), shape_(shape) {
  const int dim = static_cast<int>(spec.head_dim),
            value_dim = static_cast<int>(spec.value_head_dim());
  if (shape_.kv_batch == 0) shape_.kv_batch = shape_.batch;
  q_ = make_tensor(spec.dtype, spec.layout, shape.batch, shape.q_heads, shape.q_len, dim);
  k_ = make_tensor(spec.key_value_dtype(), spec.key_value_layout(), shape_.kv_batch, shape.kv_heads,
                   shape.kv_len, dim);
  v_ = make_tensor(spec.key_value_dtype(), spec.key_value_layout(), shape_.kv_batch, shape.kv_heads,
                   shape.kv_len, value_dim);
  out_ = make_tensor(spec.output_dtype(), spec.layout, shape.batch, shape.q_heads, shape.q_len,
                     value_dim);
  lse_.assign(static_cast<std::size_t>(1LL * shape.batch * shape.q_heads * shape.q_len + 64), NAN);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (Tensor* tensor : {&q_, &k_, &v_}) {
    const int batch = tensor == &q_ ? shape.batch : shape_.kv_batch;
    for (int b = 0; b < batch; ++b) {
      for (int h = 0; h < tensor->heads; ++h) {
        for (int row = 0; row < tensor->rows; ++row) {
          for (int d = 0; d < tensor->dim; ++d) tensor->set(b, h, row, d, normal(random));
        }
      }
    }
    if (batch == 1) tensor->batch_stride = 0;
  }
  scale = static_cast<float>(spec.softmax_scale());
}

double Call::q(int b, int h, int row, int d) const {
  return q_.get(b, h, row, d);
}
double Call::k(int b, int h, int row, int d) const {
  return k_.get(b, h, row, d);
}
double Call::v(int b, int h, int row, int d) const {
  return v_.get(b, h, row, d);
}
void Call::set_k(int b, int h, int row, int d, float value) {
  k_.set(b, h, row, d, value);
}
void Call::set_v(int b, int h, int row, int d, float value) {
  v_.set(b, h, row, d, value);
}

abi::SnippetArguments Call::snippet_arguments() const {
  return {buffers.data(), scalars.data(), shape_.batch,    shape_.q_heads,  shape_.kv_heads,
          shape_.q_len,   shape_.kv_len,  shape_.q_offset, shape_.kv_offset};
}

void Call::run(const CompiledText& kernel, const BlockLists* lists) {
  const auto forward = kernel.symbol<void (*)(const abi::ForwardArguments*, int, int, int, void*)>(
      "tilewright_forward");
  const int q_tile = *kernel.symbol<const int*>("tilewright_q_tile");
  const auto scratch_bytes =
      static_cast<std::size_t>(*kernel.symbol<const long long*>("tilewright_scratch_bytes"));
  GuardedBytes q(q_.bytes(q_.size())), k(k_.bytes(k_.size())), v(v_.bytes(v_.size()));
  std::vector<unsigned char> out = out_.bytes(out_.storage.size());
  const auto argument = [](const Tensor& tensor, auto& bytes) {
    return abi::TensorArgument{bytes.data(), tensor.batch_stride, tensor.head_stride,
                               tensor.row_stride};
  };
  abi::ForwardArguments arguments{};
  arguments.snippet = snippet_arguments();
  arguments.q = argument(q_, q);
  arguments.k = argument(k_, k);
  arguments.v = argument(v_, v);
  arguments.out = argument(out_, out);
  arguments.lse = lse_.data();
  arguments.lse_head_stride = shape_.q_len;
  arguments.scale = scale;
  if (lists != nullptr) arguments.mask = lists->argument();
  // Dirty, as a caller's would be.
  const std::size_t rounded = (scratch_bytes + 63) / 64 * 64;
  const std::unique_ptr<void, decltype(&std::free)> scratch(std::aligned_alloc(64, rounded),
                                                            std::free);
  std::memset(scratch.get(), 0xff, rounded);
  for (int b = 0; b < shape_.batch; ++b) {
    for (int h = 0; h < shape_.q_heads; ++h) {
      for (int tile = 0; tile * q_tile < shape_.q_len; ++tile) {
        forward(&arguments, b, h, tile, scratch.get());
      }
    }
  }
  const std::size_t size = size_of(out_.dtype);
  for (std::size_t i = 0; i < out_.storage.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &out[i * size], size);
    out_.storage[i] = bits;
  }
}

float Call::out(int b, int h, int row, int d) const {
  return static_cast<float>(out_.get(b, h, row, d));
}

float Call::lse(int b, int h, int row) const {
  return lse_[static_cast<std::size_t>((1LL * b * shape_.q_heads + h) * shape_.q_len + row)];
}

namespace {

double error_between(double got, double expected) {
  if (std::isnan(got) || std::isnan(expected)) {
    return std::isnan(got) && std::isnan(expected) ? 0 : std::numeric_limits<double>::infinity();
  }
  if (got == expected) return 0;
  return std::fabs(got - expected) / std::max(1.0, std::fabs(expected));
}

}  // namespace

Call::Difference Call::difference(const Mods& mods) const {
  Difference worst;
  const double infinity = std::numeric_limits<double>::infinity();
  const int dim = static_cast<int>(spec_.head_dim);
  const int value_dim = static_cast<int>(spec_.value_head_dim());
  std::vector<double> p(static_cast<std::size_t>(shape_.kv_len));
  std::vector<double> expected(static_cast<std::size_t>(value_dim));
  for (int b = 0; b < shape_.batch; ++b) {
    for (int h = 0; h < shape_.q_heads; ++h) {
      const int kv_b = shape_.kv_batch == 1 ? 0 : b;
      const int h_kv = h / (shape_.q_heads / shape_.kv_heads);
      for (int row = 0; row < shape_.q_len; ++row) {
        const int q_idx = row + shape_.q_offset;
        double greatest = -infinity, sum = 0;
        for (int j = 0; j < shape_.kv_len; ++j) {
          double dot = 0;
          for (int d = 0; d < dim; ++d) dot += q(b, h, row, d) * k(kv_b, h_kv, j, d);
          double s = mods.score(dot * scale, b, h, q_idx, j + shape_.kv_offset);
          if (!mods.mask(b, h, q_idx, j + shape_.kv_offset)) s = -infinity;
          p[static_cast<std::size_t>(j)] = s;
          greatest = std::fmax(greatest, s);
        }
        for (double& x : p) {
          x = greatest == -infinity && !std::isnan(x) ? 0 : std::exp(x - greatest);
          sum += x;
        }
        std::fill(expected.begin(), expected.end(), 0);
        for (int j = 0; j < shape_.kv_len; ++j) {
          const double weight = p[static_cast<std::size_t>(j)];
          if (weight == 0) continue;
          for (int d = 0; d < value_dim; ++d) {
            expected[static_cast<std::size_t>(d)] += weight * v(kv_b, h_kv, j, d);
          }
        }
        for (int d = 0; d < value_dim; ++d) {
          const double value = sum == 0 ? 0 : expected[static_cast<std::size_t>(d)] / sum;
          worst.out = std::max(worst.out, error_between(out(b, h, row, d), value));
        }
        if (spec_.outputs.lse) {
          const double value = sum == 0 ? -infinity : greatest + std::log(sum);
          worst.lse = std::max(worst.lse, error_between(lse(b, h, row), value));
        }
      }
    }
  }
  return worst;
}

}  // namespace tilewright::test
