#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

/// A constant list of names for nearest_name and its like. It is initialised before any code runs,
/// and what it hands out is made at the first use and never destroyed, so constructors and
/// destructors of static objects and atexit handlers may use it.
///
///     constinit const NameList kLayouts("bhsd", "bshd");
template <std::size_t kCount>
class NameList {
 public:
  template <typename... Name>
  constexpr explicit NameList(const Name*... names) : literals_{names...} {}

  operator const std::vector<std::string>&() const { return names(); }
  operator std::span<const std::string>() const { return names(); }

  const std::vector<std::string>& names() const {
    if (const auto* made = names_.load(std::memory_order_acquire)) return *made;
    const auto* const mine = new std::vector<std::string>(literals_.begin(), literals_.end());
    const std::vector<std::string>* first = nullptr;
    if (names_.compare_exchange_strong(first, mine)) return *mine;
    delete mine;
    return *first;
  }

 private:
  std::array<const char*, kCount> literals_;
  mutable std::atomic<const std::vector<std::string>*> names_ = nullptr;
};

template <typename... Name>
NameList(const Name*...) -> NameList<sizeof...(Name)>;

}  // namespace tilewright
