#include <stdio.h>
#include <stdlib.h>

#include <tilewright.h>

static int failed(tw_error *error) {
  if (error) fprintf(stderr, "%s\n", tw_error_report(error));
  tw_error_destroy(error);
  return error != NULL;
}

int main(void) {
  const char *spec = "{\"dtype\": \"f32\", \"head_dim\": 64, \"mask_mod\": \"q_idx >= kv_idx\"}";
  const tw_options options = {.struct_size = sizeof options, .device = "cpu"};
  const tw_shape shape = {.struct_size = sizeof shape, .batch = 1, .num_q_heads = 8, .num_kv_heads = 8, .q_len = 512, .kv_len = 512};
  const int64_t sizes[] = {1, 8, 512, 64}, elements = 8 * 512 * 64;
  float *q = malloc(elements * sizeof *q), *out = malloc(elements * sizeof *out);
  for (int64_t i = 0; i < elements; ++i) q[i] = 0.5f;
  const tw_tensor input = tw_tensor_contiguous(q, TW_F32, 4, sizes);

  tw_attention *attention = NULL;
  tw_mask *mask = NULL;
  tw_mask_info info = {.struct_size = sizeof info};
  tw_error *error = NULL;
  tw_attention_create(spec, &options, &attention, &error);
  if (!error) tw_mask_create(attention, &shape, NULL, NULL, &mask, &error);
  if (!error) tw_mask_describe(mask, &info, &error);
  const tw_call call = {.struct_size = sizeof call, .q = input, .k = input, .v = input,
                        .out = tw_tensor_contiguous(out, TW_F32, 4, sizes), .mask = mask};
  if (!error) tw_forward(attention, &call, &error);
  const int status = failed(error);
  if (!status) printf("out[0] = %g, %.0f %% of the tiles visited\n", out[0], 100 * info.density);
  tw_mask_destroy(mask);
  tw_attention_destroy(attention);
  free(q);
  free(out);
  return status;
}
