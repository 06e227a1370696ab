/* The C ABI of Tilewright: attention kernels from two C++ snippets. Link libtilewright.so.1 (CMake: tilewright::c;
 * pkg-config: tilewright-c). docs/c.md is the page to read first.
 *
 * Calls     Every function that can fail returns a tw_status and takes a tw_error ** last, which may be NULL. Where
 *           it is not, *error is NULL after success and an error to destroy after failure. What a function makes
 *           (its last pointer before `error`) is NULL after failure. No exception leaves the library: one that a
 *           C++ callback throws becomes TW_INTERNAL, or is dropped if the callback is a log. The library never prints
 *           and never exits.
 * Structs   Where a struct begins with struct_size, set it to sizeof the struct and what you do not need to zero:
 *           zero is the default of all options. A later header adds fields at the end. The library takes the sizes of all earlier
 *           headers and refuses a larger one with TW_USAGE.
 * Handles   Opaque; made and destroyed by the library, in any order. Destroying NULL does nothing. A handle must not
 *           be destroyed while a call uses it, on a GPU also its work in the stream or in a graph. The library never owns memory of tensors: buffers outlive the
 *           tw_bindings that name them, and all tensors outlive the call, on a GPU also its work in the stream.
 * Threads   Every function may be called from many threads at once, with the same handles, as long as no thread
 *           rebuilds or destroys what another one uses. */
#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#else
#define TW_API
#endif

/* Grows when functions or fields are added; the library's SONAME grows when anything else changes. */
#define TW_ABI_VERSION 3

typedef struct tw_attention tw_attention; /* one attention variant, its kernels loaded */
typedef struct tw_bindings tw_bindings;   /* buffers and scalars for a spec's snippets */
typedef struct tw_mask tw_mask;           /* a block mask: which tiles a call visits */
typedef struct tw_plan tw_plan;           /* the work of packed calls */
typedef struct tw_communicator tw_communicator;         /* ranks that exchange tensors */
typedef struct tw_context_parallel tw_context_parallel; /* one attention variant over a sequence that ranks share */
typedef struct tw_context_plan tw_context_plan;         /* who computes and sends what */
typedef struct tw_error tw_error;

/* From 1 to 15 what was given is wrong; from 16 on the machine lacks or refuses something. */
typedef enum tw_status {
  TW_OK = 0,
  TW_USAGE = 1,      /* arguments that make no sense */
  TW_SPEC = 2,       /* the spec is not JSON, has a wrong key or value, or contradicts itself */
  TW_SNIPPET = 3,    /* score_mod or mask_mod is refused, or does not compile */
  TW_TEMPLATE = 4,   /* a template is wrong (only with TILEWRIGHT_TEMPLATES) */
  TW_TENSOR = 5,     /* a tensor's rank, shape, dtype, strides or device do not fit */
  TW_BLOCK_MASK = 6, /* a block mask does not fit the call, or its lists are wrong */
  TW_FILE = 7,       /* an input file is unreadable, truncated or lies about its contents */
  TW_DEVICE = 16,    /* no such device, or the device refuses */
  TW_COMPILER = 17,  /* no compiler, or it failed for a reason that is not the snippet's */
  TW_MISSING_KERNEL = 18, /* not precompiled, and compiling is forbidden */
  TW_MEMORY = 19,    /* an allocation failed */
  TW_DISK = 20,      /* a file could not be written */
  TW_INTERNAL = 21   /* a defect of tilewright, or an exception of a callback */
} tw_status;

/* tw_tensor.dtype */
enum {
  TW_F32 = 0,
  TW_F16 = 1,
  TW_BF16 = 2,
  TW_I32 = 3,
  TW_I64 = 4,
  TW_U8 = 5,
  TW_BOOL = 6,
  TW_F8E4M3 = 7, /* without infinity, up to 448: OCP's E4M3 */
  TW_F8E5M2 = 8,
  TW_I8 = 9,
  TW_F64 = 10, /* this and the ones below: of buffers alone */
  TW_I16 = 11,
  TW_U16 = 12,
  TW_U32 = 13
};

/* tw_tensor.device_type: DLPack's numbers. */
enum { TW_ANY_DEVICE = 0, TW_CPU = 1, TW_CUDA = 2, TW_CUDA_HOST = 3, TW_CUDA_MANAGED = 13 };

/* A tensor in the caller's memory. Its layout is final. Where a tensor is optional, all zeros mean that it is left out.
 * With a device_type other than TW_ANY_DEVICE, the library refuses memory that its device does not read. */
typedef struct tw_tensor {
  void *data;
  int64_t shape[5];
  int64_t strides[5]; /* in elements; 0 broadcasts */
  int32_t rank;       /* 0 to 5: entries of shape and strides that count */
  int32_t dtype;
  int32_t device_type;
  int32_t device_id;
} tw_tensor;

/* A dense row-major tensor: the last stride is 1. A rank above 5 is kept and refused by the call that gets the tensor. */
TW_API tw_tensor tw_tensor_contiguous(void *data, int32_t dtype, int32_t rank, const int64_t *shape);

/* ---- library -------------------------------------------------------------------------------------------------- */

/* TW_ABI_VERSION of the loaded library. A program may use every function and field of that version. */
TW_API int32_t tw_abi_version(void);

/* The library's version, "0.2.0". */
TW_API const char *tw_version(void);

/* ---- errors --------------------------------------------------------------------------------------------------- */

/* All texts belong to the error, and none is NULL. An error is immutable: many threads may read it. */

/* The status of the call that failed. */
TW_API tw_status tw_error_status(const tw_error *error);
/* The whole report, ready to print: code, message, place with the line and a caret, hint, notes. */
TW_API const char *tw_error_report(const tw_error *error);
/* One sentence: what is wrong, with the value. */
TW_API const char *tw_error_message(const tw_error *error);
/* What to do next; "" where nothing useful can be said. */
TW_API const char *tw_error_hint(const tw_error *error);
/* The file or text that the error is in: a path, "score_mod", "mask_mod" or "spec"; "" if it is in none. */
TW_API const char *tw_error_file(const tw_error *error);
/* From 1; 0: the whole file. */
TW_API int32_t tw_error_line(const tw_error *error);
/* From 1, in bytes; 0: the whole line. */
TW_API int32_t tw_error_column(const tw_error *error);
/* Further facts: names available, a compiler's log. */
TW_API size_t tw_error_note_count(const tw_error *error);
/* "" where `note` is out of range. */
TW_API const char *tw_error_note(const tw_error *error, size_t note);
TW_API void tw_error_destroy(tw_error *error);

/* "ok", "usage", "spec", "snippet", "kernel_template", "tensor", ...; "unknown" for any other number. Static. */
TW_API const char *tw_status_name(tw_status status);

/* ---- attention ------------------------------------------------------------------------------------------------ */

/* tw_options.jit */
enum { TW_JIT_DEFAULT = 0 /* as TILEWRIGHT_JIT says, else on */, TW_JIT_ON = 1, TW_JIT_OFF = -1 };

/* severity of tw_options.log */
enum { TW_NOTE = 0, TW_WARNING = 1 };

/* Where an attention runs and what it works with. */
typedef struct tw_options {
  size_t struct_size;
  const char *device;    /* "auto" (also NULL: a GPU where there is one, else the CPU), "cpu", "cuda", "cuda:N" */
  const char *cache_dir; /* the folder of compiled kernels; NULL: as TILEWRIGHT_CACHE says */
  int32_t jit;           /* whether kernels may be compiled: TW_JIT_* */
  int32_t takes_block_mask; /* nonzero: calls of a spec without mask_mod bring masks made from lists */
  /* Receives warnings; NULL drops them. Called from any thread, with no lock held, so it may call the library. No
   * call of it runs when tw_attention_destroy() has returned, except the call that destroys the attention itself. */
  void (*log)(void *log_user, int32_t severity, const char *message);
  void *log_user;
  /* Threads of the program for calls on a CPU, both or neither; NULL: the library's own pool. parallel_for() calls
   * body(context, item, worker) once for each item from 0 to items - 1, in any order, with a worker from 0 to
   * pool_size() - 1 that no other running body of this loop has, and returns when all bodies have returned. Where items
   * were left out, the call fails with TW_USAGE. Both run on the thread that called the library. pool_size() is asked
   * before each loop, and may answer otherwise each time. Calls on several threads run their loops at the same time.
   * The pool outlives the attention. */
  void (*parallel_for)(void *pool, int64_t items, void (*body)(void *context, int64_t item, int32_t worker),
                       void *context);
  int32_t (*pool_size)(void *pool);
  void *pool;
  int32_t masks_only;       /* nonzero: makes the kernels of block masks alone; tw_forward() is refused */
  int32_t positions;        /* nonzero: plans may be given positions with a list for each head */
  int32_t merge;            /* nonzero: makes the kernel of tw_merge() too */
  int32_t append;           /* nonzero: makes the kernel of tw_append() too, for a spec with paged k and v */
  int32_t decode;           /* nonzero: on GPUs, makes kernels for dense calls with few rows or few q tiles too */
  int32_t quantise;         /* nonzero: makes the kernel of tw_quantise() too, for a spec with k and v of one byte */
} tw_options;

/* Checks the spec (docs/spec.md), renders its kernels, compiles those that no cache holds, and loads them.
 * @param options  NULL: defaults
 * TW_SPEC, TW_SNIPPET with a place in spec_json; TW_DEVICE, TW_COMPILER, TW_MISSING_KERNEL, TW_USAGE, TW_MEMORY */
TW_API tw_status tw_attention_create(const char *spec_json, const tw_options *options, tw_attention **attention,
                                     tw_error **error);
TW_API void tw_attention_destroy(tw_attention *attention);

/* Texts: *size is the buffer's size on entry, and the text's size with its final zero on return. With buffer NULL only
 * *size is written. A buffer that is too small gets no text: TW_USAGE. */

/* The spec as canonical JSON: docs/spec.md's order of keys, defaults left out. */
TW_API tw_status tw_attention_spec(const tw_attention *attention, char *buffer, size_t *size);
/* 1 if the spec has a mask_mod, so that each dense call needs a tw_mask; else 0, also for NULL. */
TW_API int32_t tw_attention_has_mask_mod(const tw_attention *attention);
/* "cpu" or "cuda:0". */
TW_API tw_status tw_attention_device(const tw_attention *attention, char *buffer, size_t *size);
/* What its kernels were compiled for: "cpu", "cpu-x86-64-v3", "sm_90a", ... */
TW_API tw_status tw_attention_target(const tw_attention *attention, char *buffer, size_t *size);
/* How each kernel came to be, as JSON: [{kernel, source ("memory", "disk", "bundle", "remote", "built"), render_ms,
 * compile_ms, load_ms, bytes, names}]. */
TW_API tw_status tw_attention_builds(const tw_attention *attention, char *buffer, size_t *size);

/* Makes ready for calls from the calling thread's CUDA context; a first forward there does the same. Does nothing on a
 * CPU. TW_DEVICE */
TW_API tw_status tw_attention_prepare(const tw_attention *attention, tw_error **error);

/* The sizes of a dense call, whose tensors are (layout "bhsd")
 *   q, out [batch, num_q_heads, q_len, head_dim; v_head_dim in out]
 *   k, v   [batch or 1, num_kv_heads, kv_len, head_dim; v_head_dim in v]
 *   lse    [batch, num_q_heads, q_len] f32, contiguous
 * In "bshd" the two middle dimensions of q, k, v and out change places. */
typedef struct tw_shape {
  size_t struct_size;
  int64_t batch;
  int64_t num_q_heads; /* a multiple of num_kv_heads */
  int64_t num_kv_heads;
  int64_t q_len;
  int64_t kv_len;
  int64_t q_offset;  /* q_idx = row + q_offset */
  int64_t kv_offset; /* kv_idx = column + kv_offset */
} tw_shape;

/* The sizes of packed calls that share a plan (docs/packed.md):
 *   q, out [total_q, num_q_heads, head_dim; v_head_dim in out]
 *   k, v   [total_kv, num_kv_heads, head_dim; v_head_dim in v]
 *   lse    [num_q_heads, total_q] f32, contiguous */
typedef struct tw_packed_shape {
  size_t struct_size;
  int64_t batch; /* sequences */
  int64_t num_q_heads;
  int64_t num_kv_heads;
  int64_t total_q;
  int64_t total_kv;
  int64_t max_q_len;  /* a bound of each sequence's rows of q; 0: total_q. A longer sequence is cut and reported. */
  int64_t max_kv_len; /* a bound of each sequence's columns; 0: total_kv. A longer sequence is cut and reported. */
  int64_t page_size;  /* rows of a page of k and v, total_kv being pages * page_size; 0: k and v are packed */
} tw_packed_shape;

/* What a call writes, for programs that allocate it: dtype, rank, shape and dense strides, data NULL.
 * @param lse  may be NULL; all zeros where the spec's outputs do not name it
 * TW_TENSOR for a wrong shape; TW_USAGE for the other kind of layout */
TW_API tw_status tw_output_shape(const tw_attention *attention, const tw_shape *shape, tw_tensor *out, tw_tensor *lse,
                                 tw_error **error);
TW_API tw_status tw_packed_output_shape(const tw_attention *attention, const tw_packed_shape *shape, tw_tensor *out,
                                        tw_tensor *lse, tw_error **error);

/* Bytes of device memory with which a dense call of this shape may be split over its columns (tw_call.workspace): 0 on
 * a CPU, without tw_options.decode, and where a split gains nothing. TW_TENSOR */
TW_API tw_status tw_workspace_size(const tw_attention *attention, const tw_shape *shape, int64_t *bytes,
                                   tw_error **error);

/* ---- bindings ------------------------------------------------------------------------------------------------- */

typedef struct tw_buffer {
  const char *name;
  tw_tensor tensor; /* dtype and shape as the spec declares them */
} tw_buffer;

typedef struct tw_scalar {
  const char *name;
  double value;
} tw_scalar;

/* Resolves buffers and scalars against the spec, once for many calls. The names need not outlive the call; the buffers'
 * memory must outlive the bindings. Scalars that are left out take the spec's default.
 * TW_TENSOR: a buffer that is missing, unknown, or does not fit; TW_USAGE: a scalar likewise, or a name given twice */
TW_API tw_status tw_bind(const tw_attention *attention, const tw_buffer *buffers, size_t buffer_count,
                         const tw_scalar *scalars, size_t scalar_count, tw_bindings **bindings, tw_error **error);
TW_API void tw_bindings_destroy(tw_bindings *bindings);

/* ---- block masks of dense calls ------------------------------------------------------------------------------- */

typedef struct tw_mask_options {
  size_t struct_size;
  void *stream;         /* CUstream or cudaStream_t; NULL: the default stream. A CPU ignores it. */
  int64_t capacity;     /* tiles, partial and full, that there is room for, if has_capacity is nonzero */
  int32_t has_capacity; /* then a GPU is not waited for, and tw_mask_rebuild() is possible there */
  int32_t transposed;   /* nonzero: makes the lists by columns on the GPU too */
} tw_mask_options;

/* Lists the tiles of q_len x kv_len that mask_mod keeps something of. On a GPU it waits once, unless there is a
 * capacity; a forward in another stream must be ordered after it by the caller.
 * @param bindings  of the call; NULL: no buffers, and every scalar at its default
 * @param options   NULL: defaults
 * TW_USAGE where the spec has no mask_mod or is packed; TW_TENSOR */
TW_API tw_status tw_mask_create(const tw_attention *attention, const tw_shape *shape, const tw_bindings *bindings,
                                const tw_mask_options *options, tw_mask **mask, tw_error **error);

/* Lists the tiles anew after a change of the buffers' contents, for the same shape, offsets and scalars. On a GPU the
 * mask must have a capacity; then the call neither waits nor allocates and may be captured in a CUDA graph.
 * TW_BLOCK_MASK for a mask that does not fit, has no capacity, or was made elsewhere */
TW_API tw_status tw_mask_rebuild(const tw_attention *attention, tw_mask *mask, const tw_shape *shape,
                                 const tw_bindings *bindings, void *stream, tw_error **error);

/* A mask from tiles in CSR form, i32 or i64, on the host. Tiles are partial where the spec has a mask_mod, else full.
 * @param crow  [q_blocks + 1], [num_q_heads or 1, q_blocks + 1] or [batch or 1, num_q_heads or 1, q_blocks + 1]
 * @param col   kv blocks, rising in each row: [n], lists one after another, or padded with crow's leading dimensions
 * TW_BLOCK_MASK with the first wrong entry; TW_TENSOR */
TW_API tw_status tw_mask_from_csr(const tw_attention *attention, const tw_shape *shape, const tw_bindings *bindings,
                                  const tw_tensor *crow, const tw_tensor *col, tw_mask **mask, tw_error **error);

/* Lists as FlexAttention's BlockMask holds them, i32 or i64, on the host. */
typedef struct tw_flex_lists {
  size_t struct_size;
  tw_tensor kv_num_blocks;      /* [batch or 1, num_q_heads or 1, q_blocks]: of partial tiles */
  tw_tensor kv_indices;         /* [batch or 1, num_q_heads or 1, q_blocks, width] */
  tw_tensor full_kv_num_blocks; /* of full tiles, likewise; both or neither */
  tw_tensor full_kv_indices;
} tw_flex_lists;

/* A mask from FlexAttention's lists. Which tiles are full is believed. TW_BLOCK_MASK with the first wrong entry */
TW_API tw_status tw_mask_from_flex(const tw_attention *attention, const tw_shape *shape, const tw_bindings *bindings,
                                   const tw_flex_lists *lists, tw_mask **mask, tw_error **error);

/* Lists over positions for tw_plan_options.positions, of a packed spec (docs/packed.md).
 * @param length  positions of the lists, rows and columns
 * @param heads   1, or the calls' num_q_heads */
TW_API tw_status tw_positions_from_csr(const tw_attention *attention, int64_t length, int64_t heads,
                                       const tw_bindings *bindings, const tw_tensor *crow, const tw_tensor *col,
                                       tw_mask **mask, tw_error **error);
TW_API tw_status tw_positions_from_flex(const tw_attention *attention, int64_t length, int64_t heads,
                                        const tw_bindings *bindings, const tw_flex_lists *lists, tw_mask **mask,
                                        tw_error **error);

/* Cuts rows out of a mask, for a call with q_len = rows and q_offset = the mask's + first_row: a decoding step, a chunk.
 * @param kv_len  only the first columns; -1: all of them. TW_USAGE for rows that the mask does not have */
TW_API tw_status tw_mask_slice_rows(const tw_mask *mask, int64_t first_row, int64_t rows, int64_t kv_len,
                                    tw_mask **slice, tw_error **error);

/* What a mask holds. The caller sets struct_size; the library fills the fields that fit in it. */
typedef struct tw_mask_info {
  size_t struct_size;
  int64_t batch; /* 1 where lists are shared */
  int64_t heads;
  int64_t q_blocks;
  int64_t kv_blocks;
  int64_t block[2]; /* sides of a tile: rows of q, columns */
  int64_t partial_tiles;
  int64_t full_tiles;
  int64_t empty_tiles;
  int64_t tiles_evaluated; /* decided element by element */
  int64_t bytes;           /* of the lists */
  double density;          /* share of the tiles that a call visits, 0 to 1 */
} tw_mask_info;

/* Waits for the GPU if the mask has a capacity. TW_USAGE, TW_DEVICE; TW_BLOCK_MASK if the tiles exceed the capacity */
TW_API tw_status tw_mask_describe(const tw_mask *mask, tw_mask_info *info, tw_error **error);

/* Writes a mask as a safetensors file, whole or not at all. TW_DISK */
TW_API tw_status tw_mask_save(const tw_mask *mask, const char *path, tw_error **error);
/* Reads what tw_mask_save() wrote, with all checks. TW_FILE */
TW_API tw_status tw_mask_load(const char *path, tw_mask **mask, tw_error **error);

TW_API void tw_mask_destroy(tw_mask *mask);

/* ---- plans of packed calls ------------------------------------------------------------------------------------ */

/* Where each sequence's rows lie: i32 tensors of rank 1 with stride 1 unless said otherwise, in memory of the device
 * (docs/packed.md, docs/paged.md). */
typedef struct tw_sequences {
  size_t struct_size;
  tw_tensor q_begin;    /* [batch + 1], rising: rows q_begin[b] .. q_begin[b + 1] of q and out */
  tw_tensor kv_begin;   /* [batch + 1] likewise of k and v, or [batch] with kv_len */
  tw_tensor kv_len;     /* [batch], optional: columns from the sequence's first row of k on */
  tw_tensor q_offset;   /* [batch], optional: position of the first row; else the last row has the last column's */
  tw_tensor kv_offset;  /* [batch], optional: position of the first column; else 0 */
  tw_tensor page_table; /* of paged k and v: [batch, columns], or [entries] with page_begin; absent: page b is sequence b's */
  tw_tensor page_begin; /* i32 or i64 [batch] or [batch + 1]: element of page_table where a sequence's pages begin */
} tw_sequences;

typedef struct tw_plan_options {
  size_t struct_size;
  void *workspace; /* the plan's memory, at a multiple of 256, on the device, until the last forward with it is done */
  int64_t workspace_bytes; /* at least tw_plan_workspace_size() */
  void *stream;
  const tw_mask *positions; /* lists over positions in place of what mask_mod decides; NULL: none. The plan shares them. */
  int32_t batch_invariant;  /* nonzero: a row's bits depend on its own sequence alone (docs/packed.md) */
  int32_t count_absent;     /* nonzero: the report counts entries of page_table that are neither a page nor -1 */
  int32_t backward;         /* nonzero, of a spec with gradients: tw_backward may use the plan too */
  int32_t reserved;         /* 0 */
} tw_plan_options;

/* Bytes of device memory that a plan takes, whatever the lengths of its sequences.
 * @param options  positions and batch_invariant count; without positions, or NULL, it is enough for any positions if
 *                 tw_options.positions is set
 * TW_USAGE where the spec is not packed; TW_TENSOR */
TW_API tw_status tw_plan_workspace_size(const tw_attention *attention, const tw_packed_shape *shape,
                                        const tw_plan_options *options, int64_t *bytes, tw_error **error);

/* Plans packed calls: reads and clamps the sequences' lengths and decides which tiles are visited. On a GPU it neither
 * waits nor allocates and may be captured in a CUDA graph. The sequences' tensors are read again by each rebuild.
 * TW_USAGE, TW_TENSOR, TW_BLOCK_MASK */
TW_API tw_status tw_plan_create(const tw_attention *attention, const tw_packed_shape *shape,
                                const tw_sequences *sequences, const tw_bindings *bindings,
                                const tw_plan_options *options, tw_plan **plan, tw_error **error);

/* Plans the next step, after the contents of the sequences' tensors or of buffers, or scalars, have changed.
 * TW_USAGE for a plan of another attention; TW_BLOCK_MASK */
TW_API tw_status tw_plan_rebuild(const tw_attention *attention, tw_plan *plan, const tw_bindings *bindings,
                                 void *stream, tw_error **error);

/* tw_report.kind */
enum {
  TW_NOTHING_CLAMPED = -1,
  TW_Q_BEGIN = 0,
  TW_KV_BEGIN = 1,
  TW_PAGE_BEGIN = 2,
  TW_KV_LEN = 3,
  TW_PAGE_TABLE = 4,
  TW_Q_OFFSET = 5,
  TW_KV_OFFSET = 6,
  TW_POSITION_ROWS = 7,
  TW_POSITION_COLUMNS = 8,
  TW_UNSORTED = 9, /* an element of a buffer that the spec promises to be sorted */
  TW_Q_LEN = 10    /* more rows of q than max_q_len; place is the sequence */
};

/* What was wrong with the contents of a plan's tensors, and of buffers that are promised to be sorted. Kernels clamp such
 * values. The caller sets struct_size. */
typedef struct tw_report {
  size_t struct_size;
  int64_t count;          /* values that were clamped, sequences longer than their lists, unsorted elements */
  int64_t sequence;       /* of the first one; -1 if unsorted */
  int64_t place;          /* of the value in its tensor, row by row */
  int64_t value;
  int64_t limit;          /* that the value exceeds; if unsorted, the element before */
  int64_t unplanned_rows; /* rows of q after the last sequence, which is allowed */
  int64_t unsorted;       /* of count: unsorted elements. Such a plan may keep wrong tiles. */
  int32_t kind;           /* of the first one, or TW_NOTHING_CLAMPED */
} tw_report;

/* Waits for the last build in its stream, and reads what it reported. TW_DEVICE */
TW_API tw_status tw_plan_report(const tw_plan *plan, tw_report *report, tw_error **error);
/* The same in words: "kv_len[2] is 5000, but there is room for 4096 (3 values were clamped)"; "" where count is 0. A
 * text as tw_attention_spec()'s. */
TW_API tw_status tw_plan_report_text(const tw_plan *plan, char *buffer, size_t *size);

TW_API void tw_plan_destroy(tw_plan *plan);

/* ---- forward -------------------------------------------------------------------------------------------------- */

/* One call. Shapes as in tw_shape or tw_packed_shape, dtypes as in the spec. Any strides with a contiguous last
 * dimension; 0 broadcasts q, k and v. No byte of out or lse belongs to another tensor, but out may be q itself. */
typedef struct tw_call {
  size_t struct_size;
  tw_tensor q;
  tw_tensor k;
  tw_tensor v;
  tw_tensor out;
  tw_tensor lse;               /* where the spec's outputs name it, else all zeros */
  const tw_mask *mask;         /* of a dense spec with mask_mod (or with tw_options.takes_block_mask) */
  const tw_plan *plan;         /* of a packed spec */
  const tw_bindings *bindings; /* NULL: no buffers, and every scalar at its default */
  int64_t q_offset;            /* of dense calls: q_idx = row + q_offset */
  int64_t kv_offset;
  double scale; /* if has_scale is nonzero; else the spec's */
  int32_t has_scale;
  int32_t reserved;        /* 0 */
  void *stream;            /* CUstream or cudaStream_t; NULL: the default stream. A CPU ignores it. */
  void *workspace;         /* of a dense call: tw_workspace_size() bytes of device memory at a multiple of 256, zeroed
                            * once; one for each stream. NULL: the call is not split */
  int64_t workspace_bytes;
  tw_tensor k_new; /* of a spec with kv_new: [total_q, num_kv_heads, head_dim] in its dtype; else all zeros */
  tw_tensor v_new; /* likewise, of v_head_dim */
  tw_tensor max_scores; /* where the spec's outputs name it: greatest kept scores, in lse's shape; else all zeros */
  tw_tensor weights; /* likewise: [batch, num_q_heads, q_len, kv_len] in out's dtype */
} tw_call;

/* out = softmax(mask_mod(score_mod(q k^T * scale))) v. Rows with nothing kept give out 0 and lse -inf. Never compiles.
 * On a GPU it neither waits nor allocates, works in the calling thread's CUDA context, and may be captured in a graph.
 * TW_TENSOR; TW_BLOCK_MASK for a mask that is missing or was built from something else; TW_USAGE for a plan likewise */
TW_API tw_status tw_forward(const tw_attention *attention, const tw_call *call, tw_error **error);

/* ---- backward ------------------------------------------------------------------------------------------------- */

/* The tensors of one backward pass; the spec has gradients. Give q, k, v, out, lse, the offsets and the scale of the
 * forward call. dq, dk and dv have the dtypes and shapes of q, k and v. If k or v has batch 1, its gradient is the sum over
 * the batch. Give exactly the gradients that the spec names, and leave the others all zeros. A packed call does not write
 * rows of dq that belong to no sequence, and writes 0 to such rows of dk and dv. */
typedef struct tw_backward_call {
  size_t struct_size;
  tw_tensor q;
  tw_tensor k;
  tw_tensor v;
  tw_tensor out;
  tw_tensor lse;
  tw_tensor dout; /* the gradient of out, in its dtype and shape */
  tw_tensor dlse; /* the gradient of lse, in its shape and contiguous; all zeros: none */
  tw_tensor dq;
  tw_tensor dk;
  tw_tensor dv;
  const tw_buffer *gradients;  /* of buffers and scalars: each of those that the spec's gradients name, f32 or of the buffer's */
  size_t gradient_count;       /* dtype (f32 of an f64 buffer), in the shape that is bound; a scalar's has one element */
  const tw_mask *mask;         /* the forward call's, with tw_mask_options.transposed */
  const tw_bindings *bindings; /* NULL: no buffers, and every scalar at its default */
  int64_t q_offset;
  int64_t kv_offset;
  double scale; /* if has_scale is nonzero; else the spec's */
  int32_t has_scale;
  int32_t deterministic;   /* nonzero: equal bits over runs, also of the gradients of buffers and scalars */
  void *stream;            /* CUstream or cudaStream_t; NULL: the default stream. A CPU ignores it. */
  void *workspace;         /* tw_backward_workspace_size() bytes of device memory; NULL where that is 0 */
  int64_t workspace_bytes;
  const tw_plan *plan; /* of a packed spec: the forward call's, with tw_plan_options.backward */
} tw_backward_call;

/* Bytes of device memory that tw_backward() needs from its caller; 0 on a CPU.
 * TW_USAGE where the spec has no gradients; TW_TENSOR */
TW_API tw_status tw_backward_workspace_size(const tw_attention *attention, const tw_shape *shape,
                                            const tw_bindings *bindings, int32_t deterministic, int64_t *bytes,
                                            tw_error **error);

/* The same of a packed spec. The plan's own memory is tw_plan_workspace_size(). */
TW_API tw_status tw_packed_backward_workspace_size(const tw_attention *attention, const tw_packed_shape *shape,
                                                   const tw_bindings *bindings, int32_t deterministic, int64_t *bytes,
                                                   tw_error **error);

/* Writes the gradients that the spec names. Never compiles. On a GPU it neither waits nor allocates, works in the calling
 * thread's CUDA context, and may be captured in a graph.
 * TW_USAGE where the spec has no gradients; TW_TENSOR, also for too small a workspace; TW_BLOCK_MASK for a mask that is
 * missing, was built from something else, or has no lists by columns; TW_USAGE for a plan
 * likewise, or one that serves forward alone */
TW_API tw_status tw_backward(const tw_attention *attention, const tw_backward_call *call, tw_error **error);

/* ---- new rows of k and v -------------------------------------------------------------------------------------- */

/* Rows of k and v that a step has made, and the pools that they go to. */
typedef struct tw_new_rows {
  size_t struct_size;
  tw_tensor k_new; /* [rows, num_kv_heads, head_dim], in the spec's dtype */
  tw_tensor v_new; /* [rows, num_kv_heads, v_head_dim], likewise */
  tw_tensor slots; /* i32 or i64 [rows]: page * page_size + row of the page; out of range: nowhere. All zeros: the plan says */
  tw_tensor k;     /* pools as tw_call has them */
  tw_tensor v;
  const tw_plan *plan;         /* NULL if rows have slots */
  const tw_bindings *bindings; /* NULL: no buffers, and every scalar at its default */
  void *stream;
} tw_new_rows;

/* Copies each new row to its slot, or without slots the rows of each sequence of the plan, [total_q, ...], to its last q_len
 * columns. Rows without a column, and those of freed and absent pages, are skipped. Needs tw_options.append.
 * TW_USAGE for neither slots nor a plan, or an attention made without append; TW_TENSOR */
TW_API tw_status tw_append(const tw_attention *attention, const tw_new_rows *rows, tw_error **error);

/* ---- tensors of one byte -------------------------------------------------------------------------------------- */

/* Which tensor of a call; says which scale divides it. */
enum { TW_OPERAND_Q = 0, TW_OPERAND_K = 1, TW_OPERAND_V = 2 };

/* A tensor to be stored as numbers of one byte. */
typedef struct tw_quantised {
  size_t struct_size;
  tw_tensor from;         /* f32, f16 or bf16, in the layout and shape of `to` */
  tw_tensor to;           /* q, k or v as tw_call has it */
  int32_t operand;        /* TW_OPERAND_* */
  int32_t reserved;       /* 0 */
  const tw_plan *plan;    /* the rows of its sequences are stored; NULL: all rows */
  const tw_shape *shape;  /* of the dense call that `to` is for; NULL: its scale names what `to` says itself, and offsets are 0 */
  const tw_bindings *bindings; /* NULL: no buffers, and every scalar at its default */
  void *stream;
} tw_quantised;

/* Stores q, k or v as numbers of one byte: value / scale, with the spec's q_scale, k_scale or v_scale, rounded to the nearest
 * (ties to even) and clamped. NaN stays NaN, and becomes 0 in i8. With a plan rows that belong to no sequence, and a step's
 * new rows of a spec with kv_new, stay as they are. Without one a scale in a packed layout names no position, number or
 * length of a sequence, but q_token or kv_token. Needs tw_options.quantise.
 * TW_USAGE for an attention made without it, q of a wider dtype, a plan and a shape, or a scale that names more than the tensor
 * says; TW_TENSOR */
TW_API tw_status tw_quantise(const tw_attention *attention, const tw_quantised *quantised, tw_error **error);

/* ---- parts of the columns ------------------------------------------------------------------------------------- */

/* What a call over some of the columns gave, as tw_call has it. Its layout is final. */
typedef struct tw_part {
  tw_tensor out;
  tw_tensor lse;
} tw_part;

/* Joins calls over different columns of the same rows: lse = log(sum of exp(lse_i)), out = sum of exp(lse_i - lse) out_i,
 * in float32. A part whose lse is -inf does not count; where no part counts, out is 0 and lse -inf. Needs
 * tw_options.merge.
 * @param parts  2 to 16
 * @param out    may be a part's out, but shares no other byte with a part
 * @param lse    NULL: not wanted; may be a part's lse
 * TW_USAGE for another number of parts, or an attention made without merge; TW_TENSOR */
TW_API tw_status tw_merge(const tw_attention *attention, const tw_part *parts, size_t part_count, const tw_tensor *out,
                          const tw_tensor *lse, void *stream, tw_error **error);

/* ---- a sequence that several ranks share (docs/context_parallel.md) --------------------------------------------- */

/* Bytes that a rank sends to a peer, or receives from it. Its layout is final. */
typedef struct tw_message {
  int32_t peer;
  int32_t reserved; /* 0 */
  void *data;       /* on the device of the ranks; a send only reads it */
  int64_t bytes;
} tw_message;

/* A program's own means of exchange, one for each rank, which one thread at a time uses. All ranks make the same calls in
 * the same order. Functions return 0, or a status that ends the call with TW_DEVICE: a peer that is gone must end so
 * within a time-out that the program sets. */
typedef struct tw_transport {
  size_t struct_size;
  int32_t rank; /* from 0 to size - 1 */
  int32_t size;
  void *user; /* outlives the communicator and what is made with it */
  /* Gathers `bytes` of host memory from each rank into `all`, in the order of ranks, and waits for them. */
  int32_t (*all_gather)(void *user, const void *mine, void *all, int64_t bytes);
  /* Sends and receives as one group. Messages between two ranks meet in the order in which both list them. On a GPU it
   * works in the stream's order; on a CPU it returns with the bytes received, and the sent memory may change. */
  int32_t (*exchange)(void *user, const tw_message *sends, size_t send_count, const tw_message *receives,
                      size_t receive_count, void *stream);
  /* Makes connections to the peers of later exchanges; NULL: none are needed */
  int32_t (*connect)(void *user, const int32_t *send_to, size_t send_count, const int32_t *receive_from,
                     size_t receive_count);
  /* Waits for the work of a stream that contains exchanges; NULL: on a CPU there is none */
  int32_t (*wait)(void *user, void *stream);
  const char *(*describe)(void *user, int32_t status); /* words for a status; NULL: its number is said */
} tw_transport;

TW_API tw_status tw_communicator_from_transport(const tw_transport *transport, tw_communicator **communicator,
                                                tw_error **error);

/* Over the program's ncclComm_t, which outlives what is made. libnccl.so.2 is opened at run time. An error with TW_DEVICE
 * aborts the ncclComm_t: the program then neither uses nor destroys it.
 * @param device      "cuda:N" of this rank
 * @param timeout_ms  how long a rank waits for its peers; 0: a minute
 * TW_DEVICE where there is no NCCL */
TW_API tw_status tw_communicator_from_nccl(void *nccl_comm, const char *device, int64_t timeout_ms,
                                           tw_communicator **communicator, tw_error **error);
/* What was made with it keeps what it needs. */
TW_API void tw_communicator_destroy(tw_communicator *communicator);

/* Each rank calls it, with the same dense or packed spec. Compares the spec with all other ranks', and compiles or loads kernels
 * as tw_attention_create().
 * @param options  NULL: defaults; merge is set by itself
 * TW_SPEC, also where a rank has another spec; TW_DEVICE where a rank is gone; TW_USAGE; as tw_attention_create() */
TW_API tw_status tw_context_parallel_create(const char *spec_json, const tw_communicator *communicator,
                                            const tw_options *options, tw_context_parallel **context, tw_error **error);
TW_API void tw_context_parallel_destroy(tw_context_parallel *context);

/* As tw_bind(). Buffers whose dimensions are named q_len and kv_len have the whole sequence's lengths, on each rank.
 * @param whole  the lengths of the whole sequence, batch and heads of this rank's tensors */
TW_API tw_status tw_context_parallel_bind(const tw_context_parallel *context, const tw_shape *whole,
                                          const tw_buffer *buffers, size_t buffer_count, const tw_scalar *scalars,
                                          size_t scalar_count, tw_bindings **bindings, tw_error **error);

/* Packed sequences that ranks share. Every rank knows all lengths. Arrays are read on the host, during the call. */
typedef struct tw_shared_sequences {
  size_t struct_size;
  int64_t batch; /* sequences */
  int64_t num_q_heads; /* of this rank */
  int64_t num_kv_heads;
  const int64_t *q_begin;   /* [batch + 1], from 0: rows q_begin[b] .. q_begin[b + 1] of the whole packed q are b's */
  const int64_t *kv_begin;  /* likewise of k and v; NULL: q_begin */
  const int64_t *q_offset;  /* [batch]: position of the first row; NULL: kv_offset + kv_len - q_len */
  const int64_t *kv_offset; /* [batch]: of the first column; NULL: 0 */
} tw_shared_sequences;

/* The same of a packed spec. */
TW_API tw_status tw_context_parallel_bind_packed(const tw_context_parallel *context, const tw_shared_sequences *whole,
                                                 const tw_buffer *buffers, size_t buffer_count,
                                                 const tw_scalar *scalars, size_t scalar_count, tw_bindings **bindings,
                                                 tw_error **error);

enum {
  TW_SHARDING_AUTOMATIC = 0, /* the one whose busiest rank visits fewer tiles of the mask */
  TW_SHARDING_CONTIGUOUS = 1, /* rank r has the r-th part */
  TW_SHARDING_ZIGZAG = 2      /* of 2 * size parts rank r has the r-th and the r-th from the end */
};

typedef struct tw_context_plan_options {
  size_t struct_size;
  int32_t sharding; /* TW_SHARDING_* */
  int32_t reserved; /* 0 */
  const int64_t *q_lengths;  /* of contiguous shards, one for each rank; NULL: as many tiles each as possible. Both */
  const int64_t *kv_lengths; /* or none */
  void *stream;              /* of a GPU, for the block masks */
} tw_context_plan_options;

/* Compares the shape with all other ranks', builds block masks, chooses the sharding and makes connections. One call at a
 * time uses a plan. The context outlives it.
 * @param bindings  of tw_context_parallel_bind(); NULL: no buffers, and every scalar at its default
 * TW_TENSOR, also where a rank has another shape or other options; TW_DEVICE where a rank is gone */
TW_API tw_status tw_context_plan_create(const tw_context_parallel *context, const tw_shape *whole,
                                        const tw_bindings *bindings, const tw_context_plan_options *options,
                                        tw_context_plan **plan, tw_error **error);

/* The same of a packed spec. The plan owns device memory. */
TW_API tw_status tw_context_plan_create_packed(const tw_context_parallel *context, const tw_shared_sequences *whole,
                                               const tw_bindings *bindings, const tw_context_plan_options *options,
                                               tw_context_plan **plan, tw_error **error);

/* Rows of q and columns of k and v that lie together in the sequence, or the packed tensors, and on one rank. Its layout
 * is final. */
typedef struct tw_shard {
  int64_t q_begin;
  int64_t q_len;
  int64_t kv_begin;
  int64_t kv_len;
} tw_shard;

typedef struct tw_context_plan_info {
  size_t struct_size;
  int32_t sharding;
  int32_t shard_count; /* of this rank: 1, or 2 if zigzag; more of packed sequences: tw_context_plan_shards() */
  tw_shard shards[2];  /* the first two, in the order of the rank's rows */
  int64_t q_rows;      /* rows of this rank's q and out, over all its shards */
  int64_t kv_rows;     /* of this rank's k and v */
  int64_t workspace_bytes;          /* of device memory at a multiple of 256, for forward */
  int64_t backward_workspace_bytes; /* 0 where the spec has no gradients */
  int64_t bytes_sent;               /* of one forward */
  int64_t bytes_received;
  int64_t backward_bytes_sent;
  int64_t backward_bytes_received;
  int64_t bytes_of_full_ring; /* what the rank would send if each rank sent all its k and v to each other one */
  int64_t deterministic_workspace_bytes; /* as backward_workspace_bytes, for deterministic calls */
} tw_context_plan_info;

TW_API tw_status tw_context_plan_describe(const tw_context_parallel *context, const tw_context_plan *plan,
                                          tw_context_plan_info *info, tw_error **error);
/* All shards of this rank, in the order of the rows of its tensors. Of packed sequences in zigzag: the early part of each,
 * then the late part of each, those without rows left out.
 * @param shards  room for *count of them; NULL: their number alone is wanted
 * @param count   becomes their number. TW_USAGE where there is too little room */
TW_API tw_status tw_context_plan_shards(const tw_context_plan *plan, tw_shard *shards, size_t *count, tw_error **error);
TW_API void tw_context_plan_destroy(tw_context_plan *plan);

/* out = attention of this rank's rows over the whole sequence. Each tensor has the rows of this rank's first shard, then
 * the rows of its second one. workspace is the plan's workspace_bytes; mask, plan and offsets of the call are 0. Each
 * rank calls it. On a GPU it neither waits nor allocates.
 * TW_TENSOR, naming the rank; TW_DEVICE where a rank is gone; TW_USAGE */
TW_API tw_status tw_context_parallel_forward(const tw_context_parallel *context, const tw_context_plan *plan,
                                             const tw_call *call, tw_error **error);

/* Writes the gradients that the spec names: of q, k and v for this rank's rows over the whole sequence, of buffers and
 * scalars whole, with equal bits on all ranks. workspace is the plan's backward_workspace_bytes, or, if deterministic is
 * nonzero, its deterministic_workspace_bytes; mask, plan and offsets of the call are 0. Statuses as above. */
TW_API tw_status tw_context_parallel_backward(const tw_context_parallel *context, const tw_context_plan *plan,
                                              const tw_backward_call *call, tw_error **error);

/* Waits for the calls in a stream, at most for the communicator's time-out; does nothing on a CPU. TW_DEVICE */
TW_API tw_status tw_context_parallel_wait(const tw_context_parallel *context, void *stream, tw_error **error);

/* ---- ahead of time -------------------------------------------------------------------------------------------- */

/* One kernel that tw_precompile() has made. Texts hold during the callback. */
typedef struct tw_precompile_step {
  size_t struct_size; /* set by the library */
  const char *spec;   /* its name */
  const char *target;
  const char *kernel;
  const char *source; /* "built" where it was compiled */
  int64_t made;       /* kernels so far, from 1 */
  int64_t total;
} tw_precompile_step;

typedef struct tw_precompile_options {
  size_t struct_size;
  const char *cache_dir; /* as in tw_options */
  const char *key_file;  /* signs the bundle: an Ed25519 key, a PEM file; NULL: not signed */
  int32_t jobs;          /* kernels that are compiled at a time; 0: as many as there are processors */
  /* Called for each kernel, by one thread at a time, with no lock held. A result other than 0 ends tw_precompile() with
   * TW_USAGE. NULL: none. */
  int32_t (*progress)(void *progress_user, const tw_precompile_step *step);
  void *progress_user;
  void (*log)(void *log_user, int32_t severity, const char *message); /* as in tw_options, until the call returns */
  void *log_user;
} tw_precompile_options;

/* Compiles every kernel of a manifest's specs (docs/cache.md) for each target into the cache, and writes a bundle.
 * @param manifest      the manifest's path
 * @param targets       "sm_90a", "cpu", ...; NULL with target_count 0: the manifest's own
 * @param bundle        the file to write; NULL: none, the cache alone is filled
 * TW_FILE, TW_SPEC, TW_SNIPPET, TW_COMPILER, TW_DISK, TW_USAGE */
TW_API tw_status tw_precompile(const char *manifest, const char *const *targets, size_t target_count,
                               const char *bundle, const tw_precompile_options *options, tw_error **error);

/* Which fast paths a spec takes on a target, and why not the others, as JSON: the keys of `tilewright explain --json`
 * (docs/cli.md). Compiles nothing. A text as tw_attention_spec()'s.
 * @param target  NULL: "cpu". TW_SPEC, TW_SNIPPET, TW_USAGE */
TW_API tw_status tw_explain(const char *spec_json, const char *target, char *buffer, size_t *size, tw_error **error);

#ifdef __cplusplus
}
#endif

#endif
