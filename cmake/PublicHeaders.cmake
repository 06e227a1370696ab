# The headers that are installed. tests/public_headers.cmake holds them to what they include.

# What <tilewright.hpp> includes.
set(TILEWRIGHT_API_HEADERS
  tilewright.hpp
  base/diagnostics.hpp base/error.hpp base/version.hpp
  generator/dtype.hpp generator/manifest.hpp generator/mask_combination.hpp generator/spec.hpp
  generator/spec_json.hpp generator/target.hpp
  runtime/attention.hpp runtime/bindings.hpp runtime/block_mask.hpp runtime/device.hpp
  runtime/mask_file.hpp runtime/mask_lists.hpp runtime/mask_slice.hpp runtime/precompile.hpp
  runtime/safetensors.hpp runtime/shape.hpp runtime/stream.hpp runtime/tensor.hpp
  runtime/thread_pool.hpp runtime/toolchain.hpp)

# <tilewright/cache/store.hpp> and <tilewright/cache/bundles.hpp>: a cache without kernels.
set(TILEWRIGHT_CACHE_HEADERS
  base/dynamic_library.hpp base/file_io.hpp
  cache/action_result.hpp cache/bundle.hpp cache/bundle_format.hpp cache/bundles.hpp
  cache/circuit_breaker.hpp cache/directory.hpp cache/disk.hpp cache/entry.hpp cache/http.hpp
  cache/key.hpp cache/lock.hpp cache/look_up.hpp cache/memory_table.hpp cache/remote_cache.hpp
  cache/remote_options.hpp cache/sha256.hpp cache/signature.hpp cache/store.hpp)

set(TILEWRIGHT_PUBLIC_HEADERS ${TILEWRIGHT_API_HEADERS} ${TILEWRIGHT_CACHE_HEADERS})
