#pragma once

#include <cstdint>

#include "c/tilewright.h"
#include "tilewright.hpp"

namespace tilewright::capi {

/// The threads that a program lends by tw_options.
class LentPool final : public Executor {
 public:
  explicit LentPool(const tw_options& options)
      : parallel_for_(options.parallel_for), pool_size_(options.pool_size), pool_(options.pool) {}

  int size() const override { return pool_size_(pool_); }

 private:
  void run_loop(std::int64_t items, LoopBody body) override {
    parallel_for_(pool_, items, body.call, body.context);
  }

  decltype(tw_options::parallel_for) parallel_for_;
  decltype(tw_options::pool_size) pool_size_;
  void* pool_;
};

}  // namespace tilewright::capi
