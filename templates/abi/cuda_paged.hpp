#pragma once

#include "cuda_snippet.hpp"
#include "pages.hpp"

// What a snippet's kernel on a GPU reads of a call whose k and v are in pages.

namespace tilewright::abi::cuda {

/// As SnippetArguments. The runtime lays `pages` out after them, at snippet_argument_bytes().
template <int kBuffers, int kScalars, int kRank = kUsualBufferRank>
struct PagedSnippetArguments : SnippetArguments<kBuffers, kScalars, kRank> {
  SequencePages pages;  // of all sequences; while a plan is made, of one
};
static_assert(sizeof(PagedSnippetArguments<1, 2>) ==
              snippet_argument_bytes(1, 2) + static_cast<long long>(sizeof(SequencePages)));
static_assert(sizeof(PagedSnippetArguments<3, 1, 5>) ==
              snippet_argument_bytes(3, 1, 5) + static_cast<long long>(sizeof(SequencePages)));

}  // namespace tilewright::abi::cuda
