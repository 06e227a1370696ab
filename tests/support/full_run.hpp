#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Whether `scripts/test.sh --all` asks for every case of every campaign
/// (TILEWRIGHT_TEST_FULL=all).
inline bool is_whole_run() {
  const char* const value = std::getenv("TILEWRIGHT_TEST_FULL");
  return value && std::string_view(value) == "all";
}

/// Whether `scripts/test.sh --full` (TILEWRIGHT_TEST_FULL=1) or `--all` asks for the long form of a
/// test. A full run takes the day's share of a campaign, see `is_in_share`.
inline bool is_full_run() {
  const char* const value = std::getenv("TILEWRIGHT_TEST_FULL");
  return is_whole_run() || (value && std::string_view(value) == "1");
}

/// Which of `parts` shares of a campaign is due: TILEWRIGHT_TEST_SEED, a date, chooses it. A
/// campaign that is due on one day of eight takes every eleventh share, and so each in its turn, as
/// parts are a multiple of 11 nowhere. Every eighth one would be a few of an even number of shares.
inline std::size_t share_of_the_day(std::size_t parts) {
  const char* const text = std::getenv("TILEWRIGHT_TEST_SEED");
  if (!text) return 0;
  const unsigned long long seed = std::strtoull(text, nullptr, 10);
  return static_cast<std::size_t>((seed + 3 * (seed / 8)) % parts);
}

/// Whether item `index` of a campaign lies in the day's share, which holds one item of each
/// `parts`.
inline bool is_in_share(std::size_t index, std::size_t parts) {
  return index % parts == share_of_the_day(parts);
}

/// Whether a full or whole run takes item `index`: a whole run takes each, a full run the day's
/// share.
inline bool is_due(std::size_t index, std::size_t parts) {
  return is_whole_run() || is_in_share(index, parts);
}
