#pragma once

#include <cstdint>
#include <string_view>

#include "c/tilewright.h"
#include "tilewright.hpp"

namespace tilewright::capi {

/// The means of a program by which ranks exchange tensors.
class Transport final : public Communicator {
 public:
  /// @throws Error with code usage for functions that are missing or a rank out of range
  explicit Transport(const tw_transport& transport);

  int rank() const override { return transport_.rank; }
  int size() const override { return transport_.size; }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override;
  void connect(std::span<const int> send_to, std::span<const int> receive_from) override;
  void exchange(std::span<const Message> sends, std::span<const Message> receives,
                Stream stream) override;
  void wait(Stream stream) override;

 private:
  void require_success(std::int32_t status, std::string_view doing) const;

  tw_transport transport_;
  std::vector<tw_message> sends_;
  std::vector<tw_message> receives_;
};

}  // namespace tilewright::capi
