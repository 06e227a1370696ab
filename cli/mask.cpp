#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/files.hpp"
#include "cli/inputs.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "generator/spec_json.hpp"
#include "picture/text.hpp"
#include "runtime/attention.hpp"

namespace tilewright::cli {
namespace {

namespace fs = std::filesystem;

void require_picture_format(const std::string& path) {
  if (path.empty()) return;
  std::string extension = fs::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension == ".txt") return;
  if (extension == ".svg" || extension == ".png") {
    throw Error(
        ErrorCode::usage,
        fmt::format("not yet: pictures as {} come with a later version", extension.substr(1)),
        "name a .txt file for the picture as text");
  }
  throw Error(ErrorCode::usage, fmt::format("--picture \"{}\" has no known format", path),
              "name a .txt file");
}

void write_lists(const TileLists& lists, const std::string& path) {
  const auto view = [](const auto& values, DType dtype) {
    return TensorView::contiguous(static_cast<const void*>(values.data()), dtype,
                                  {static_cast<std::int64_t>(values.size())});
  };
  write_safetensors(path, {{"row_offsets", view(lists.row_offsets, DType::i64)},
                           {"indices", view(lists.indices, DType::i32)},
                           {"full_row_offsets", view(lists.full_row_offsets, DType::i64)},
                           {"full_indices", view(lists.full_indices, DType::i32)}});
}

Json to_json(const BlockMask& mask, double ms) {
  const MaskFingerprint& fingerprint = mask.fingerprint();
  return {{"partial", mask.partial_tiles()},
          {"full", mask.full_tiles()},
          {"empty", mask.empty_tiles()},
          {"density", mask.density()},
          {"path", mask.path()},
          {"tiles_evaluated", mask.tiles_evaluated()},
          {"batch", mask.batch()},
          {"heads", mask.heads()},
          {"q_blocks", mask.q_blocks()},
          {"kv_blocks", mask.kv_blocks()},
          {"block", fingerprint.source.block},
          {"bytes", mask.bytes()},
          {"ms", ms}};
}

// What the picture does not say.
std::string cost_line(const BlockMask& mask, double ms) {
  return fmt::format("decided in {}: {} path, {} tiles evaluated; lists of {}\n", format_ms(ms),
                     mask.path(), mask.tiles_evaluated(),
                     format_bytes(static_cast<std::uint64_t>(mask.bytes())));
}

class MaskVerb : public Verb {
 public:
  MaskVerb()
      : Verb("mask", "show which tiles of a mask are empty, partial and full",
             "tilewright mask examples/sliding_window.json --q-len 4096 --kv-len 4096") {}

  void declare(CLI::App& app) override {
    add_spec_argument(app, spec_);
    app.add_option("--q-len", shape_.q_len, "rows of q")->required();
    app.add_option("--kv-len", shape_.kv_len, "rows of k and v")->required();
    app.add_option("--batch", shape_.batch, "(default 1)");
    app.add_option("--q-heads", shape_.num_q_heads, "query heads (default 1)");
    app.add_option("--kv-heads", kv_heads_, "kv heads (default: as many as query heads)");
    app.add_option("--inputs", arguments_.inputs,
                   "a safetensors file with the buffers (default: random ones)");
    app.add_option("--outputs", outputs_,
                   "write row_offsets, indices, full_row_offsets and full_indices");
    app.add_option("--picture", picture_, "write a picture: a .txt file");
    arguments_.declare_values(app);
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = spec_from_file(spec_);
    require_picture_format(picture_);
    require_writable(outputs_, "--outputs");
    require_writable(picture_, "--picture");
    shape_.num_kv_heads = kv_heads_.value_or(shape_.num_q_heads);
    const CallInputs inputs = CallInputs::load_for_mask(spec, arguments_, shape_);
    const Attention attention(spec, {.device = Device::cpu(), .kernels = kernel_context()});
    const Bindings bindings = inputs.bindings(attention);
    const Stopwatch watch;
    const BlockMask mask = attention.block_mask(inputs.shape(), bindings);
    const double ms = watch.ms();
    if (!outputs_.empty()) write_lists(mask.lists(), outputs_);
    if (!picture_.empty()) write_text_file(picture_, picture::text_picture(mask));
    print_result(mask, ms);
    return kDone;
  }

 private:
  void print_result(const BlockMask& mask, double ms) const {
    if (json_) return print_json(to_json(mask, ms));
    print(picture::text_picture(mask) + cost_line(mask, ms));
    for (const std::string& path : {outputs_, picture_}) {
      if (!path.empty()) print(fmt::format("wrote {}\n", path));
    }
  }

  std::string spec_;
  Shape shape_;
  std::optional<std::int64_t> kv_heads_;
  InputArguments arguments_;
  std::string outputs_;
  std::string picture_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_mask_verb() {
  return std::make_unique<MaskVerb>();
}

}  // namespace tilewright::cli
