#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tilewright::jinja {

class Value;
using List = std::vector<Value>;
using Map = std::map<std::string, Value>;

/// Text that came from elsewhere than a template and keeps its own positions: a snippet. Printing
/// one keeps the indentation of the place where it is printed on each of its lines, and the source
/// map points into it.
struct Splice {
  /// A run of text with the place it came from. Pieces are contiguous in the text.
  struct Piece {
    std::string text;
    int line = 1;  ///< of its first letter in the original
    int column = 1;
    bool verbatim = true;  ///< copied letter by letter, so positions go on counting inside it
  };
  std::string origin;  ///< what the original is called: "score_mod"
  std::vector<Piece> pieces;
};

/// What a template computes with. Strict: nothing is converted, so that `"2" > 1` is an error and
/// not true.
class Value {
 public:
  Value() = default;  ///< none
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(int value) : data_(std::int64_t{value}) {}
  Value(double) = delete;  ///< pass the text of a C++ literal: "0.5f"
  Value(std::string value) : data_(std::move(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(List value) : data_(std::make_shared<const List>(std::move(value))) {}
  Value(Map value) : data_(std::make_shared<const Map>(std::move(value))) {}
  Value(Splice value) : data_(std::make_shared<const Splice>(std::move(value))) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(data_); }
  /// The alternative, or nullptr.
  const bool* as_bool() const { return std::get_if<bool>(&data_); }
  const std::int64_t* as_int() const { return std::get_if<std::int64_t>(&data_); }
  const std::string* as_string() const { return std::get_if<std::string>(&data_); }
  const List* as_list() const { return pointer<List>(); }
  const Map* as_map() const { return pointer<Map>(); }
  const Splice* as_splice() const { return pointer<Splice>(); }

  /// "none", "a bool", "an int", "a string", "a list", "a map" or "a splice".
  std::string_view a_type() const;
  /// What `if` decides by: Python's rule that zero and what is empty are false.
  bool is_true() const;
  /// What printing gives: the text of a string, or a C++ literal that parses back.
  /// @throws Complaint for what has no text: none, a list, a map or a splice
  std::string text() const;

 private:
  template <typename T>
  const T* pointer() const {
    const auto* shared = std::get_if<std::shared_ptr<const T>>(&data_);
    return shared ? shared->get() : nullptr;
  }

  std::variant<std::monostate, bool, std::int64_t, std::string, std::shared_ptr<const List>,
               std::shared_ptr<const Map>, std::shared_ptr<const Splice>>
      data_;
};

}  // namespace tilewright::jinja
