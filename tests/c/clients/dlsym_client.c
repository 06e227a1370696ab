/* dlsym_client LIBRARY [NEIGHBOUR]: README's example with every function found at run time, as bindings of other languages
 * do it. NEIGHBOUR is loaded before, for all to see. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tilewright.h>

#define FUNCTIONS(F) \
  F(tw_abi_version) F(tw_version) F(tw_tensor_contiguous) F(tw_attention_create) F(tw_attention_destroy) \
  F(tw_mask_create) F(tw_mask_describe) F(tw_mask_destroy) F(tw_forward) F(tw_error_report) F(tw_error_destroy)

#define DECLARE(name) static __typeof__(name) *p_##name;
FUNCTIONS(DECLARE)

static void *library;

static void *find(const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol) fprintf(stderr, "%s\n", dlerror()), exit(1);
  return symbol;
}

static void load(const char *path) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fprintf(stderr, "%s\n", dlerror()), exit(1);
  void *symbol;
#define FIND(name) symbol = find(#name), memcpy(&p_##name, &symbol, sizeof symbol);
  FUNCTIONS(FIND)
}

static void check(tw_status status, tw_error *error) {
  if (status == TW_OK) return;
  fprintf(stderr, "%s\n", p_tw_error_report(error));
  exit(1);
}

static void run(void) {
  enum { kElements = 8 * 512 * 64 };
  const int64_t sizes[] = {1, 8, 512, 64};
  tw_options options = {.struct_size = sizeof options, .device = "cpu"};
  tw_shape shape = {.struct_size = sizeof shape, .batch = 1, .num_q_heads = 8, .num_kv_heads = 8, .q_len = 512, .kv_len = 512};
  tw_mask_info info = {.struct_size = sizeof info};
  tw_attention *attention;
  tw_mask *mask;
  tw_error *error;
  float *q = malloc(kElements * sizeof *q), *out = malloc(kElements * sizeof *out);
  for (int i = 0; i < kElements; ++i) q[i] = 0.5f;
  check(p_tw_attention_create("{\"dtype\": \"f32\", \"head_dim\": 64, \"mask_mod\": \"q_idx >= kv_idx\"}", &options,
                              &attention, &error),
        error);
  check(p_tw_mask_create(attention, &shape, NULL, NULL, &mask, &error), error);
  check(p_tw_mask_describe(mask, &info, &error), error);
  tw_call call = {.struct_size = sizeof call};
  call.q = call.k = call.v = p_tw_tensor_contiguous(q, TW_F32, 4, sizes);
  call.out = p_tw_tensor_contiguous(out, TW_F32, 4, sizes);
  call.mask = mask;
  check(p_tw_forward(attention, &call, &error), error);
  printf("out[0] = %g, %.0f %% of the tiles visited\n", out[0], 100 * info.density);
  p_tw_mask_destroy(mask);
  p_tw_attention_destroy(attention);
  free(q);
  free(out);
}

int main(int count, char **arguments) {
  if (count > 2 && !dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL)) return fprintf(stderr, "%s\n", dlerror()), 1;
  load(arguments[1]);
  if (p_tw_abi_version() != TW_ABI_VERSION) return 1;
  run();
  dlclose(library);
  return 0;
}
