#include "runtime/api/safetensors.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

std::string length_of(std::uint64_t bytes) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &bytes, 8);
  return text;
}

/// A file with this header and that many bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  return length_of(header.size()) + header + std::string(data_bytes, '\0');
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

class Scratch {
 public:
  Scratch() : directory_("test") {}
  fs::path path(const std::string& name = "file.safetensors") const {
    return directory_.path() / name;
  }
  fs::path with(const std::string& contents) const {
    fs::remove(path());  // to overwrite is slow: ext4 then flushes the file when it is closed
    std::ofstream(path(), std::ios::binary) << contents;
    return path();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

 private:
  TemporaryDirectory directory_;
};

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string message_of(const fs::path& path) {
  try {
    read_safetensors(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Tensor counting(DType dtype, std::initializer_list<std::int64_t> shape) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  auto* bytes = static_cast<unsigned char*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.bytes(); ++i) {
    bytes[i] = static_cast<unsigned char>(dtype == DType::boolean ? i % 2 : i % 251);
  }
  return tensor;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.describe() == b.describe() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

}  // namespace

TEST_CASE("safetensors: what is written is read back, for every dtype and rank") {
  const Scratch scratch;
  std::map<std::string, Tensor> tensors;
  for (DType dtype : kAllDTypes) {
    tensors.emplace(std::string(to_string(dtype)), counting(dtype, {2, 3, 1, 5}));
  }
  tensors.emplace("scalar", counting(f32, {}));
  tensors.emplace("deep", counting(i32, {2, 1, 3, 1, 2}));
  tensors.emplace("odd", counting(u8, {7}));
  tensors.emplace("empty", counting(f16, {0, 4}));
  tensors.emplace("a \"name\" with / and \xc3\xa9", counting(bf16, {3, 2}));
  std::map<std::string, TensorView> views(tensors.begin(), tensors.end());
  write_safetensors(scratch.path(), views, {{"spec", "alibi"}, {"seed", "7"}});

  const TensorFile file = read_safetensors(scratch.path());
  CHECK(file.metadata == std::map<std::string, std::string>{{"seed", "7"}, {"spec", "alibi"}});
  CHECK(file.skipped.empty());
  REQUIRE(file.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    REQUIRE(file.tensors.contains(name));
    CHECK(same(file.tensors.at(name), tensor));
  }
}

TEST_CASE("safetensors: the bytes written are those that the format prescribes") {
  const Scratch scratch;
  const Tensor small = counting(u8, {3}), large = counting(i64, {1});
  write_safetensors(scratch.path(), {{"a", small}, {"b", large}}, {{"k", "v"}});
  const std::string header =
      R"({"__metadata__":{"k":"v"},"b":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  const std::string data("\0\1\2\3\4\5\6\7\0\1\2", 11);
  CHECK(contents_of(scratch.path()) ==
        length_of(header.size() + padding.size()) + header + padding + data);
}

TEST_CASE("safetensors: a strided view is written densely") {
  const Scratch scratch;
  float values[6] = {0, 1, 2, 3, 4, 5};
  TensorView transposed = TensorView::contiguous(values, f32, {3, 2});
  transposed.strides = {1, 3};
  write_safetensors(scratch.path(), {{"t", transposed}});
  const TensorFile file = read_safetensors(scratch.path());
  const auto* read = static_cast<const float*>(file.tensors.at("t").data());
  CHECK(std::vector<float>(read, read + 6) == std::vector<float>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("safetensors: only the names asked for are read; others may be of any dtype and rank") {
  const Scratch scratch;
  const fs::path path = scratch.with(
      file_of("{\"q\":" + entry("F32", "[1]", "[0,4]") + ",\"x\":" + entry("U64", "[1]", "[4,12]") +
                  ",\"y\":" + entry("U8", "[1,1,1,1,1,2]", "[12,14]") +
                  ",\"z\":" + entry("F4", "[4]", "[14,16]") + "}",
              16));
  const std::vector<std::string> names = {"q", "absent"};
  const TensorFile file = read_safetensors(path, names);
  CHECK(file.tensors.size() == 1);
  CHECK(file.tensors.at("q").describe() == "f32 [1]");
  CHECK(file.skipped == std::vector<std::string>{"x", "y", "z"});
  CHECK_THAT(message_of(path), ContainsSubstring("\"x\"") && ContainsSubstring("U64") &&
                                   ContainsSubstring("convert it"));
  const std::vector<std::string> six = {"y"};
  REQUIRE_THROWS_WITH(read_safetensors(path, six), ContainsSubstring("rank 6"));
}

TEST_CASE("safetensors: a BOOL of any byte but 0 is true") {
  const Scratch scratch;
  const TensorFile file =
      read_safetensors(scratch.with(file_of("{\"a\":" + entry("BOOL", "[3]", "[0,3]") + "}", 0)
                                        .append(std::string("\0\2\377", 3))));
  const Tensor& a = file.tensors.at("a");
  CHECK(read_element(a.data(), boolean, 0) == 0);
  CHECK(read_element(a.data(), boolean, 1) == 1);
  CHECK(read_element(a.data(), boolean, 2) == 1);
}

TEST_CASE("safetensors: a header with blanks behind it, and no tensors, is right") {
  const Scratch scratch;
  CHECK(read_safetensors(scratch.with(file_of("{}      ", 0))).tensors.empty());
  CHECK(read_safetensors(scratch.with(file_of("{\"a\":" + entry("F32", "[0]", "[0,0]") + "}", 0)))
            .tensors.at("a")
            .numel() == 0);
}

TEST_CASE("safetensors: a file that is damaged or lies is refused, and the message says where") {
  struct Case {
    std::string contents;
    const char* expected;
  };
  const std::string good = entry("F32", "[2]", "[0,8]");
  const std::string max = std::to_string(std::numeric_limits<std::uint64_t>::max());
  const std::vector<Case> cases = {
      {"", "only 0 bytes"},
      {"abc", "only 3 bytes"},
      {length_of(0), "header is empty"},
      {length_of(0) + "{}", "header is empty"},
      {length_of(3) + "{}", "should have 3 bytes"},
      {length_of(~std::uint64_t{0}) + "{}", "should have 18446744073709551615 bytes"},
      {length_of(std::uint64_t{1} << 63) + "{}", "should have 9223372036854775808 bytes"},
      {file_of("{\"a\":", 0), "no JSON (byte"},
      {file_of("PK\3\4 binary \xff\xfe", 8), "does not begin with '{'"},
      {file_of(std::string("{\"a\xff\":1}"), 0), "no JSON"},
      {file_of("{} x", 0), "no JSON"},
      {file_of("{}{}", 0), "no JSON"},
      {file_of("[]", 0), "no JSON object"},
      {file_of("7", 0), "no JSON object"},
      {file_of("{\"a\":7}", 0), "\"a\" is no JSON object"},
      {file_of("{\"a\":{}}", 0), "has no \"dtype\""},
      {file_of(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4), "has no \"shape\""},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offset":[0,4]}})", 4),
       "it has \"data_offset\" instead"},
      {file_of(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4), "no string"},
      {file_of("{\"a\":" + good + ",\"a\":" + good + "}", 8), "\"a\" twice"},
      {file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
       "\"dtype\" twice"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "\"__metadata__\" twice"},
      {file_of(R"({"__metadata__":[]})", 0), "__metadata__ is no JSON object"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "no string"},
      {file_of("{\"a\":" + entry("F32", "7", "[0,4]") + "}", 4), "shape is no list"},
      {file_of("{\"a\":" + entry("F32", "[-1]", "[0,4]") + "}", 4), "holds -1"},
      {file_of("{\"a\":" + entry("F32", "[1.0]", "[0,4]") + "}", 4), "holds 1.0"},
      {file_of("{\"a\":" + entry("F32", "[\"1\"]", "[0,4]") + "}", 4), "holds \"1\""},
      {file_of("{\"a\":" + entry("F32", "[" + max + "]", "[0,4]") + "}", 4), "more than 2^61"},
      {file_of("{\"a\":" + entry("F32", "[1e2]", "[0,400]") + "}", 400), "holds 1e2"},
      {file_of("{\"a\":" + entry("F32", "[1e999]", "[0,4]") + "}", 4), "a number too large"},
      {file_of("{\"a\":" + entry("F32", "[4294967296,4294967296]", "[0,0]") + "}", 0),
       "more than 2^61"},
      {file_of("{\"a\":" + entry("U8", "[4294967296,4294967296,0]", "[0,0]") + "}", 0),
       "more than 2^61"},
      {file_of("{\"a\":" + entry("U8", "[0,4294967296,4294967296]", "[0,0]") + "}", 0),
       "product exceeds 2^63"},
      {file_of("{\"a\":" + entry("F32", "[1]", "[0]") + "}", 4), "1 data_offsets instead of 2"},
      {file_of("{\"a\":" + entry("F32", "[1]", "[-4,0]") + "}", 4), "holds -4"},
      {file_of("{\"a\":" + entry("F32", "[1]", "[4,0]") + "}", 4), "ends before it begins"},
      {file_of("{\"a\":" + entry("F32", "[1]", "[0,8]") + "}", 4), "only 4 bytes of data"},
      {file_of("{\"a\":" + entry("F32", "[2]", "[0,8]") + "}", 7), "truncated"},
      {file_of("{\"a\":" + entry("F32", "[3]", "[0,8]") + "}", 8), "should have 12 bytes"},
      {file_of("{\"a\":" + entry("F64", "[3]", "[0,8]") + "}", 8), "should have 24 bytes"},
      {file_of("{\"a\":" + good + ",\"b\":" + entry("F32", "[1]", "[4,8]") + "}", 8),
       "inside the tensor before it"},
      {file_of("{\"a\":" + good + ",\"b\":" + good + "}", 8), "inside the tensor before it"},
      {file_of("{\"a\":" + entry("F32", "[1]", "[4,8]") + "}", 8), "bytes 0 to 4"},
      {file_of("{\"a\":" + good + ",\"b\":" + entry("F32", "[1]", "[12,16]") + "}", 16),
       "bytes 8 to 12"},
      {file_of("{\"a\":" + good + "}", 9), "1 bytes after the last tensor"},
      {file_of(R"({"a":{"x":)" + std::string(200000, '['), 0), "nested too deeply"},
      {file_of(R"({"a":{"x":)" + std::string(200000, '{'), 0), "no JSON"},
      {file_of(R"({"a":{"b":{"c":{}}}})", 0), "has no \"dtype\""},
      {file_of(R"({"a":{"shape":[[1]]}})", 0), "holds a list"},
      {file_of("{\"a\":" + entry("U64", "[2]", "[0,16]") + "}", 16), "has the dtype U64"},
  };
  const Scratch scratch;
  for (const Case& c : cases) {
    INFO(c.contents.substr(0, 200));
    const std::string message = message_of(scratch.with(c.contents));
    CHECK_THAT(message, ContainsSubstring("error[file]") && ContainsSubstring("hint: ") &&
                            ContainsSubstring("file.safetensors") && ContainsSubstring(c.expected));
  }
}

TEST_CASE("safetensors: a good file cut at any byte, or with one byte more, is refused") {
  const Scratch scratch;
  const Tensor a = counting(f32, {2, 2}), b = counting(u8, {3});
  write_safetensors(scratch.path("good"), {{"a", a}, {"b", b}}, {{"k", "v"}});
  const std::string good = contents_of(scratch.path("good"));
  int accepted = 0;
  for (std::size_t length = 0; length < good.size(); ++length) {
    accepted += message_of(scratch.with(good.substr(0, length))) == "no error";
  }
  CHECK(accepted == 0);
  CHECK(message_of(scratch.with(good)) == "no error");
  CHECK(message_of(scratch.with(good + "x")) != "no error");
}

TEST_CASE("safetensors: any byte of the header changed gives an error or a file, never worse") {
  const Scratch scratch;
  const Tensor a = counting(f32, {2, 2}), b = counting(i32, {3});
  write_safetensors(scratch.path("good"), {{"a", a}, {"b", b}});
  const std::string good = contents_of(scratch.path("good"));
  int others = 0;
  for (std::size_t at = 0; at < good.size() - 28; ++at) {
    for (char with : {'\0', '\xff', '9', '"', '-', '}'}) {
      std::string changed = good;
      changed[at] = with;
      const std::string message = message_of(scratch.with(changed));
      others += message != "no error" && message.find("error[file]") != 0;
    }
  }
  CHECK(others == 0);
}

TEST_CASE("safetensors: what is no regular file is refused at once") {
  const Scratch scratch;
  CHECK_THAT(message_of(scratch.path("absent")),
             ContainsSubstring("error[file]") && ContainsSubstring("absent"));
  CHECK_THAT(message_of(scratch.path(".")), ContainsSubstring("a directory"));
  CHECK_THAT(message_of("/dev/zero"), ContainsSubstring("a device"));
  REQUIRE(mkfifo(scratch.path("pipe").c_str(), 0600) == 0);
  CHECK_THAT(message_of(scratch.path("pipe")), ContainsSubstring("a pipe"));
}

TEST_CASE("safetensors: a file larger than 2 GiB is read at the right place") {
  const Scratch scratch;
  const std::uint64_t gap = (std::uint64_t{5} << 29) + 4;  // 2.5 GiB, sparse on disk
  const std::string header =
      "{\"skipped\":" +
      entry("U8", "[" + std::to_string(gap) + "]", "[0," + std::to_string(gap) + "]") +
      ",\"last\":" +
      entry("U8", "[4]", "[" + std::to_string(gap) + "," + std::to_string(gap + 4) + "]") + "}";
  const fs::path path = scratch.with(file_of(header, 0));
  std::error_code full;
  fs::resize_file(path, 8 + header.size() + gap, full);
  REQUIRE_FALSE(full);
  std::ofstream(path, std::ios::binary | std::ios::app) << "\1\2\3\4";
  const std::vector<std::string> names = {"last"};
  const TensorFile file = read_safetensors(path, names);
  CHECK(std::memcmp(file.tensors.at("last").data(), "\1\2\3\4", 4) == 0);
}

TEST_CASE("safetensors: a write that fails leaves the old file, and no other") {
  const Scratch scratch;
  const Tensor small = counting(u8, {1}), large = counting(u8, {1 << 20});
  write_safetensors(scratch.path(), {{"old", small}});
  const std::string before = contents_of(scratch.path());

  struct sigaction ignore = {}, handler = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, &handler);
  rlimit unlimited = {};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  const rlimit tight = {4096, unlimited.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  std::string message;
  try {
    write_safetensors(scratch.path(), {{"new", large}});
  } catch (const Error& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &unlimited);
  sigaction(SIGXFSZ, &handler, nullptr);

  CHECK_THAT(message, ContainsSubstring("error[disk]"));
  CHECK(contents_of(scratch.path()) == before);
  CHECK(scratch.files() == 1);
}

TEST_CASE("safetensors: names that the format cannot hold are refused before anything is written") {
  const Scratch scratch;
  const Tensor tensor = counting(u8, {1});
  for (const char* name : {"", "__metadata__", "\xff"}) {
    REQUIRE_THROWS_WITH(write_safetensors(scratch.path(), {{name, tensor}}),
                        ContainsSubstring("error[usage]"));
  }
  CHECK(scratch.files() == 0);
  REQUIRE_THROWS_WITH(write_safetensors(scratch.path("no/such/folder"), {{"a", tensor}}),
                      ContainsSubstring("error[disk]"));
}
