#include "generator/render/source_map.hpp"

#include "base/error.hpp"
#include "tests/generator/origin_printer.hpp"
#include "tests/support/catch.hpp"

using tilewright::Origin;
using tilewright::SourceMap;

TEST_CASE("source map: verbatim text goes on counting, a value maps to its start") {
  SourceMap map;
  map.add(1, 1, {"a.jinja", 10, 5}, true);
  map.add(3, 4, {"a.jinja", 20, 7}, false);
  CHECK(map.origin_of(1, 1) == Origin{"a.jinja", 10, 5});
  CHECK(map.origin_of(1, 9) == Origin{"a.jinja", 10, 13});
  CHECK(map.origin_of(2, 3) == Origin{"a.jinja", 11, 3});
  CHECK(map.origin_of(3, 3) == Origin{"a.jinja", 12, 3});
  CHECK(map.origin_of(3, 4) == Origin{"a.jinja", 20, 7});
  CHECK(map.origin_of(3, 30) == Origin{"a.jinja", 20, 7});
  CHECK(map.origin_of(99, 1) == Origin{"a.jinja", 20, 7});
}

TEST_CASE("source map: a whole line belongs to the snippet that any part of it came from") {
  SourceMap map;
  map.add(1, 1, {"a.jinja", 1, 1}, true);
  map.add(2, 5, {"score_mod", 1, 3, true}, true);  // two lines, the second of which is 3
  map.add(3, 9, {"a.jinja", 2, 20}, true);
  map.add(4, 1, {"a.jinja", 3, 1}, true);
  CHECK(map.origin_of(1) == Origin{"a.jinja", 1, 1});
  CHECK(map.origin_of(2) == Origin{"score_mod", 1, 3, true});
  CHECK(map.origin_of(3) == Origin{"score_mod", 2, 1, true});
  CHECK(map.origin_of(4) == Origin{"a.jinja", 3, 1});
}

TEST_CASE("source map: a position before all text maps to the first segment") {
  SourceMap map;
  map.add(2, 3, {"a.jinja", 7, 1}, true);
  CHECK(map.origin_of(1, 1) == Origin{"a.jinja", 7, 1});
  CHECK(map.origin_of(1) == Origin{"a.jinja", 7, 1});
  CHECK(map.origin_of(2, 5) == Origin{"a.jinja", 7, 3});
}

TEST_CASE("source map: a second origin of one position replaces the first") {
  SourceMap map;
  map.add(1, 1, {"a", 1, 1}, true);
  map.add(1, 1, {"b", 5, 5}, true);
  CHECK(map.origin_of(1, 2) == Origin{"b", 5, 6});
}

TEST_CASE("source map: misuse is an error") {
  SourceMap map;
  CHECK(map.empty());
  CHECK_THROWS_AS(map.origin_of(1, 1), tilewright::Error);
  map.add(2, 2, {"a", 1, 1}, true);
  CHECK(!map.empty());
  CHECK_THROWS_AS(map.add(2, 1, {"a", 1, 1}, true), tilewright::Error);
  CHECK_THROWS_AS(map.add(1, 9, {"a", 1, 1}, true), tilewright::Error);
  CHECK_THROWS_AS(map.add(0, 1, {"a", 1, 1}, true), tilewright::Error);
  CHECK_THROWS_AS(map.origin_of(0, 1), tilewright::Error);
  CHECK_THROWS_AS(map.origin_of(1, -1), tilewright::Error);
}
