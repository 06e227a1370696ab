#include "base/nearest_name.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

namespace tilewright {
namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// Optimal string alignment: insert, delete, replace, and swap of neighbours each cost 1.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + !same});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

bool has_same_letters(std::string_view a, std::string_view b) {
  return std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
}

// Of two letters any change leaves one, which says nothing; of three the first is rarely mistyped.
bool may_be_meant(std::string_view name, std::string_view candidate) {
  if (name.size() > 3) return true;
  const bool has_first =
      !name.empty() && !candidate.empty() && lower(name[0]) == lower(candidate[0]);
  const auto same_letter = [](char a, char b) { return lower(a) == lower(b); };
  const bool is_other_case =
      std::equal(name.begin(), name.end(), candidate.begin(), candidate.end(), same_letter);
  if (name.size() < 2) return false;
  return is_other_case || has_same_letters(name, candidate) || (name.size() == 3 && has_first);
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view name,
                                        std::span<const std::string> candidates) {
  const size_t allowed = std::clamp<size_t>(name.size() / 3, 1, 3);
  size_t least = std::numeric_limits<size_t>::max();
  std::optional<std::string> nearest;
  if (name.size() > 64) return nearest;
  for (const std::string& candidate : candidates) {
    if (!may_be_meant(name, candidate)) continue;
    const size_t distance = edit_distance(name, candidate);
    const bool is_likelier =
        distance == least && has_same_letters(name, candidate) && !has_same_letters(name, *nearest);
    if (distance <= allowed && (distance < least || is_likelier)) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::optional<std::string> nearest = nearest_name(name, candidates);
  return nearest ? "did you mean \"" + *nearest + "\"?" : std::string();
}

std::string one_of(std::span<const std::string> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += '"' + names[i] + '"';
  }
  return text;
}

}  // namespace tilewright
