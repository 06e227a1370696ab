#pragma once

#include <optional>
#include <string_view>

#include "complaint.hpp"

namespace tilewright::jinja {

// What Jinja has and this engine has not: each is refused by its name, with what to write instead.

/// The complaint about a filter that find_filter() does not know.
Complaint refused_filter(std::string_view name);
/// The complaint about a test other than `none`.
Complaint refused_test(std::string_view name);
/// The complaint about a tag that the parser does not know.
Complaint refused_tag(std::string_view name);
/// The complaint about a call of anything but range().
Complaint refused_call(std::string_view name);
/// The complaint about an operator of Jinja, C or Python, if `token` is one.
std::optional<Complaint> refused_operator(std::string_view token);

}  // namespace tilewright::jinja
