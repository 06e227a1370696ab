#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runtime/api/safetensors.hpp"
#include "runtime/io/safetensors_header.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

// Each character of a text in the corpus is one byte.
std::string bytes_of(const std::string& utf8) {
  std::string bytes;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    auto c = static_cast<unsigned char>(utf8[i]);
    if (c >= 0x80) c = static_cast<unsigned char>((c & 3) << 6 | (utf8[++i] & 0x3f));
    bytes += static_cast<char>(c);
  }
  return bytes;
}

bool is_accepted(const std::string& header, std::uint64_t data_bytes) {
  try {
    parse_safetensors_header(header, data_bytes, "corpus");
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::file);
    return false;
  }
}

double seconds_to_parse(const std::string& header, std::uint64_t data_bytes) {
  const auto start = std::chrono::steady_clock::now();
  CHECK(is_accepted(header, data_bytes));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string header_of(std::size_t tensors, std::size_t bytes_each) {
  std::string header = "{";
  for (std::size_t i = 0; i < tensors; ++i) {
    header += fmt::format(R"({}"layer.{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, bytes_each, i * bytes_each, (i + 1) * bytes_each);
  }
  return header + "}";
}

}  // namespace

TEST_CASE("safetensors: a header gets the verdict of the format's reader") {
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/tests/runtime/safetensors_headers.json");
  const nlohmann::json corpus = nlohmann::json::parse(file);
  REQUIRE(corpus.size() > 200);
  for (const nlohmann::json& item : corpus) {
    INFO(item["name"].get<std::string>());
    const bool wanted = item["reader"].get<bool>() && !item.contains("forbidden");
    CHECK(is_accepted(bytes_of(item["header"].get<std::string>()),
                      item["data_bytes"].get<std::uint64_t>()) == wanted);
  }
}

TEST_CASE("safetensors: a header is read in time linear in its length") {
  const std::string metadata = std::string(30'000'000, 'x');
  std::string keys;
  for (int i = 0; i < 100'000; ++i) keys += fmt::format(R"({}"k{}":"v")", i == 0 ? "" : ",", i);
  // 40,000 took 25 s when each object's end looked at all objects before it.
  CHECK(seconds_to_parse(header_of(40'000, 0), 0) < 1);
  CHECK(seconds_to_parse(header_of(200'000, 4), 800'000) < 5);
  CHECK(seconds_to_parse(R"({"__metadata__":{"x":")" + metadata + "\"}}", 0) < 5);
  CHECK(seconds_to_parse("{\"__metadata__\":{" + keys + "}}", 0) < 5);
  CHECK(seconds_to_parse(
            R"({"a":{"x":{)" + keys + R"(},"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0) <
        5);
  CHECK_FALSE(is_accepted(std::string(50'000'000, ' '), 0));
  CHECK_FALSE(is_accepted("{\"a\":" + std::string(50'000'000, '['), 0));
}
