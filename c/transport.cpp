#include "c/transport.hpp"

#include <string>

namespace tilewright::capi {
namespace {

void fill_messages(std::vector<tw_message>& to, std::span<const Message> from) {
  to.clear();
  for (const Message& message : from) {
    to.push_back(
        {.peer = message.peer, .reserved = 0, .data = message.data, .bytes = message.bytes});
  }
}

}  // namespace

Transport::Transport(const tw_transport& transport) : transport_(transport) {
  if (!transport.all_gather || !transport.exchange) {
    throw Error(ErrorCode::usage,
                transport.all_gather ? "exchange is NULL in tw_transport"
                                     : "all_gather is NULL in tw_transport",
                "give both functions");
  }
  if (transport.size >= 1 && transport.rank >= 0 && transport.rank < transport.size) return;
  throw Error(ErrorCode::usage,
              "tw_transport has rank " + std::to_string(transport.rank) + " of " +
                  std::to_string(transport.size),
              "ranks count from 0 to size - 1");
}

void Transport::require_success(std::int32_t status, std::string_view doing) const {
  if (status == 0) return;
  const char* const why =
      transport_.describe ? transport_.describe(transport_.user, status) : nullptr;
  throw Error(ErrorCode::device, "the transport failed while " + std::string(doing) + ": " +
                                     (why ? std::string(why) : "status " + std::to_string(status)));
}

std::vector<std::byte> Transport::all_gather(std::span<const std::byte> mine) {
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(size()));
  require_success(transport_.all_gather(transport_.user, mine.data(), all.data(),
                                        static_cast<std::int64_t>(mine.size())),
                  "gathering from all ranks");
  return all;
}

void Transport::connect(std::span<const int> send_to, std::span<const int> receive_from) {
  if (!transport_.connect) return;
  const std::vector<std::int32_t> to(send_to.begin(), send_to.end());
  const std::vector<std::int32_t> from(receive_from.begin(), receive_from.end());
  require_success(
      transport_.connect(transport_.user, to.data(), to.size(), from.data(), from.size()),
      "connecting to other ranks");
}

void Transport::exchange(std::span<const Message> sends, std::span<const Message> receives,
                         Stream stream) {
  fill_messages(sends_, sends);
  fill_messages(receives_, receives);
  require_success(transport_.exchange(transport_.user, sends_.data(), sends_.size(),
                                      receives_.data(), receives_.size(), stream),
                  "exchanging tensors");
}

void Transport::wait(Stream stream) {
  if (!transport_.wait) return;
  require_success(transport_.wait(transport_.user, stream), "waiting for a stream");
}

}  // namespace tilewright::capi
