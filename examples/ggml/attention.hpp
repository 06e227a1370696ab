#pragma once

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>

#include <ggml.h>
#include <tilewright.h>

// The threads on which ggml runs an operator: thread 0 calls the library, the others serve its
// loops until it is done.
struct LentThreads {
  std::mutex mutex;
  std::condition_variable changed;
  void (*body)(void*, int64_t, int32_t);
  void* context;
  int64_t items = 0, next = 0, done = 0;
  int count = 1, left = 0;
  bool over = false;

  static void run_loop(void* pool, int64_t items, void (*body)(void*, int64_t, int32_t),
                       void* context) {
    auto& threads = *static_cast<LentThreads*>(pool);
    std::unique_lock lock(threads.mutex);
    threads.body = body, threads.context = context;
    threads.items = items, threads.next = threads.done = 0;
    threads.changed.notify_all();
    threads.take_items(lock, 0);
    threads.changed.wait(lock, [&] { return threads.done == items; });
  }

  void take_items(std::unique_lock<std::mutex>& lock, int thread) {
    while (next < items) {
      const int64_t item = next++;
      lock.unlock();
      body(context, item, thread);
      lock.lock();
      if (++done == items) changed.notify_all();
    }
  }

  void serve(int thread) {
    std::unique_lock lock(mutex);
    for (; !over; changed.wait(lock, [&] { return over || next < items; }))
      take_items(lock, thread);
    ++left;
    changed.notify_all();
  }

  void end() {
    std::unique_lock lock(mutex);
    over = true;
    changed.notify_all();
    changed.wait(lock, [&] { return left == count - 1; });
    over = false, left = 0;
  }
};

// A spec with a mask_mod as an operator of graphs on CPUs. It serves any number of nodes of a
// graph, which ggml computes one after another. Graphs that are computed at the same time need an
// Attention each.
class Attention {
 public:
  explicit Attention(const char* spec) {
    const auto count = [](void* pool) -> int32_t { return static_cast<LentThreads*>(pool)->count; };
    const tw_options options = {.struct_size = sizeof options,
                                .device = "cpu",
                                .parallel_for = LentThreads::run_loop,
                                .pool_size = count,
                                .pool = &threads_};
    tw_error* failure = nullptr;
    tw_attention_create(spec, &options, &attention_, &failure);
    keep(failure);
    if (!attention_) throw std::runtime_error(error);
  }
  Attention(const Attention&) = delete;
  ~Attention() { tw_attention_destroy(attention_); }

  // As ggml_flash_attn_ext: q [head_dim, rows, heads, batch], k and v likewise, the result
  // [v_head_dim, heads, rows, batch]. The last row of q stands at the last position of k.
  ggml_tensor* operator()(ggml_context* context, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v) {
    ggml_tensor* inputs[] = {q, k, v};
    const auto compute = [](ggml_tensor* out, int thread, int threads, void* self) {
      auto& attention = *static_cast<Attention*>(self);
      if (thread != 0) return attention.threads_.serve(thread);
      attention.threads_.count = threads;
      attention.forward(out, out->src[0], out->src[1], out->src[2]);
      attention.threads_.end();
    };
    return ggml_custom_4d(context, q->type, v->ne[0], q->ne[2], q->ne[1], q->ne[3], inputs, 3,
                          compute, GGML_N_TASKS_MAX, this);
  }

  std::string error;  // the first report, since an operator of ggml cannot fail

 private:
  void forward(const ggml_tensor* out, const ggml_tensor* q, const ggml_tensor* k,
               const ggml_tensor* v) {
    const tw_shape shape = {sizeof shape,        q->ne[3], q->ne[2], k->ne[2], q->ne[1], k->ne[1],
                            k->ne[1] - q->ne[1], 0};
    tw_mask* mask = nullptr;
    tw_error* failure = nullptr;
    tw_mask_create(attention_, &shape, nullptr, nullptr, &mask, &failure);
    const tw_call call = {.struct_size = sizeof call,
                          .q = view(q, 2, 1),
                          .k = view(k, 2, 1),
                          .v = view(v, 2, 1),
                          .out = view(out, 1, 2),
                          .mask = mask,
                          .q_offset = shape.q_offset};
    if (mask) tw_forward(attention_, &call, &failure);
    tw_mask_destroy(mask);
    keep(failure);
  }

  // [batch, heads, rows, head_dim] of a tensor that has heads and rows in these dimensions.
  static tw_tensor view(const ggml_tensor* x, int heads, int rows) {
    tw_tensor tensor = {.data = x->data,
                        .rank = 4,
                        .dtype = x->type == GGML_TYPE_F32   ? TW_F32
                                 : x->type == GGML_TYPE_F16 ? TW_F16
                                                            : -1,
                        .device_type = TW_CPU};
    for (int to = 0; const int from : {3, heads, rows, 0}) {
      tensor.shape[to] = x->ne[from];
      tensor.strides[to++] = x->nb[from] / ggml_type_size(x->type);
    }
    return tensor;
  }

  void keep(tw_error* failure) {
    if (failure && error.empty()) error = tw_error_report(failure);
    tw_error_destroy(failure);
  }

  LentThreads threads_;
  tw_attention* attention_ = nullptr;
};
