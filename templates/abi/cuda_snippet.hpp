#pragma once

// What a snippet's kernel on a GPU reads of a call. The runtime includes the files of abi/ and rendered
// kernels contain them, so the two cannot drift apart. They include nothing else: compile time is a
// feature. All pointers are device pointers.

namespace tilewright::abi::cuda {

constexpr int kMaxBufferRank = 5;
constexpr int kUsualBufferRank = 4;

/// A tensor that a snippet reads. A dimension of size 1 that is broadcast has stride 0. Smaller
/// than the CPU's, as arguments travel with every launch.
template <int kRank>
struct BufferArgument {
  const void* data;
  long long stride[kRank];      // in elements; the last dimension's is below 2^31
  int size[kRank + kRank % 2];  // extent of each dimension
};

/// A run-time number that a snippet reads; the spec says which member is meant.
union ScalarArgument {
  float as_f32;
  int as_i32;
};

/// What every kernel that evaluates a snippet needs; a separate kernel parameter. It carries the
/// buffers and scalars by value, so a launch copies nothing else to the device. A spec without
/// buffers (scalars) has one unused entry, as C++ has no empty arrays.
/// kRank: kMaxBufferRank where a buffer of the spec has as many dimensions, else kUsualBufferRank.
template <int kBuffers, int kScalars, int kRank = kUsualBufferRank>
struct SnippetArguments {
  int batch;
  int num_q_heads;
  int num_kv_heads;
  int q_len;
  int kv_len;
  int q_offset;                                         // q_idx = row + q_offset
  int kv_offset;                                        // kv_idx = column + kv_offset
  int q_token_offset;   // of a sequence of a packed call: q_token = q_idx + q_token_offset
  int kv_token_offset;  // likewise
  int reserved;         // 0
  BufferArgument<kRank> buffers[kBuffers > 0 ? kBuffers : 1];  // in the order of their names
  ScalarArgument scalars[kScalars > 0 ? kScalars : 1];  // in the order of their names
};

// The runtime knows the numbers of buffers and scalars only at run time and lays SnippetArguments
// out by these.
constexpr long long kSnippetHeaderBytes = 40;
constexpr long long buffer_argument_bytes(int rank) {
  return static_cast<long long>(rank == kUsualBufferRank ? sizeof(BufferArgument<kUsualBufferRank>)
                                                         : sizeof(BufferArgument<kMaxBufferRank>));
}
constexpr long long scalar_offset(int buffers, int rank = kUsualBufferRank) {
  return kSnippetHeaderBytes + (buffers > 0 ? buffers : 1) * buffer_argument_bytes(rank);
}
constexpr long long snippet_argument_bytes(int buffers, int scalars,
                                           int rank = kUsualBufferRank) {
  const long long end = scalar_offset(buffers, rank) + (scalars > 0 ? scalars : 1) *
                                                     static_cast<long long>(sizeof(ScalarArgument));
  return (end + 7) / 8 * 8;
}
static_assert(sizeof(SnippetArguments<0, 0>) == snippet_argument_bytes(0, 0));
static_assert(sizeof(SnippetArguments<1, 2>) == snippet_argument_bytes(1, 2));
static_assert(sizeof(SnippetArguments<3, 1>) == snippet_argument_bytes(3, 1));
static_assert(sizeof(SnippetArguments<3, 1, 5>) == snippet_argument_bytes(3, 1, 5));

}  // namespace tilewright::abi::cuda
