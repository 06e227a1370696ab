#include "generator/spec/validate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "base/nearest_name.hpp"
#include "base/printable_number.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/snippet/check.hpp"
#include "generator/snippet/names.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/spec/number_range.hpp"

namespace tilewright {
namespace {

constexpr std::int64_t kMaxDimension = std::numeric_limits<std::int32_t>::max();
constexpr double kMaxF32 = std::numeric_limits<float>::max();
constexpr double kMaxBf16 = 0x1.FEp127;
constexpr std::size_t kMaxNameBytes = 256;

// Whole numbers without a point, so that messages show what was written.
std::string number(double value) {
  return std::trunc(value) == value && std::fabs(value) <= kMostExactWhole
             ? fmt::format("{}", static_cast<std::int64_t>(value))
             : fmt::format("{}", printable(value));
}

struct Limits {
  double least;
  double greatest;
};

// What an element of a buffer or a scalar can hold.
Limits limits_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {-kMaxF32, kMaxF32};
    case DType::bf16:
      return {-kMaxBf16, kMaxBf16};
    case DType::f16:
      return {-65504, 65504};
    case DType::i32:
      return {-2147483648.0, 2147483647.0};
    case DType::i64:
      return {-kMostExactWhole, kMostExactWhole};
    case DType::u8:
      return {0, 255};
    case DType::boolean:
      return {0, 1};
    case DType::f8e4m3:
      return {-448, 448};
    case DType::f8e5m2:
      return {-57344, 57344};
    case DType::i8:
      return {-128, 127};
    case DType::f64:
      return {-kMaxF32, kMaxF32};  // snippets read it as a float
    case DType::i16:
      return {-32768, 32767};
    case DType::u16:
      return {0, 65535};
    case DType::u32:
      return {0, 4294967295.0};
  }
  return {0, 0};
}

class FieldChecker {
 public:
  FieldChecker(const Spec& spec, const std::function<void(const SpecProblem&)>& fail)
      : spec_(spec), fail_(fail) {}

  void run() const {
    check_spec_name();
    check_tensor_dtype("dtype", spec_.dtype);
    check_head_dim("head_dim", spec_.head_dim);
    if (spec_.v_head_dim != 0) check_head_dim("v_head_dim", spec_.v_head_dim);
    if (spec_.kv_dtype) check_kv_dtype(*spec_.kv_dtype);
    if (spec_.out_dtype) check_tensor_dtype("out_dtype", *spec_.out_dtype);
    check_enumerator({"layout"}, spec_.layout, {Layout::bhsd, Layout::bshd, Layout::packed},
                     R"("bhsd", "bshd" or "packed")");
    if (spec_.kv_layout) {
      check_enumerator({"kv_layout"}, *spec_.kv_layout,
                       {Layout::bhsd, Layout::bshd, Layout::packed, Layout::paged, Layout::paged_x},
                       R"("bhsd", "bshd", "packed", "paged" or "paged_x")");
    }
    check_layouts_agree();
    check_new_rows();
    check_blocks_of_k();
    check_scales_of_one_byte();
    check_f32_products();
    if (spec_.scale) check_range({"scale"}, *spec_.scale, DType::f32);
    for (const auto& [name, buffer] : spec_.buffers) check_buffer(name, buffer);
    for (const auto& [name, scalar] : spec_.scalars) check_scalar(name, scalar);
    check_seed();
    check_block();
    check_weights();
    if (!spec_.outputs.out) {
      fail({"outputs"}, "outputs lacks \"out\", which is always written", "add \"out\"");
    }
    if (spec_.tactic) check_tactic(*spec_.tactic);
  }

 private:
  void check_spec_name() const {
    const std::string& name = spec_.name;
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
    if (name.size() > kMaxNameBytes) {
      fail({"name"}, fmt::format("name is longer than {} bytes", kMaxNameBytes), "shorten it");
    }
    const bool is_text = !first_malformed_utf8(name) && !first_deceptive_character(name) &&
                         std::none_of(name.begin(), name.end(), is_control);
    if (!is_text) {
      fail({"name"}, "name must be one line of UTF-8 without control characters",
           "name is for messages and pictures only");
    }
  }

  void check_tensor_dtype(const char* key, DType dtype) const {
    require_among({key}, dtype, tensor_dtype_names());
  }

  void check_kv_dtype(DType dtype) const { require_among({"kv_dtype"}, dtype, kv_dtype_names()); }

  void check_weights() const {
    if (!spec_.outputs.weights) return;
    if (spec_.is_packed()) {
      fail({"outputs"},
           "outputs names \"weights\", which sequences in packed or paged layouts do not have",
           R"(write "layout": "bhsd", or leave "weights" out)");
    }
    if (!spec_.outputs.lse) {
      fail({"outputs"},
           "outputs names \"weights\", which are made from lse, and does not name that",
           R"(write "outputs": ["out", "lse", "weights"])");
    }
  }

  void check_layouts_agree() const {
    const Layout kv_layout = spec_.key_value_layout();
    const bool is_of_packed = kv_layout == Layout::packed || spec_.is_paged();
    if (spec_.is_packed() == is_of_packed) return;
    fail({"kv_layout"},
         fmt::format("kv_layout is \"{}\", but layout is \"{}\"", to_string(kv_layout),
                     to_string(spec_.layout)),
         spec_.is_packed() ? R"(packed q goes with packed or paged k and v)"
                           : R"(write "layout": "packed")");
  }

  void check_new_rows() const {
    if (!spec_.kv_new || spec_.key_value_layout() == Layout::paged) return;
    fail(
        {"kv_new"},
        fmt::format("kv_new is true, but kv_layout is \"{}\"", to_string(spec_.key_value_layout())),
        R"(new rows come with pages: write "layout": "packed", "kv_layout": "paged")");
  }

  // K's elements lie in blocks of 16 bytes.
  void check_blocks_of_k() const {
    const DType dtype = spec_.key_value_dtype();
    if (!spec_.is_paged_x() || size_of(dtype) == 0) return;
    const std::int64_t x = x_of(dtype);
    if (spec_.head_dim % x == 0) return;
    fail({"head_dim"},
         fmt::format(R"(head_dim is {}, but kv_layout is "paged_x", which keeps {} elements of {} )"
                     "together",
                     spec_.head_dim, x, shown(dtype)),
         fmt::format("use a multiple of {}, or \"kv_layout\": \"paged\"", x));
  }

  void check_f32_products() const {
    check_enumerator({"f32_products"}, spec_.f32_products, {F32Products::ieee, F32Products::tf32},
                     R"("ieee" or "tf32")");
    if (spec_.f32_products == F32Products::ieee) return;
    if (spec_.dtype != DType::f32) {
      fail({"f32_products"},
           fmt::format(R"(f32_products is "tf32", but q is {})", to_string(spec_.dtype)),
           "leave f32_products out: it is for dtype \"f32\"");
    }
    if (!spec_.gradients.empty()) {
      fail({"f32_products"},
           R"(f32_products is "tf32", and the spec has gradients, whose products are IEEE's)",
           "leave f32_products or gradients out");
    }
  }

  // A stored number of one byte means little without its scale, so each has one, if only 1.
  void check_scales_of_one_byte() const {
    const DType kv = spec_.key_value_dtype(), out = spec_.output_dtype();
    if (spec_.dtype == DType::f8e4m3) {
      if (kv != spec_.dtype) {
        fail({"kv_dtype"}, fmt::format(R"(kv_dtype is {}, but q is "f8e4m3")", shown(kv)),
             R"(with dtype "f8e4m3" k and v are f8e4m3 too: leave kv_dtype out)");
      }
      if (!spec_.out_dtype) {
        fail({"dtype"}, R"(dtype is "f8e4m3", and out_dtype is missing)",
             "add \"out_dtype\": " + one_of(tensor_dtype_names()));
      }
      require_scale("dtype", spec_.dtype, "q_scale", spec_.q_scale);
    }
    if (is_quantised(kv)) {
      const char* const key = spec_.kv_dtype ? "kv_dtype" : "dtype";
      require_scale(key, kv, "k_scale", spec_.k_scale);
      require_scale(key, kv, "v_scale", spec_.v_scale);
    }
    if (is_float8(out)) {
      require_scale(spec_.out_dtype ? "out_dtype" : "dtype", out, "out_scale", spec_.out_scale);
    } else if (!spec_.out_scale.empty()) {
      fail({"out_scale"},
           fmt::format("the spec has out_scale, but out is {}, which is stored without one",
                       to_string(out)),
           "leave out_scale out: it goes with an f8 out_dtype");
    }
  }

  void require_scale(const char* key, DType dtype, const char* name,
                     const std::string& scale) const {
    if (!scale.empty()) return;
    fail({key}, fmt::format("{} is {}, and {} is missing", key, shown(dtype), name),
         fmt::format(R"(add "{}": "1.0f" if the values are stored as they are)", name));
  }

  // Dimensions that calls of the other layouts have.
  void check_dimension_exists(const std::string& name, const SpecPath& path, NamedDim dim) const {
    const bool is_of_packed = dim == NamedDim::total_q || dim == NamedDim::total_kv;
    const bool is_of_dense = dim == NamedDim::q_len || dim == NamedDim::kv_len;
    if (is_of_dense && spec_.is_packed()) {
      const bool is_q = dim == NamedDim::q_len;
      fail(path,
           fmt::format("buffers.{}.shape{} is \"{}\", which differs from sequence to sequence",
                       name, path.back(), to_string(dim)),
           fmt::format("write null, or \"{}\" and index with {}", is_q ? "total_q" : "total_kv",
                       is_q ? "q_token" : "kv_token"));
    }
    if (is_of_packed && !spec_.is_packed()) {
      fail(path,
           fmt::format("buffers.{}.shape{} is \"{}\", which packed layouts alone have", name,
                       path.back(), to_string(dim)),
           fmt::format("write \"{}\", or \"layout\": \"packed\"",
                       dim == NamedDim::total_q ? "q_len" : "kv_len"));
    }
  }

  // A program may give any number as an enumerator; a JSON spec cannot.
  template <typename Enum>
  void check_enumerator(const SpecPath& path, Enum value, std::initializer_list<Enum> known,
                        std::string_view names) const {
    if (std::find(known.begin(), known.end(), value) != known.end()) return;
    wrong(path, std::to_string(static_cast<int>(value)), fmt::format("be {}", names));
  }

  void check_head_dim(const char* key, std::int64_t value) const {
    if (value < 8 || value > 256) {
      wrong({key}, std::to_string(value), "be a number from 8 to 256",
            value > 256              ? "no kernel has longer rows"
            : value > 0 && value < 8 ? padding_hint(key, value, 8)
                                     : "");
    }
    if (value >= 16 && value % 8 == 0) return;
    if (is_quantised(spec_.key_value_dtype()) || is_quantised(spec_.dtype) ||
        is_quantised(spec_.output_dtype())) {
      wrong({key}, std::to_string(value),
            "be a multiple of 8 from 16 to 256 where q, k, v or out has one byte",
            padding_hint(key, value, std::max<std::int64_t>(round_up(value, 8), 16)));
    }
    if (spec_.is_paged_x()) {
      wrong({key}, std::to_string(value),
            "be a multiple of 8 from 16 to 256 in kv_layout \"paged_x\"",
            near_multiple(value, 8, "use kv_layout \"paged\", or pad to "));
    }
  }

  void check_block() const {
    for (std::size_t i = 0; i < spec_.block.size(); ++i) {
      const std::int64_t side = spec_.block[i];
      if (side >= 16 && side <= 256 && side % 16 == 0) continue;
      wrong({"block", fmt::format("[{}]", i)}, std::to_string(side),
            "be a multiple of 16 from 16 to 256", near_multiple(side, 16, "use "));
    }
  }

  // Zeros change no product, but the scale that follows from head_dim.
  std::string padding_hint(std::string_view key, std::int64_t value, std::int64_t padded) const {
    if (key == "v_head_dim") return fmt::format("pad v with zeros to {}", padded);
    return fmt::format("pad q{} with zeros to {}{}", spec_.v_head_dim == 0 ? ", k and v" : " and k",
                       padded,
                       spec_.scale ? ""
                                   : fmt::format(", and set scale to {:.9g}, 1 / sqrt({})",
                                                 1 / std::sqrt(static_cast<double>(value)), value));
  }

  static std::string near_multiple(std::int64_t value, std::int64_t step, std::string_view what) {
    if (value < 1 || value > 256) return {};
    return fmt::format("{}{}", what, std::max<std::int64_t>(round_up(value, step), 16));
  }

  void check_name(const char* group, const std::string& name) const {
    std::string fault = name_fault(name);
    if (fault.empty() && spec_.is_packed() && is_sequence_tensor(name)) {
      fault = "is what a packed call names one of its own tensors";
    }
    if (fault.empty()) return;
    fail_({.path = {group, name},
           .message = fmt::format("{}: the name \"{}\" {}", group, printable(name), fault),
           .hint = "choose another name and use it in the snippets",
           .is_about_key = true});
  }

  void check_buffer(const std::string& name, const BufferSpec& buffer) const {
    check_name("buffers", name);
    require_among({"buffers", name, "dtype"}, buffer.dtype, buffer_dtype_names());
    check_enumerator({"buffers", name, "bounds"}, buffer.bounds, {Bounds::clamped, Bounds::trusted},
                     R"("clamped" or "trusted")");
    const std::size_t rank = buffer.shape.size();
    if (rank > kMaxBufferRank) {
      fail({"buffers", name, "shape"},
           fmt::format("buffers.{}.shape has {} dimensions, but must have 0 to {}", name, rank,
                       kMaxBufferRank),
           "fold neighbouring dimensions into one");
    }
    for (std::size_t i = 0; i < rank; ++i) {
      const SpecPath path = {"buffers", name, "shape", fmt::format("[{}]", i)};
      if (const auto* named = std::get_if<NamedDim>(&buffer.shape[i])) {
        check_enumerator(path, *named,
                         {NamedDim::batch, NamedDim::num_q_heads, NamedDim::num_kv_heads,
                          NamedDim::q_len, NamedDim::kv_len, NamedDim::total_q, NamedDim::total_kv},
                         "a NamedDim");
        check_dimension_exists(name, path, *named);
      }
      const auto* size = std::get_if<std::int64_t>(&buffer.shape[i]);
      if (size == nullptr || (*size >= 1 && *size <= kMaxDimension)) continue;
      wrong(path, std::to_string(*size), fmt::format("be from 1 to {}", kMaxDimension));
    }
    if (buffer.range) check_buffer_range(name, buffer);
    if (buffer.sorted.is_promised() && rank == 0) {
      fail({"buffers", name, "sorted"},
           fmt::format("buffers.{} has one number, which has no order to promise", name),
           fmt::format("leave buffers.{}.sorted out", name));
    }
  }

  void check_buffer_range(const std::string& name, const BufferSpec& buffer) const {
    const std::array<double, 2> range = *buffer.range;
    for (std::size_t i = 0; i < range.size(); ++i) {
      check_range({"buffers", name, "range", fmt::format("[{}]", i)}, range[i], buffer.dtype);
    }
    if (range[0] > range[1]) {
      fail({"buffers", name, "range"},
           fmt::format("buffers.{}.range is [{}, {}], but the least value comes first", name,
                       number(range[0]), number(range[1])),
           fmt::format("write [{}, {}]", number(range[1]), number(range[0])));
    }
  }

  void check_scalar(const std::string& name, const ScalarSpec& scalar) const {
    check_name("scalars", name);
    if (spec_.buffers.contains(name)) {
      fail_({.path = {"scalars", name},
             .message = fmt::format("\"{}\" is both a buffer and a scalar", name),
             .hint = "rename one of them",
             .is_about_key = true});
    }
    require_among({"scalars", name, "dtype"}, scalar.dtype, scalar_dtype_names(name));
    if (scalar.dtype == DType::i64 && !spec_.has_dropout()) {
      fail({"scalars", name, "dtype"},
           R"(scalars.seed.dtype is "i64", which only dropout's seed can be)",
           R"(write "i32", or add "dropout")");
    }
    if (scalar.default_value) {
      check_range({"scalars", name, "default"}, *scalar.default_value, scalar.dtype);
    }
  }

  // Of dropout: a scalar, or a buffer of one number.
  void check_seed() const {
    if (!spec_.has_dropout()) return;
    const auto buffer = spec_.buffers.find("seed");
    const auto scalar = spec_.scalars.find("seed");
    if (buffer != spec_.buffers.end()) {
      if (buffer->second.dtype == DType::i64 && buffer->second.shape.empty()) return;
      fail({"buffers", "seed"}, "buffers.seed is the seed of dropout, but is no single i64",
           R"(write "seed": {"dtype": "i64", "shape": []}, or rename the buffer)");
    }
    if (scalar == spec_.scalars.end()) {
      fail({"dropout"}, "the spec has dropout, and its seed is missing",
           R"(add "scalars": {"seed": {"dtype": "i64"}}; each call gives its value)");
    } else if (scalar->second.dtype != DType::i64) {
      wrong({"scalars", "seed", "dtype"}, shown(scalar->second.dtype),
            R"(be "i64": it is the seed of dropout)", R"(write "i64", or rename the scalar)");
    }
  }

  void check_tactic(const TacticSpec& tactic) const {
    if (tactic.name.empty()) {
      fail({"tactic", "name"}, "tactic.name is empty", "leave tactic out to have one chosen");
    }
    for (const auto& [name, value] : tactic.parameters) {
      const bool has_word = !name.empty() && name != "name" && !first_malformed_utf8(name);
      if (!has_word) {
        fail({"tactic", name},
             fmt::format("tactic: \"{}\" is no parameter's name", printable(name)),
             "parameters are \"q_tile\", \"kv_tile\", ...");
      }
      if (value < 0) wrong({"tactic", name}, std::to_string(value), "be 0 or more");
    }
  }

  void check_range(const SpecPath& path, double value, DType dtype) const {
    const Limits limits = limits_of(dtype);
    const bool whole = !is_floating(dtype);
    const bool is_seed = dtype == DType::i64 && path[0] == "scalars";
    if (!(value >= limits.least && value <= limits.greatest)) {
      wrong(path, number(value), range_rule(dtype), is_seed ? std::string(kSeedHint) : "");
    }
    if (!whole && f32_range(value) == FloatRange::underflows) {
      wrong(path, number(value),
            fmt::format("be 0 or a number that is not 0 in {}", to_string(dtype)),
            "the least is 1.4e-45");
    }
    if (whole && std::trunc(value) != value) {
      wrong(path, number(value), fmt::format("be a whole number ({})", to_string(dtype)),
            is_seed ? std::string(kSeedHint) : "use dtype \"f32\" for a fraction");
    }
  }

  void require_among(const SpecPath& path, DType dtype,
                     const std::vector<std::string>& names) const {
    if (std::find(names.begin(), names.end(), to_string(dtype)) != names.end()) return;
    wrong(path, shown(dtype), "be " + one_of(names));
  }

  static std::string shown(DType dtype) {
    if (size_of(dtype) == 0) return std::to_string(static_cast<int>(dtype));
    return fmt::format("\"{}\"", to_string(dtype));
  }

  void wrong(const SpecPath& path, std::string_view value, std::string_view rule,
             std::string hint = {}) const {
    fail(path, wrong_value(path, value, rule), std::move(hint));
  }

  void fail(SpecPath path, std::string message, std::string hint) const {
    fail_({.path = std::move(path), .message = std::move(message), .hint = std::move(hint)});
  }

  const Spec& spec_;
  const std::function<void(const SpecProblem&)>& fail_;
};

std::vector<std::string> dtype_names(std::initializer_list<DType> dtypes) {
  std::vector<std::string> names;
  for (DType dtype : dtypes) names.emplace_back(to_string(dtype));
  return names;
}

}  // namespace

std::string to_string(const SpecPath& path) {
  std::string text;
  for (const std::string& step : path) {
    if (!text.empty() && !step.starts_with('[')) text += '.';
    text += printable(step);
  }
  return text;
}

std::string range_rule(DType dtype) {
  const Limits limits = limits_of(dtype);
  return fmt::format("be {} from {} to {} ({})",
                     is_floating(dtype) ? "a finite number" : "a whole number",
                     number(limits.least), number(limits.greatest), to_string(dtype));
}

std::string wrong_value(const SpecPath& path, std::string_view value, std::string_view rule) {
  return fmt::format("{} is {}, but must {}", to_string(path), value, rule);
}

void check_fields(const Spec& spec, const std::function<void(const SpecProblem&)>& fail) {
  FieldChecker(spec, fail).run();
}

void validate(const Spec& spec) {
  const DefaultFloatEnvironment floats;
  check_fields(spec, [](const SpecProblem& problem) {
    throw Error(ErrorCode::spec, problem.message, problem.hint);
  });
  for (const SnippetKind kind : snippet_kinds()) check_snippet_of(spec, kind);
  check_gradients(spec, [](const SpecProblem& problem) {
    throw Error(ErrorCode::spec, problem.message, problem.hint);
  });
}

const std::vector<std::string>& tensor_dtype_names() {
  static const auto& kNames = *new std::vector<std::string>(dtype_names({f32, f16, bf16, f8e4m3}));
  return kNames;
}

const std::vector<std::string>& kv_dtype_names() {
  static const auto& kNames =
      *new std::vector<std::string>(dtype_names({f32, f16, bf16, f8e4m3, f8e5m2, i8}));
  return kNames;
}

const std::vector<std::string>& buffer_dtype_names() {
  static const auto& kNames = *new std::vector<std::string>(
      dtype_names({f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, boolean}));
  return kNames;
}

const std::vector<std::string>& scalar_dtype_names(std::string_view scalar) {
  static const auto& kNames = *new std::vector<std::string>(dtype_names({f32, i32}));
  static const auto& kNamesOfSeed = *new std::vector<std::string>(dtype_names({f32, i32, i64}));
  return scalar == "seed" ? kNamesOfSeed : kNames;
}

}  // namespace tilewright
