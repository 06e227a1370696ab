#include "runtime/api/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <unordered_set>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "base/memory.hpp"
#include "runtime/io/safetensors_header.hpp"
#include "runtime/io/safetensors_json.hpp"

namespace tilewright {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kLengthBytes = 8;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why,
                       std::string hint) {
  throw Error(ErrorCode::file,
              fmt::format("\"{}\" is no valid safetensors file: {}", path.native(), why),
              std::move(hint));
}

/// A file of known length, read from any place. Offsets are 64-bit: files may exceed 2 GiB.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path) : path_(path) {
    OpenedFile opened = open_for_reading(AT_FDCWD, path.native(), true);
    if (opened.error || !S_ISREG(opened.status.st_mode)) {
      read_file(path, {.max_bytes = 0});  // throws, and says best what is wrong
      fail(path, "it changes while it is read", "try again once it is complete");
    }
    size_ = static_cast<std::uint64_t>(opened.status.st_size);
    file_ = std::move(opened.file);
  }

  std::uint64_t size() const { return size_; }

  void read(std::uint64_t offset, void* target, std::uint64_t bytes) const {
    char* next = static_cast<char*>(target);
    while (bytes > 0) {
      const ssize_t count = pread(file_.get(), next, bytes, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        throw Error(ErrorCode::file,
                    fmt::format("cannot read \"{}\": {}", path_.native(), std::strerror(errno)));
      }
      if (count == 0) {
        fail(path_, "it became shorter while it was read", "try again once it is complete");
      }
      next += count;
      offset += static_cast<std::uint64_t>(count);
      bytes -= static_cast<std::uint64_t>(count);
    }
  }

 private:
  const std::filesystem::path& path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

std::string read_header_text(const InputFile& file, const std::filesystem::path& path) {
  if (file.size() < kLengthBytes) {
    fail(path, fmt::format("it has only {} bytes", file.size()),
         "the file is truncated, or is no safetensors file");
  }
  std::uint64_t length = 0;
  file.read(0, &length, kLengthBytes);
  if (length == 0) fail(path, "its header is empty", "write it again");
  if (length > file.size() - kLengthBytes) {
    fail(path,
         fmt::format("its header should have {} bytes, but the file has only {}", length,
                     file.size()),
         "the file is truncated, or is no safetensors file");
  }
  if (length > kMaxSafetensorsHeader) {
    fail(path,
         fmt::format("its header has {} bytes; at most {} are read", length, kMaxSafetensorsHeader),
         "split the file, or shorten its metadata");
  }
  std::string text(length, '\0');
  file.read(kLengthBytes, text.data(), length);
  return text;
}

Tensor read_tensor(const InputFile& file, std::uint64_t data_start, const SafetensorsEntry& entry,
                   const std::filesystem::path& path) {
  const std::optional<DType> dtype = dtype_from_safetensors(entry.dtype_name);
  if (!dtype) {
    throw Error(ErrorCode::file,
                fmt::format("tensor {} in \"{}\" has the dtype {}", quoted_name(entry.name),
                            path.native(), entry.dtype_name),
                "convert it to F64, F32, F16, BF16, I8 to I64, U8 to U32 or BOOL");
  }
  if (entry.shape.size() > kMaxRank) {
    throw Error(ErrorCode::file,
                fmt::format("tensor {} in \"{}\" has rank {}", quoted_name(entry.name),
                            path.native(), entry.shape.size()),
                fmt::format("reshape it to rank {} or less", kMaxRank));
  }
  // Tensor counts in 63 bits, also after an extent of 0.
  std::int64_t bytes = static_cast<std::int64_t>(size_of(*dtype));
  std::vector<std::int64_t> shape;
  for (const std::uint64_t extent : entry.shape) {
    if (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      throw Error(ErrorCode::file,
                  fmt::format("tensor {} in \"{}\" has extents whose product exceeds 2^63",
                              quoted_name(entry.name), path.native()),
                  "write it with smaller extents");
    }
    shape.push_back(static_cast<std::int64_t>(extent));
  }
  Tensor tensor = Tensor::zeros(*dtype, shape);
  file.read(data_start + entry.begin, tensor.data(), entry.end - entry.begin);
  return tensor;
}

// Large elements first: as every tensor's bytes are a multiple of its elements' size, each then
// starts at a multiple of its own size.
std::vector<std::pair<std::string, TensorView>> in_file_order(
    const std::map<std::string, TensorView>& tensors) {
  std::vector<std::pair<std::string, TensorView>> ordered(tensors.begin(), tensors.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return size_of(a.second.dtype) > size_of(b.second.dtype);
  });
  return ordered;
}

void append(std::vector<std::byte>& bytes, const void* data, std::uint64_t count) {
  const auto* start = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), start, start + count);
}

std::vector<std::byte> serialized(const std::map<std::string, TensorView>& tensors,
                                  const std::map<std::string, std::string>& metadata) {
  const auto ordered = in_file_order(tensors);
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  std::uint64_t offset = 0;
  for (const auto& [name, view] : ordered) {
    const auto shape = view.extents();
    const std::uint64_t end = offset + static_cast<std::uint64_t>(view.bytes());
    header.entries.push_back({.name = name,
                              .dtype_name = std::string(safetensors_name(view.dtype)),
                              .shape = {shape.begin(), shape.end()},
                              .begin = offset,
                              .end = end});
    offset = end;
  }
  const std::string text = format_safetensors_header(header);
  const std::uint64_t length = text.size();
  std::vector<std::byte> bytes;
  bytes.reserve(kLengthBytes + length + offset);
  append(bytes, &length, kLengthBytes);
  append(bytes, text.data(), length);
  for (const auto& [name, view] : ordered) {
    if (view.is_contiguous()) {
      append(bytes, view.data, static_cast<std::uint64_t>(view.bytes()));
    } else {
      const Tensor dense = Tensor::copy_of(view);
      append(bytes, dense.data(), static_cast<std::uint64_t>(dense.bytes()));
    }
  }
  return bytes;
}

Error out_of_memory(const char* action, const std::filesystem::path& path) {
  return Error(ErrorCode::memory, fmt::format("no memory to {} \"{}\"", action, path.native()),
               "use smaller tensors, or raise the memory limit of this process");
}

TensorFile read(const std::filesystem::path& path,
                const std::optional<std::span<const std::string>>& names) {
  const InputFile file(path);
  const std::string text = read_header_text(file, path);
  const std::uint64_t data_start = kLengthBytes + text.size();
  SafetensorsHeader header = parse_safetensors_header(text, file.size() - data_start, path);
  TensorFile result;
  result.metadata = std::move(header.metadata);
  std::unordered_set<std::string_view> wanted;
  if (names) wanted.insert(names->begin(), names->end());
  double needed = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (!names || wanted.contains(entry.name)) {
      needed += static_cast<double>(entry.end - entry.begin);
    }
  }
  require_memory_for(needed, fmt::format("the tensors in \"{}\"", path.native()));
  for (const SafetensorsEntry& entry : header.entries) {
    if (!names || wanted.contains(entry.name)) {
      result.tensors.emplace(entry.name, read_tensor(file, data_start, entry, path));
    } else {
      result.skipped.push_back(entry.name);
    }
  }
  std::sort(result.skipped.begin(), result.skipped.end());
  return result;
}

}  // namespace

TensorFile read_safetensors(const std::string& path,
                            std::optional<std::span<const std::string>> names) {
  try {
    return read(path, names);
  } catch (const std::bad_alloc&) {
    throw out_of_memory("read", path);
  }
}

void write_safetensors(const std::string& path, const std::map<std::string, TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  try {
    write_file(path, serialized(tensors, metadata));
  } catch (const std::bad_alloc&) {
    throw out_of_memory("write", path);
  }
}

}  // namespace tilewright
