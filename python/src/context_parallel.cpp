#include "runtime/api/context_parallel.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "attention.hpp"
#include "base/error.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/nccl.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

// What Python raises is an Error, which ContextParallel gives the rank's name.
template <typename Body>
auto calling(const char* doing, Body body) {
  const nb::gil_scoped_acquire acquire;
  try {
    return body();
  } catch (nb::python_error& error) {
    const nb::str text(error.value());
    throw Error(
        ErrorCode::device, "the group failed while " + std::string(doing) + ": " + text.c_str(),
        "a rank has ended, or the group's time-out has passed: see what each rank says, and "
        "start all of them again");
  } catch (const nb::cast_error&) {
    throw Error(ErrorCode::usage, "the transport's all_gather returned no bytes");
  }
}

// A transport written in Python, for ranks on CPUs: an object with rank, size, all_gather(bytes)
// and exchange(sends, receives), whose messages are (peer, memoryview).
class PythonTransport final : public Communicator {
 public:
  explicit PythonTransport(nb::object transport)
      : transport_(std::move(transport)),
        rank_(nb::cast<int>(transport_.attr("rank"))),
        size_(nb::cast<int>(transport_.attr("size"))) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override {
    return calling("gathering from all ranks", [&] {
      const nb::object all = transport_.attr("all_gather")(
          nb::bytes(reinterpret_cast<const char*>(mine.data()), mine.size()));
      const auto bytes = nb::cast<nb::bytes>(all);
      const auto* const begin = reinterpret_cast<const std::byte*>(bytes.c_str());
      return std::vector<std::byte>(begin, begin + bytes.size());
    });
  }

  void exchange(std::span<const Message> sends, std::span<const Message> receives,
                Stream) override {
    calling("exchanging tensors",
            [&] { transport_.attr("exchange")(listed(sends), listed(receives)); });
  }

 private:
  static nb::list listed(std::span<const Message> messages) {
    nb::list list;
    for (const Message& message : messages) {
      list.append(nb::make_tuple(message.peer,
                                 nb::steal(PyMemoryView_FromMemory(static_cast<char*>(message.data),
                                                                   message.bytes, PyBUF_WRITE))));
    }
    return list;
  }

  nb::object transport_;
  int rank_;
  int size_;
};

std::shared_ptr<Communicator> from_transport(nb::object transport) {
  return std::make_shared<PythonTransport>(std::move(transport));
}

nb::bytes new_nccl_id() {
  const NcclId id = nccl_id();
  return nb::bytes(id.data(), id.size());
}

std::shared_ptr<Communicator> join_nccl(const nb::bytes& id, int rank, int size,
                                        const std::string& device, std::int64_t timeout_ms) {
  NcclId own = {};
  if (id.size() != own.size()) {
    throw Error(ErrorCode::usage, "an id of NCCL has 128 bytes");
  }
  std::copy_n(id.c_str(), own.size(), own.begin());
  const nb::gil_scoped_release release;
  return nccl_rank(own, rank, size, Device::parse(device),
                   {.timeout = std::chrono::milliseconds(timeout_ms)});
}

// A ContextParallel and the device that its arrays lie on.
struct SharedAttention {
  Device device;
  ContextParallel context;
};

void construct_context(SharedAttention* self, const std::string& spec, const std::string& file,
                       const std::string& device, std::shared_ptr<Communicator> communicator) {
  const nb::gil_scoped_release release;
  const Device own = Device::parse(device);
  new (self) SharedAttention{
      own, ContextParallel(spec_from_json(spec, file), std::move(communicator), {.device = own})};
}

// batch, num_q_heads, num_kv_heads, q_len, kv_len, q_offset, kv_offset
Shape whole_of(const std::vector<std::int64_t>& sizes) {
  return {.batch = sizes.at(0),
          .num_q_heads = sizes.at(1),
          .num_kv_heads = sizes.at(2),
          .q_len = sizes.at(3),
          .kv_len = sizes.at(4),
          .q_offset = sizes.at(5),
          .kv_offset = sizes.at(6)};
}

// [num_q_heads, num_kv_heads], q_begin, kv_begin, q_offset, kv_offset
SharedSequences sequences_of(const std::vector<std::vector<std::int64_t>>& lists) {
  return {.num_q_heads = lists.at(0).at(0),
          .num_kv_heads = lists.at(0).at(1),
          .q_begin = lists.at(1),
          .kv_begin = lists.at(2),
          .q_offset = lists.at(3),
          .kv_offset = lists.at(4)};
}

Sharding sharding_named(const std::string& name) {
  for (const Sharding sharding : {Sharding::automatic, Sharding::contiguous, Sharding::zigzag}) {
    if (to_string(sharding) == name) return sharding;
  }
  throw Error(ErrorCode::usage, "sharding is \"" + name + "\"",
              "give \"automatic\", \"contiguous\" or \"zigzag\"");
}

template <typename Whole>
BoundArrays bind_to(const SharedAttention& self, const Whole& whole,
                    const std::map<std::string, nb::object>& buffers,
                    const std::map<std::string, double>& scalars) {
  BoundArrays bound;
  SnippetInputs inputs{.scalars = scalars};
  for (const auto& [name, array] : buffers) {
    inputs.buffers.emplace(name, view_of(array, name.c_str(), self.device));
    bound.arrays.push_back(array);
  }
  bound.bindings = self.context.bind(whole, inputs);
  return bound;
}

BoundArrays bind_whole(const SharedAttention& self, const std::vector<std::int64_t>& whole,
                       const std::map<std::string, nb::object>& buffers,
                       const std::map<std::string, double>& scalars) {
  return bind_to(self, whole_of(whole), buffers, scalars);
}

BoundArrays bind_packed(const SharedAttention& self,
                        const std::vector<std::vector<std::int64_t>>& whole,
                        const std::map<std::string, nb::object>& buffers,
                        const std::map<std::string, double>& scalars) {
  return bind_to(self, sequences_of(whole), buffers, scalars);
}

template <typename Whole>
ContextPlan make_plan_of(const SharedAttention& self, const Whole& whole, const BoundArrays* bound,
                         const std::string& sharding, const std::vector<std::int64_t>& q_lengths,
                         const std::vector<std::int64_t>& kv_lengths, std::uintptr_t stream) {
  const ContextPlanOptions options = {.sharding = sharding_named(sharding),
                                      .q_lengths = q_lengths,
                                      .kv_lengths = kv_lengths,
                                      .stream = stream_of(stream)};
  const nb::gil_scoped_release release;
  return self.context.plan(whole, bindings_of(bound), options);
}

ContextPlan make_plan(const SharedAttention& self, const std::vector<std::int64_t>& whole,
                      const BoundArrays* bound, const std::string& sharding,
                      const std::vector<std::int64_t>& q_lengths,
                      const std::vector<std::int64_t>& kv_lengths, std::uintptr_t stream) {
  return make_plan_of(self, whole_of(whole), bound, sharding, q_lengths, kv_lengths, stream);
}

ContextPlan make_packed_plan(const SharedAttention& self,
                             const std::vector<std::vector<std::int64_t>>& whole,
                             const BoundArrays* bound, const std::string& sharding,
                             const std::vector<std::int64_t>& q_lengths,
                             const std::vector<std::int64_t>& kv_lengths, std::uintptr_t stream) {
  return make_plan_of(self, sequences_of(whole), bound, sharding, q_lengths, kv_lengths, stream);
}

ContextCallOptions call_options(const SharedAttention& self, std::optional<double> scale,
                                std::uintptr_t stream, nb::handle workspace, bool deterministic) {
  ContextCallOptions options = {
      .scale = scale, .stream = stream_of(stream), .deterministic = deterministic};
  if (!workspace.is_none()) {
    options.workspace = view_of(workspace, "workspace", self.device, Use::write);
  }
  return options;
}

void forward(const SharedAttention& self, const ContextPlan& plan, nb::handle q, nb::handle k,
             nb::handle v, nb::handle out, nb::handle lse, const BoundArrays* bound,
             std::optional<double> scale, std::uintptr_t stream, nb::handle workspace) {
  ForwardTensors tensors{.q = view_of(q, "q", self.device),
                         .k = view_of(k, "k", self.device),
                         .v = view_of(v, "v", self.device),
                         .out = view_of(out, "out", self.device, Use::write)};
  if (!lse.is_none()) tensors.lse = view_of(lse, "lse", self.device, Use::write);
  const ContextCallOptions options = call_options(self, scale, stream, workspace, false);
  const nb::gil_scoped_release release;
  self.context.forward(tensors, plan, bindings_of(bound), options);
}

void backward(const SharedAttention& self, const ContextPlan& plan,
              const std::map<std::string, nb::object>& inputs,
              const std::map<std::string, nb::object>& gradients, const BoundArrays* bound,
              std::optional<double> scale, std::uintptr_t stream, nb::handle workspace,
              bool deterministic) {
  const auto view = [&](const char* name) { return view_of(inputs.at(name), name, self.device); };
  const auto written = [&](const char* name) -> std::optional<TensorView> {
    const auto found = gradients.find(name);
    if (found == gradients.end()) return std::nullopt;
    return view_of(found->second, name, self.device, Use::write);
  };
  BackwardTensors tensors{.q = view("q"),
                          .k = view("k"),
                          .v = view("v"),
                          .out = view("out"),
                          .lse = view("lse"),
                          .dout = view("dout"),
                          .dq = written("q"),
                          .dk = written("k"),
                          .dv = written("v")};
  if (inputs.contains("dlse")) tensors.dlse = view("dlse");
  GradientBuffers named;
  for (const auto& [name, array] : gradients) {
    if (name == "q" || name == "k" || name == "v") continue;
    named[name] = view_of(array, ("d_" + name).c_str(), self.device, Use::write);
  }
  const ContextCallOptions options = call_options(self, scale, stream, workspace, deterministic);
  const nb::gil_scoped_release release;
  self.context.backward(tensors, plan, bindings_of(bound), named, options);
}

nb::list shards_of(const ContextPlan& plan) {
  nb::list list;
  for (const Shard& shard : plan.shards()) {
    list.append(nb::make_tuple(shard.q_begin, shard.q_len, shard.kv_begin, shard.kv_len));
  }
  return list;
}

nb::dict traffic_of(const ContextPlan& plan) {
  const ContextTraffic traffic = plan.traffic();
  nb::dict entries;
  entries["bytes_sent"] = traffic.bytes_sent;
  entries["bytes_received"] = traffic.bytes_received;
  entries["backward_bytes_sent"] = traffic.backward_bytes_sent;
  entries["backward_bytes_received"] = traffic.backward_bytes_received;
  entries["bytes_of_full_ring"] = traffic.bytes_of_full_ring;
  entries["calls"] = traffic.calls;
  entries["tiles"] = traffic.tiles;
  return entries;
}

std::int64_t workspace_bytes(const SharedAttention& self, const ContextPlan& plan, bool backward,
                             bool deterministic) {
  return self.context.workspace_size(plan, backward ? Pass::backward : Pass::forward,
                                     deterministic);
}

void wait(const SharedAttention& self, std::uintptr_t stream) {
  const nb::gil_scoped_release release;
  self.context.wait(stream_of(stream));
}

}  // namespace

void declare_context_parallel(nb::module_& module) {
  nb::class_<Communicator>(module, "Communicator")
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size);
  module.def("transport_communicator", &from_transport, nb::arg("transport"));
  module.def(
      "device_name", [](const std::string& name) { return Device::parse(name).name(); },
      nb::arg("name"));
  module.def("nccl_id", &new_nccl_id);
  module.def("nccl_communicator", &join_nccl, nb::arg("id"), nb::arg("rank"), nb::arg("size"),
             nb::arg("device"), nb::arg("timeout_ms"));
  nb::class_<ContextPlan>(module, "ContextPlan")
      .def_prop_ro("sharding",
                   [](const ContextPlan& plan) { return std::string(to_string(plan.sharding())); })
      .def_prop_ro("shards", &shards_of)
      .def_prop_ro("q_rows", &ContextPlan::q_rows)
      .def_prop_ro("kv_rows", &ContextPlan::kv_rows)
      .def_prop_ro("traffic", &traffic_of);
  nb::class_<SharedAttention>(module, "ContextParallel")
      .def("__init__", &construct_context, nb::arg("spec"), nb::arg("file"), nb::arg("device"),
           nb::arg("communicator"))
      .def_prop_ro("spec", [](const SharedAttention& self) { return to_json(self.context.spec()); })
      .def_prop_ro("device", [](const SharedAttention& self) { return self.device.name(); })
      .def("bind", &bind_whole, nb::arg("whole"), nb::arg("buffers"), nb::arg("scalars"))
      .def("plan", &make_plan, nb::arg("whole"), nb::arg("bindings").none(), nb::arg("sharding"),
           nb::arg("q_lengths"), nb::arg("kv_lengths"), nb::arg("stream"))
      .def("bind_packed", &bind_packed, nb::arg("whole"), nb::arg("buffers"), nb::arg("scalars"))
      .def("plan_packed", &make_packed_plan, nb::arg("whole"), nb::arg("bindings").none(),
           nb::arg("sharding"), nb::arg("q_lengths"), nb::arg("kv_lengths"), nb::arg("stream"))
      .def("workspace_size", &workspace_bytes, nb::arg("plan"), nb::arg("backward"),
           nb::arg("deterministic"))
      .def("forward", &forward, nb::arg("plan"), nb::arg("q"), nb::arg("k"), nb::arg("v"),
           nb::arg("out"), nb::arg("lse").none(), nb::arg("bindings").none(),
           nb::arg("scale").none(), nb::arg("stream"), nb::arg("workspace").none())
      .def("backward", &backward, nb::arg("plan"), nb::arg("inputs"), nb::arg("gradients"),
           nb::arg("bindings").none(), nb::arg("scale").none(), nb::arg("stream"),
           nb::arg("workspace").none(), nb::arg("deterministic"))
      .def("wait", &wait, nb::arg("stream"));
}

}  // namespace tilewright::py
