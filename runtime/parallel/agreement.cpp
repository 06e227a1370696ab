#include "runtime/parallel/agreement.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace tilewright::parallel {
namespace {

constexpr char kEndOfName = '\x1f';
constexpr char kEndOfValue = '\x1e';

std::string packed_text(const std::vector<Fact>& facts) {
  std::string text;
  for (const Fact& fact : facts) text += fact.name + kEndOfName + fact.value + kEndOfValue;
  return text;
}

std::map<std::string, std::string> unpacked(std::string_view text) {
  std::map<std::string, std::string> facts;
  for (std::size_t end = text.find(kEndOfValue); end != std::string_view::npos;
       end = text.find(kEndOfValue)) {
    const std::string_view fact = text.substr(0, end);
    const std::size_t middle = fact.find(kEndOfName);
    if (middle != std::string_view::npos) {
      facts.emplace(fact.substr(0, middle), fact.substr(middle + 1));
    }
    text.remove_prefix(end + 1);
  }
  return facts;
}

std::string shown(const std::map<std::string, std::string>& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "absent" : found->second;
}

void compare(const std::string& first, const std::string& other, int rank, ErrorCode code) {
  if (first == other) return;
  const std::map<std::string, std::string> of_first = unpacked(first);
  const std::map<std::string, std::string> of_other = unpacked(other);
  std::map<std::string, std::string> names = of_first;
  names.insert(of_other.begin(), of_other.end());
  for (const auto& [name, value] : names) {
    const std::string a = shown(of_first, name);
    const std::string b = shown(of_other, name);
    if (a == b) continue;
    throw Error(code, fmt::format("{} is {} on rank 0 and {} on rank {}", name, a, b, rank),
                "all ranks of a group take the same spec, lengths and options");
  }
  throw Error(code, fmt::format("rank {} runs another version of the library than rank 0", rank));
}

}  // namespace

std::vector<std::int64_t> gather_numbers(Communicator& communicator,
                                         const std::vector<std::int64_t>& mine) {
  const std::vector<std::byte> bytes = communicator.all_gather(std::as_bytes(std::span(mine)));
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(communicator.size()));
  if (bytes.size() != all.size() * sizeof(std::int64_t)) {
    throw Error(ErrorCode::device,
                fmt::format("all_gather of {} ranks returned {} bytes in place of {}",
                            communicator.size(), bytes.size(), all.size() * sizeof(std::int64_t)));
  }
  if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

void require_agreement(Communicator& communicator, const std::vector<Fact>& facts, ErrorCode code) {
  std::string mine = packed_text(facts);
  const std::vector<std::int64_t> sizes = gather_numbers(communicator, {std::ssize(mine)});
  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  mine.resize(longest);
  const std::vector<std::byte> all = communicator.all_gather(std::as_bytes(std::span(mine)));
  const auto text_of = [&](std::size_t rank) {
    return std::string(reinterpret_cast<const char*>(all.data()) + rank * longest,
                       static_cast<std::size_t>(sizes[rank]));
  };
  for (int rank = 1; rank < communicator.size(); ++rank) {
    compare(text_of(0), text_of(static_cast<std::size_t>(rank)), rank, code);
  }
}

}  // namespace tilewright::parallel
