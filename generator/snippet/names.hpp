#pragma once

#include <string>
#include <string_view>

namespace tilewright {

/// A keyword of C++20, alternative tokens (`and`, `not_eq`) included.
bool is_cpp_keyword(std::string_view name);

/// Why a keyword has no place in a snippet, to stand after "`goto` is not allowed: "; empty where
/// it has one.
std::string_view why_keyword_is_refused(std::string_view name);

/// `tw_*`, `TW_*`, `tilewright*`, `_Upper*`, and names that contain `__`.
bool is_reserved_name(std::string_view name);

/// What is wrong with the name of a buffer or a scalar, to stand after `"int" `; empty where
/// nothing is.
std::string name_fault(std::string_view name);

/// A tensor of a packed call (q, kv_begin, page_table, ...), whose name no buffer of a packed spec
/// has.
bool is_sequence_tensor(std::string_view name);

}  // namespace tilewright
