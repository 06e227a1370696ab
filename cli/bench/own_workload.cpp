#include "cli/bench/own_workload.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/packed_workload.hpp"
#include "cli/inputs.hpp"
#include "cli/random_lengths.hpp"

namespace tilewright::cli {

Workload own_workload(const BenchArguments& arguments) {
  if (!arguments.spec) {
    throw Error(ErrorCode::usage, "--inputs are those of a spec of your own", "add --spec");
  }
  if (!is_random(arguments.inputs)) {
    throw Error(ErrorCode::usage,
                fmt::format("--inputs \"{}\" is no random:..., and bench measures random inputs",
                            arguments.inputs),
                "--buffers takes buffers from a file");
  }
  for (const auto& [name, size] :
       {std::pair{"--batch", arguments.batch}, std::pair{"--heads", arguments.heads},
        std::pair{"--kv-heads", arguments.kv_heads}, std::pair{"--q-len", arguments.q_len},
        std::pair{"--kv-len", arguments.kv_len}}) {
    if (size == 0) continue;
    throw Error(ErrorCode::usage, fmt::format("{} and --inputs both give sizes", name),
                fmt::format("leave {} out", name));
  }
  if (arguments.spec->is_packed()) {
    return packed_workload(*arguments.spec, parse_random_packed(*arguments.spec, arguments.inputs));
  }
  const Shape shape = parse_random_dense(arguments.inputs);
  validate(shape);
  return {*arguments.spec, shape};
}

}  // namespace tilewright::cli
