#include "runtime/compile/worker_protocol.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include "base/version.hpp"
#include "cache/key.hpp"
#include "runtime/compile/host_compiler.hpp"

namespace tilewright {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::internal, "a message of a compile worker is malformed",
              "the worker may be of another version: TILEWRIGHT_WORKER names another one");
}

class Writer {
 public:
  void number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<std::byte>(value >> shift & 0xff));
    }
  }
  void bytes(std::span<const std::byte> value) {
    number(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void text(std::string_view value) { bytes(std::as_bytes(std::span(value))); }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint64_t number() {
    if (rest_.size() < 8) refuse();
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      value |= static_cast<std::uint64_t>(rest_[static_cast<std::size_t>(i)]) << 8 * i;
    }
    rest_ = rest_.subspan(8);
    return value;
  }
  int small_number() { return static_cast<int>(number_up_to(1 << 30)); }
  std::uint64_t number_up_to(std::uint64_t most) {
    const std::uint64_t value = number();
    if (value > most) refuse();
    return value;
  }
  std::span<const std::byte> bytes() {
    const std::uint64_t size = number_up_to(rest_.size());
    const std::span<const std::byte> value = rest_.first(size);
    rest_ = rest_.subspan(size);
    return value;
  }
  std::string text() {
    const std::span<const std::byte> value = bytes();
    return std::string(reinterpret_cast<const char*>(value.data()), value.size());
  }
  std::vector<std::string> texts() {
    // Each takes its length at least, so a lying count cannot ask for much memory.
    std::vector<std::string> values(number_up_to(rest_.size() / 8));
    for (std::string& value : values) value = text();
    return values;
  }
  void end() const {
    if (!rest_.empty()) refuse();
  }

 private:
  std::span<const std::byte> rest_;
};

void write(Writer& writer, const Error::Details& error) {
  writer.number(static_cast<std::uint64_t>(error.code));
  writer.text(error.message);
  writer.texts(error.notes);
  writer.text(error.hint);
}

Error::Details read_error(Reader& reader) {
  Error::Details error;
  error.code =
      static_cast<ErrorCode>(reader.number_up_to(static_cast<std::uint64_t>(ErrorCode::internal)));
  error.message = reader.text();
  error.notes = reader.texts();
  error.hint = reader.text();
  return error;
}

void write(Writer& writer, const cuda::NvrtcFacts& facts) {
  writer.text(facts.path);
  writer.number(static_cast<std::uint64_t>(facts.major));
  writer.number(static_cast<std::uint64_t>(facts.minor));
  writer.number(facts.architectures.size());
  for (const int sm : facts.architectures) writer.number(static_cast<std::uint64_t>(sm));
  writer.text(facts.identity);
}

cuda::NvrtcFacts read_nvrtc(Reader& reader) {
  cuda::NvrtcFacts facts;
  facts.path = reader.text();
  facts.major = reader.small_number();
  facts.minor = reader.small_number();
  facts.architectures.resize(reader.number_up_to(10'000));
  for (int& sm : facts.architectures) sm = reader.small_number();
  facts.identity = reader.text();
  return facts;
}

}  // namespace

std::string worker_greeting() {
  const std::string build = std::string(version()) + '\n' + HostCompiler::own_options();
  const cache::Digest digest = cache::digest_of(std::vector<cache::Ingredient>{{"build", build}});
  return "tilewright-worker-1 " + digest.hex().substr(0, 16) + '\n';
}

std::vector<std::byte> encode(const WorkerRequest& request) {
  Writer writer;
  writer.number(static_cast<std::uint64_t>(request.task));
  writer.number(static_cast<std::uint64_t>(request.limits.wall.count()));
  writer.number(request.limits.address_space);
  writer.number(static_cast<std::uint64_t>(request.limits.cpu.count()));
  writer.number(request.limits.output);
  writer.texts(request.environment);
  writer.text(request.directory);
  writer.texts(request.words);
  writer.text(request.compiler);
  writer.text(request.target);
  writer.texts(request.options);
  writer.text(request.source);
  return writer.take();
}

WorkerRequest decode_worker_request(std::span<const std::byte> body) {
  Reader reader(body);
  WorkerRequest request;
  request.task = static_cast<WorkerRequest::Task>(
      reader.number_up_to(static_cast<std::uint64_t>(WorkerRequest::Task::host)));
  request.limits.wall = std::chrono::seconds(reader.small_number());
  request.limits.address_space = reader.number_up_to(std::uint64_t{1} << 40);
  request.limits.cpu = std::chrono::seconds(reader.small_number());
  request.limits.output = reader.number_up_to(std::uint64_t{1} << 40);
  request.environment = reader.texts();
  request.directory = reader.text();
  request.words = reader.texts();
  request.compiler = reader.text();
  request.target = reader.text();
  request.options = reader.texts();
  request.source = reader.text();
  reader.end();
  return request;
}

std::vector<std::byte> encode(const WorkerResponse& response) {
  Writer writer;
  writer.number(response.error ? 1 : 0);
  if (response.error) write(writer, *response.error);
  writer.number(response.limit_reached ? 1 : 0);
  writer.number(response.succeeded ? 1 : 0);
  writer.bytes(response.binary);
  writer.text(response.log);
  writer.number(std::bit_cast<std::uint64_t>(response.milliseconds));
  writer.number(response.nvrtc ? 1 : 0);
  if (response.nvrtc) write(writer, *response.nvrtc);
  return writer.take();
}

WorkerResponse decode_worker_response(std::span<const std::byte> body) {
  Reader reader(body);
  WorkerResponse response;
  if (reader.number_up_to(1) != 0) response.error = read_error(reader);
  response.limit_reached = reader.number_up_to(1) != 0;
  response.succeeded = reader.number_up_to(1) != 0;
  const std::span<const std::byte> binary = reader.bytes();
  response.binary.assign(binary.begin(), binary.end());
  response.log = reader.text();
  response.milliseconds = std::bit_cast<double>(reader.number());
  if (reader.number_up_to(1) != 0) response.nvrtc = read_nvrtc(reader);
  reader.end();
  return response;
}

}  // namespace tilewright
