# The headers that are installed. tests/public_headers.cmake holds them to what they include.

# What <tilewright.hpp> includes.
set(TILEWRIGHT_API_HEADERS
  tilewright.hpp
  base/diagnostics.hpp base/error.hpp base/version.hpp
  generator/spec/dtype.hpp generator/spec/manifest.hpp generator/spec/mask_combination.hpp generator/spec/spec.hpp
  generator/spec/spec_json.hpp generator/spec/target.hpp
  runtime/api/attention.hpp runtime/api/backward.hpp runtime/api/bindings.hpp runtime/api/block_mask.hpp runtime/api/communicator.hpp runtime/api/context_parallel.hpp runtime/api/device.hpp runtime/api/executor.hpp runtime/api/explain.hpp
  runtime/api/mask_file.hpp runtime/api/plan.hpp runtime/api/sequences.hpp runtime/api/mask_lists.hpp runtime/api/mask_slice.hpp runtime/api/nccl.hpp runtime/api/precompile.hpp
  runtime/api/safetensors.hpp runtime/api/shape.hpp runtime/api/stream.hpp runtime/api/tensor.hpp
  runtime/api/thread_pool.hpp runtime/api/toolchain.hpp)

# <tilewright/cache/store.hpp> and <tilewright/cache/bundles.hpp>: a cache without kernels.
set(TILEWRIGHT_CACHE_HEADERS
  base/dynamic_library.hpp base/file_io.hpp
  cache/action_result.hpp cache/bundle.hpp cache/bundle_format.hpp cache/bundles.hpp
  cache/circuit_breaker.hpp cache/directory.hpp cache/disk.hpp cache/entry.hpp cache/http.hpp
  cache/key.hpp cache/lock.hpp cache/load_result.hpp cache/memory_table.hpp cache/remote_cache.hpp
  cache/remote_options.hpp cache/sha256.hpp cache/signature.hpp cache/store.hpp)

set(TILEWRIGHT_PUBLIC_HEADERS ${TILEWRIGHT_API_HEADERS} ${TILEWRIGHT_CACHE_HEADERS})
