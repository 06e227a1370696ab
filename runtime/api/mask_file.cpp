#include "runtime/api/mask_file.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "runtime/api/safetensors.hpp"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKey = "tilewright_block_mask";  // in the file's metadata
constexpr int kMaskFileVersion = 1;

// JSON has no infinities and no NaN.
Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

std::string describe(const BlockMask& mask) {
  const MaskFingerprint& built = mask.fingerprint();
  Json scalars = Json::array();
  for (std::size_t i = 0; i < built.scalars.size(); ++i) {
    const MaskSource::Scalar& scalar = built.source.scalars[i];
    scalars.push_back(
        {{"name", scalar.name}, {"index", scalar.index}, {"value", json_number(built.scalars[i])}});
  }
  const Shape& shape = built.shape;
  return Json({{"version", kMaskFileVersion},
               {"mask_mod", built.source.mask_mod},
               {"block", built.source.block},
               {"batch", shape.batch},
               {"num_q_heads", shape.num_q_heads},
               {"num_kv_heads", shape.num_kv_heads},
               {"q_len", shape.q_len},
               {"kv_len", shape.kv_len},
               {"q_offset", shape.q_offset},
               {"kv_offset", shape.kv_offset},
               {"scalars", scalars},
               {"counts",
                {{"batch", built.counts.batch},
                 {"num_q_heads", built.counts.num_q_heads},
                 {"num_kv_heads", built.counts.num_kv_heads}}},
               {"path", mask.path()},
               {"tiles_evaluated", mask.tiles_evaluated()}})
      .dump();
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {}

  BlockMask read() {
    constexpr const char* kRows = "row_offsets";
    constexpr const char* kFullRows = "full_row_offsets";
    const std::vector<std::string> names = {kRows, "indices", kFullRows, "full_indices"};
    const TensorFile file = read_safetensors(path_, names);
    const auto found = file.metadata.find(kKey);
    if (found == file.metadata.end()) {
      fail(fmt::format("its metadata has no \"{}\"", kKey), "write masks with write_block_mask()");
    }
    const Json facts = parse(found->second);
    MaskFingerprint fingerprint = read_fingerprint(facts);
    TileLists lists{.row_offsets = integers<std::int64_t>(file, kRows, DType::i64),
                    .indices = integers<std::int32_t>(file, "indices", DType::i32),
                    .full_row_offsets = integers<std::int64_t>(file, kFullRows, DType::i64),
                    .full_indices = integers<std::int32_t>(file, "full_indices", DType::i32)};
    require_rows(fingerprint, lists.row_offsets.size());
    const std::int64_t evaluated = integer(facts, "tiles_evaluated");
    try {
      return BlockMask(std::move(fingerprint), std::move(lists), text(facts, "path"), evaluated);
    } catch (const Error& error) {
      fail(error.message(), "the file was changed, or damaged: write it again");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& why, std::string hint = "write it again") const {
    throw Error(ErrorCode::file,
                fmt::format("\"{}\" is no valid block mask: {}", path_.native(), why),
                std::move(hint));
  }

  Json parse(const std::string& words) const {
    Json facts = Json::parse(words, nullptr, false);
    if (!facts.is_object()) fail(fmt::format("its \"{}\" is no JSON object", kKey));
    const std::int64_t version = integer(facts, "version");
    if (version != kMaskFileVersion) {
      fail(fmt::format("it is of version {}", version),
           fmt::format("this tilewright reads version {}: write the mask with the same one",
                       kMaskFileVersion));
    }
    return facts;
  }

  const Json& value(const Json& facts, const char* key) const {
    const auto found = facts.find(key);
    if (found == facts.end()) fail(fmt::format("its \"{}\" has no \"{}\"", kKey, key));
    return *found;
  }

  std::int64_t integer(const Json& facts, const char* key) const {
    const Json& found = value(facts, key);
    if (!found.is_number_integer()) {
      fail(fmt::format("\"{}\" is {}, not a whole number", key, found.dump()));
    }
    return found.get<std::int64_t>();
  }

  std::string text(const Json& facts, const char* key) const {
    const Json& found = value(facts, key);
    if (!found.is_string()) fail(fmt::format("\"{}\" is {}, not a text", key, found.dump()));
    return found.get<std::string>();
  }

  double real(const Json& facts, const char* key) const {
    const Json& found = value(facts, key);
    if (found.is_number()) return found.get<double>();
    const double infinity = std::numeric_limits<double>::infinity();
    if (found == "inf") return infinity;
    if (found == "-inf") return -infinity;
    if (found == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (found == "-nan") return -std::numeric_limits<double>::quiet_NaN();
    fail(fmt::format("\"{}\" is {}, not a number", key, found.dump()));
  }

  MaskFingerprint read_fingerprint(const Json& facts) const {
    MaskFingerprint fingerprint;
    fingerprint.source.mask_mod = text(facts, "mask_mod");
    fingerprint.source.block = block(facts);
    fingerprint.shape = {.batch = integer(facts, "batch"),
                         .num_q_heads = integer(facts, "num_q_heads"),
                         .num_kv_heads = integer(facts, "num_kv_heads"),
                         .q_len = integer(facts, "q_len"),
                         .kv_len = integer(facts, "kv_len"),
                         .q_offset = integer(facts, "q_offset"),
                         .kv_offset = integer(facts, "kv_offset")};
    try {
      validate(fingerprint.shape);
    } catch (const Error& error) {
      fail(error.message());
    }
    // Files that were written before there were any have none.
    if (const auto counts = facts.find("counts"); counts != facts.end()) {
      if (!counts->is_object()) fail("\"counts\" is no object");
      fingerprint.counts = {.batch = integer(*counts, "batch"),
                            .num_q_heads = integer(*counts, "num_q_heads"),
                            .num_kv_heads = integer(*counts, "num_kv_heads")};
    }
    const Json& scalars = value(facts, "scalars");
    if (!scalars.is_array()) fail("\"scalars\" is no list");
    for (const Json& scalar : scalars) {
      if (!scalar.is_object()) fail("\"scalars\" holds something else than objects");
      const std::int64_t index = integer(scalar, "index");
      if (index < 0) fail(fmt::format("a scalar's index is {}", index));
      fingerprint.source.scalars.push_back(
          {.name = text(scalar, "name"), .index = static_cast<std::size_t>(index)});
      fingerprint.scalars.push_back(real(scalar, "value"));
    }
    return fingerprint;
  }

  std::array<std::int64_t, 2> block(const Json& facts) const {
    const Json& sides = value(facts, "block");
    const auto is_side = [](const Json& side) {
      return side.is_number_integer() && side >= 16 && side <= 256 &&
             side.get<std::int64_t>() % 16 == 0;
    };
    if (!sides.is_array() || sides.size() != 2 || !is_side(sides[0]) || !is_side(sides[1])) {
      fail(fmt::format("\"block\" is {}, not two multiples of 16 from 16 to 256", sides.dump()));
    }
    return {sides[0].get<std::int64_t>(), sides[1].get<std::int64_t>()};
  }

  template <typename Integer>
  std::vector<Integer> integers(const TensorFile& file, const char* name, DType dtype) const {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) fail(fmt::format("it holds no tensor \"{}\"", name));
    const Tensor& tensor = found->second;
    if (tensor.dtype() != dtype || tensor.view().rank != 1) {
      fail(fmt::format("\"{}\" is {}, not {} of one dimension", name, tensor.describe(),
                       to_string(dtype)));
    }
    std::vector<Integer> values(static_cast<std::size_t>(tensor.numel()));
    if (!values.empty()) {
      std::memcpy(values.data(), tensor.data(), values.size() * sizeof(Integer));
    }
    return values;
  }

  // In floating point first: the product of unchecked sizes may exceed any integer.
  void require_rows(const MaskFingerprint& fingerprint, std::size_t offsets) const {
    const Shape& shape = fingerprint.shape;
    const std::int64_t side = fingerprint.source.block[0];
    const std::int64_t q_blocks = ceil_div(shape.q_len, side);
    const double rows = static_cast<double>(shape.batch) * static_cast<double>(shape.num_q_heads) *
                        static_cast<double>(q_blocks);
    if (rows + 1 == static_cast<double>(offsets)) return;
    fail(fmt::format("it has {} row offsets, but {:.0f} rows of tiles", offsets, rows));
  }

  const std::filesystem::path& path_;
};

}  // namespace

void write_block_mask(const std::string& path, const BlockMask& mask) {
  const TileLists& lists = mask.lists();
  const auto view = [](const auto& values, DType dtype) {
    return TensorView::contiguous(static_cast<const void*>(values.data()), dtype,
                                  {static_cast<std::int64_t>(values.size())});
  };
  write_safetensors(path,
                    {{"row_offsets", view(lists.row_offsets, DType::i64)},
                     {"indices", view(lists.indices, DType::i32)},
                     {"full_row_offsets", view(lists.full_row_offsets, DType::i64)},
                     {"full_indices", view(lists.full_indices, DType::i32)}},
                    {{kKey, describe(mask)}});
}

BlockMask read_block_mask(const std::string& path) {
  return Reader(path).read();
}

}  // namespace tilewright
