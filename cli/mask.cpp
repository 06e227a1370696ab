#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "cli/call.hpp"
#include "cli/files.hpp"
#include "cli/inputs.hpp"
#include "cli/mask_lists.hpp"
#include "cli/mask_picture.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/sequence_mask.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec_json.hpp"
#include "picture/text.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/mask_file.hpp"

namespace tilewright::cli {
namespace {

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
  return fmt::format("decided in {}: {} path, {} evaluated; lists of {}\n", format_ms(ms),
                     mask.path(), counted(mask.tiles_evaluated(), "tile"),
                     format_bytes(static_cast<std::uint64_t>(mask.bytes())));
}

class MaskVerb : public Verb {
 public:
  MaskVerb()
      : Verb("mask", "show which tiles of a mask are empty, partial and full",
             "tilewright mask examples/sliding_window.json --q-len 4096 --kv-len 4096") {}

  void declare(CLI::App& app) override {
    add_spec_argument(app, spec_);
    add_whole(app, "--q-len", shape_.q_len, kAnyIndex, "rows of q")->required();
    add_whole(app, "--kv-len", shape_.kv_len, kAnyIndex, "rows of k and v")->required();
    add_whole(app, "--batch", shape_.batch, kAnySize, "(default 1)");
    add_whole(app, "--q-heads", shape_.num_q_heads, kAnySize, "query heads (default 1)");
    add_whole(app, "--kv-heads", kv_heads_, kAnySize, "kv heads (default: as many as query heads)");
    app.add_option("--inputs", arguments_.inputs,
                   "a safetensors file with the buffers (default: random ones)");
    app.add_option("--outputs", outputs_,
                   "write row_offsets, indices, full_row_offsets and full_indices");
    app.add_option("--flex", flex_,
                   "write kv_num_blocks, kv_indices, ... as FlexAttention has them");
    app.add_option("--mask", mask_,
                   "a safetensors file with the lists to show, in place of evaluating mask_mod");
    picture_.declare(app);
    arguments_.declare_values(app);
    add_json_flag(app, json_);
  }

  ExitStatus execute() override {
    const Spec spec = spec_from_file(spec_);
    require_takes_seed();
    const std::vector<std::filesystem::path> read = {spec_, arguments_.inputs, mask_};
    require_writable(outputs_, "--outputs", read);
    require_writable(flex_, "--flex", read);
    require_writable(picture_.path, "--picture", read);
    require_distinct({{"--outputs", outputs_}, {"--flex", flex_}, {"--picture", picture_.path}});
    shape_.num_kv_heads = kv_heads_.value_or(shape_.num_q_heads);
    Progress progress(1, json_);
    progress.update("making the buffers", 0);
    const CallInputs inputs = CallInputs::load_for_mask(spec, arguments_, shape_);
    picture_.check(spec, inputs.shape());
    progress.update("making the kernels", 0);
    const Attention attention(spec, {.device = Device::cpu(),
                                     .kernels = command_line_toolchain(),
                                     .takes_block_mask = takes_lists(),
                                     .masks_only = true});
    progress.update("deciding tiles", 0);
    const Stopwatch watch;
    const BlockMask mask = make_mask(attention, inputs);
    const double ms = watch.ms();
    progress.update("writing", 0);
    if (!outputs_.empty()) write_block_mask(outputs_, mask);
    if (!flex_.empty()) write_flex_lists(flex_, mask);
    if (!picture_.path.empty()) write_picture(picture_, spec, inputs, mask);
    progress.end();
    print_result(mask, ms);
    return kDone;
  }

 private:
  // Buffers decide nothing of lists, but what a drawing shows of the snippets.
  void require_takes_seed() const {
    if (!arguments_.seed || mask_.empty() || picture_.is_drawing()) return;
    throw Error(ErrorCode::usage, "--seed is of random buffers, and --mask gives the lists",
                "leave --seed out: no list depends on a buffer then");
  }

  // Without a mask_mod there may still be lists, or scores to draw.
  bool takes_lists() const { return !mask_.empty() || picture_.scores; }

  BlockMask make_mask(const Attention& attention, const CallInputs& inputs) const {
    const Bindings bindings = inputs.bindings(attention);
    if (inputs.is_packed()) {
      require_mask_of_packed(attention.spec());
      return mask_of_sequence(attention, inputs, bindings);
    }
    if (!mask_.empty()) return read_mask(mask_, attention, inputs.shape(), bindings);
    if (attention.spec().mask_mod.empty() && picture_.scores) {
      return mask_of_everything(attention, inputs.shape(), bindings);
    }
    if (attention.spec().mask_mod.empty()) {
      throw Error(ErrorCode::usage, "the spec has no mask_mod, so there is no mask to show",
                  "name lists with --mask FILE, or draw score_mod with --scores and --picture");
    }
    return attention.block_mask(inputs.shape(), bindings);
  }

  void require_mask_of_packed(const Spec& spec) const {
    if (!mask_.empty()) {
      throw Error(ErrorCode::usage,
                  "mask shows what mask_mod keeps of a packed spec's sequence, and takes no --mask",
                  "show the lists with a dense spec that has the same mask_mod and block");
    }
    if (!spec.mask_mod.empty()) return;
    throw Error(ErrorCode::usage, "the spec has no mask_mod, so there is no mask to show",
                "every tile of a sequence is visited; --scores draws packed specs with a mask_mod");
  }

  void print_result(const BlockMask& mask, double ms) const {
    if (json_) return print_json(to_json(mask, ms));
    print(picture::text_picture(mask) + cost_line(mask, ms));
    for (const std::string& path : {outputs_, flex_, picture_.path}) {
      if (!path.empty()) print(fmt::format("wrote {}\n", path));
    }
  }

  std::string spec_;
  Shape shape_;
  std::optional<std::int64_t> kv_heads_;
  InputArguments arguments_;
  std::string outputs_;
  std::string flex_;
  std::string mask_;
  PictureArguments picture_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_mask_verb() {
  return std::make_unique<MaskVerb>();
}

}  // namespace tilewright::cli
