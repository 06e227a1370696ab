#pragma once

#include "cuda/attention/strided_rows.hpp"

// An element of a page or of a new row, whose types may differ.

namespace tw_kernel {

template <typename Paged, typename New>
struct EitherSource {
  const Paged* paged;
  const New* fresh;  // null: of a page
  bool is_present;
};

template <typename Paged, typename New>
struct RowOf {
  using Source = EitherSource<Paged, New>;
  static __forceinline__ Source of_pages(const RowSource<Paged>& source) {
    return {source.data, nullptr, source.is_present};
  }
  static __forceinline__ Source of_new(const New* fresh, const Paged* any) {
    return {any, fresh, true};
  }
  static __forceinline__ Source absent(const Paged* any) { return {any, nullptr, false}; }
};

template <typename Element>
struct RowOf<Element, Element> {
  using Source = RowSource<Element>;
  static __forceinline__ Source of_pages(const Source& source) { return source; }
  static __forceinline__ Source of_new(const Element* fresh, const Element*) {
    return {fresh, true};
  }
  static __forceinline__ Source absent(const Element* any) { return {any, false}; }
};

}  // namespace tw_kernel
