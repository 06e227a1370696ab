#pragma once

#include <cstdint>
#include <functional>
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

/// Arguments of a call from a template: `f(1, name="x")`.
struct Arguments {
  List positional;
  Map named;
};

/// A function that templates may call. A std::invalid_argument with a sentence that it throws is
/// reported at the call's place; a tilewright::Error passes unchanged.
using Function = std::function<Value(const Arguments&)>;

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

/// What a template computes with. Strict: no conversion happens that was not asked for, so that
/// `"2" > 1` is an error and not true.
class Value {
 public:
  Value() = default;  ///< none
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(int value) : data_(std::int64_t{value}) {}
  Value(double value) : data_(value) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(List value);
  Value(Map value);
  Value(Function value) : data_(std::make_shared<const Function>(std::move(value))) {}
  Value(Splice value) : data_(std::make_shared<const Splice>(std::move(value))) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(data_); }
  /// The alternative, or nullptr.
  const bool* as_bool() const { return std::get_if<bool>(&data_); }
  const std::int64_t* as_int() const { return std::get_if<std::int64_t>(&data_); }
  const double* as_float() const { return std::get_if<double>(&data_); }
  const std::string* as_string() const { return std::get_if<std::string>(&data_); }
  const List* as_list() const {
    const auto* nested = pointer<Nested<List>>();
    return nested ? &nested->items : nullptr;
  }
  const Map* as_map() const {
    const auto* nested = pointer<Nested<Map>>();
    return nested ? &nested->items : nullptr;
  }
  const Function* as_function() const { return pointer<Function>(); }
  const Splice* as_splice() const { return pointer<Splice>(); }

  /// How deeply lists and maps are nested: 0 for anything else, 1 for a list of numbers. Kept so
  /// that the engine can bound recursion over values in constant time.
  int depth() const;

  /// "none", "bool", "int", "float", "string", "list", "map", "function" or "splice".
  std::string_view type_name() const;

 private:
  template <typename Items>
  struct Nested {
    Items items;
    int depth;
  };

  template <typename T>
  const T* pointer() const {
    const auto* shared = std::get_if<std::shared_ptr<const T>>(&data_);
    return shared ? shared->get() : nullptr;
  }

  std::variant<std::monostate, bool, std::int64_t, double, std::string,
               std::shared_ptr<const Nested<List>>, std::shared_ptr<const Nested<Map>>,
               std::shared_ptr<const Function>, std::shared_ptr<const Splice>>
      data_;
};

}  // namespace tilewright::jinja
