#pragma once

#include <memory>

#include "c/log_sink.hpp"
#include "c/pool.hpp"

namespace tilewright::capi {

/// The library's options of a program's.
/// @param log, pool set where the program gave them; the attention ends before them
/// @throws Error with code usage
AttentionOptions attention_options(const tw_options& options, std::unique_ptr<LogSink>& log,
                                   std::unique_ptr<LentPool>& pool);

}  // namespace tilewright::capi
