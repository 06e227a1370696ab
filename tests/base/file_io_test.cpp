#include "base/file_io.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/temporary_files.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "file-io-XXXXXX").native();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::size_t items() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path),
                                                  std::filesystem::directory_iterator()));
  }
  std::filesystem::path path;
};

// The error that `work` throws, as code and report.
template <typename Work>
std::pair<ErrorCode, std::string> error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::internal, "nothing was thrown"};
}

}  // namespace

TEST_CASE("file_io: what is written is what is read, and it replaces what was there") {
  const Folder folder;
  const auto path = folder.path / "a.txt";
  const std::string text = GENERATE(std::string(), std::string("x"), std::string("a\0b\n", 4),
                                    std::string(1'000'000, 'y'));
  write_text_file(path, "a longer text that was there before");
  write_text_file(path, text);
  REQUIRE(read_text_file(path) == text);
  REQUIRE(folder.items() == 1);
}

TEST_CASE("file_io: an error about a folder without write permission asks for another folder") {
  const auto [code, report] = error_of([&] { write_text_file("/sys/tilewright-test", "x"); });
  REQUIRE(code == ErrorCode::disk);
  REQUIRE_THAT(report, ContainsSubstring("choose a folder that you may write to"));
}

TEST_CASE("file_io: a missing file is an error that names its neighbour") {
  const Folder folder;
  write_text_file(folder.path / "causal.json", "{}");
  const auto [code, report] = error_of([&] { read_file(folder.path / "casual.json"); });
  REQUIRE(code == ErrorCode::file);
  REQUIRE_THAT(report, ContainsSubstring("casual.json\": No such file or directory"));
  REQUIRE_THAT(report, ContainsSubstring("did you mean \"causal.json\"?"));
  REQUIRE_THAT(error_of([&] { read_file(folder.path / "no" / "x"); }).second,
               ContainsSubstring("there is no folder"));
}

TEST_CASE("file_io: what is no regular file is refused at once, in both directions") {
  const Folder folder;
  const auto fifo = folder.path / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  REQUIRE_THAT(error_of([&] { read_file(fifo); }).second, ContainsSubstring("is a pipe"));
  REQUIRE_THAT(error_of([&] { read_file(folder.path); }).second, ContainsSubstring("a directory"));
  REQUIRE_THAT(error_of([&] { read_file("/dev/zero"); }).second, ContainsSubstring("is a device"));

  const auto refused = error_of([&] { write_text_file(folder.path, "x"); });
  REQUIRE(refused.first == ErrorCode::disk);
  REQUIRE_THAT(refused.second, ContainsSubstring("a directory"));
  REQUIRE(error_of([&] { write_text_file("", "x"); }).first == ErrorCode::disk);
}

TEST_CASE("file_io: devices, pipes and open files take the bytes as they come") {
  const Folder folder;
  write_text_file("/dev/null", "x");
  REQUIRE(std::filesystem::is_character_file("/dev/null"));
  REQUIRE(error_of([&] { write_text_file("/dev/full", "x"); }).first == ErrorCode::disk);

  const auto fifo = folder.path / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  write_text_file(fifo, "through a pipe");
  char text[32] = {};
  REQUIRE(::read(reader, text, sizeof text) == 14);
  REQUIRE(std::string(text) == "through a pipe");
  ::close(reader);

  const auto file = folder.path / "file";
  const int open_file = ::open(file.c_str(), O_WRONLY | O_CREAT, 0600);
  write_text_file("/dev/fd/" + std::to_string(open_file), "one, ");
  write_text_file("/proc/self/fd/" + std::to_string(open_file), "two");
  REQUIRE(read_text_file(file) == "one, two");
  ::close(open_file);
  REQUIRE(folder.items() == 2);
}

TEST_CASE("file_io: a reader of a pipe that goes away is an error, not a signal") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  const auto path = "/dev/fd/" + std::to_string(ends[1]);
  REQUIRE(error_of([&] { write_text_file(path, "x"); }).first == ErrorCode::disk);
  ::close(ends[1]);
}

// The writer names the complete file and then renames it: SIGKILL may come in between.
TEST_CASE("file_io: a process that is killed while it writes leaves no half of a file") {
  const Folder folder;
  const int nameless = ::open(folder.path.c_str(), O_TMPFILE | O_WRONLY, 0600);
  const bool has_nameless_files = nameless >= 0;
  if (has_nameless_files) ::close(nameless);
  const int signal = has_nameless_files ? SIGKILL : SIGTERM;
  for (int round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGTERM, [](int) {
        remove_temporary_files();
        ::_exit(0);
      });
      const std::string text(32 << 20, 'x');
      for (;;) write_text_file(folder.path / "f", text);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + 37 * round));
    ::kill(child, signal);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    if (!has_nameless_files) REQUIRE(folder.items() <= 1);
    for (const auto& item : std::filesystem::directory_iterator(folder.path)) {
      REQUIRE(item.file_size() == 32 << 20);
    }
  }
}

TEST_CASE("file_io: a process that is told to end removes what it was writing") {
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const int open_folder = ::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY);
    const TemporaryFile known(open_folder, ".tmp-f");
    write_text_file(folder.path / ".tmp-f", "half");
    if (::fork() == 0) {
      remove_temporary_files();  // its parent's: none of them
      ::_exit(folder.items() == 1 ? 0 : 1);
    }
    int status = -1;
    ::wait(&status);
    remove_temporary_files();
    ::_exit(status == 0 && folder.items() == 0 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

TEST_CASE("file_io: symbolic links are followed, or refused where the caller asks for it") {
  const Folder folder;
  write_text_file(folder.path / "file", "old");
  std::filesystem::create_symlink("file", folder.path / "link");
  REQUIRE(read_text_file(folder.path / "link") == "old");
  REQUIRE_THAT(
      error_of([&] { read_file(folder.path / "link", {.follow_symlinks = false}); }).second,
      ContainsSubstring("it is a symbolic link"));

  write_text_file(folder.path / "link", "new");
  REQUIRE(std::filesystem::is_symlink(folder.path / "link"));
  REQUIRE(read_text_file(folder.path / "file") == "new");

  std::filesystem::create_symlink("nowhere", folder.path / "dangling");
  REQUIRE_THAT(error_of([&] { write_text_file(folder.path / "dangling", "x"); }).second,
               ContainsSubstring("symbolic link to nothing"));
}

TEST_CASE("file_io: a file over the caller's limit is refused before it is read") {
  const Folder folder;
  write_text_file(folder.path / "f", "12345");
  REQUIRE(read_file(folder.path / "f", {.max_bytes = 5}).size() == 5);
  REQUIRE_THAT(error_of([&] { read_file(folder.path / "f", {.max_bytes = 4}); }).second,
               ContainsSubstring("it has 5 bytes, and at most 4 are allowed"));
}

TEST_CASE("file_io: a file whose size is not what was announced is noticed") {
  const Folder folder;
  write_text_file(folder.path / "f", "12345");
  const OpenedFile opened = open_for_reading(AT_FDCWD, (folder.path / "f").native(), true);
  std::vector<std::byte> bytes;
  REQUIRE_FALSE(read_whole(opened.file, 5, bytes));
  REQUIRE(read_whole(opened.file, 4, bytes) == std::errc::device_or_resource_busy);
  REQUIRE(read_whole(opened.file, 6, bytes) == std::errc::device_or_resource_busy);
}

TEST_CASE("file_io: a path with a NUL byte is refused, not cut") {
  const std::string path("/tmp/a\0b", 8);
  REQUIRE_THAT(error_of([&] { read_file(path); }).second, ContainsSubstring("NUL byte"));
  REQUIRE_THAT(error_of([&] { write_text_file(path, "x"); }).second, ContainsSubstring("NUL byte"));
}

TEST_CASE("file_io: a missing folder is an error that says so") {
  const Folder folder;
  const auto [code, report] = error_of([&] { write_text_file(folder.path / "no" / "f", "x"); });
  REQUIRE(code == ErrorCode::disk);
  REQUIRE_THAT(report, ContainsSubstring("create the folder \"" + (folder.path / "no").native()));
}

TEST_CASE("file_io: a disk that fills up leaves the old file and nothing else") {
  const Folder folder;
  write_text_file(folder.path / "f", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto failed =
        error_of([&] { write_text_file(folder.path / "f", std::string(5000, 'x')); });
    const bool told = failed.second.find("cannot write") != std::string::npos;
    ::_exit(failed.first == ErrorCode::disk && told ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(read_text_file(folder.path / "f") == "old");
  REQUIRE(folder.items() == 1);
}

TEST_CASE("file_io: the umask decides who may read a result") {
  const Folder folder;
  const mode_t before = ::umask(027);
  write_text_file(folder.path / "result", "x");
  write_text_file(folder.path / "secret", "x", 0600);
  ::umask(before);
  struct stat status {};
  REQUIRE(::stat((folder.path / "result").c_str(), &status) == 0);
  REQUIRE((status.st_mode & 07777) == 0640);
  REQUIRE(::stat((folder.path / "secret").c_str(), &status) == 0);
  REQUIRE((status.st_mode & 07777) == 0600);
}

TEST_CASE("file_io: readers see one version or the other while a file is replaced") {
  const Folder folder;
  const auto path = folder.path / "f";
  const std::string versions[] = {std::string(10'000, 'a'), std::string(20'000, 'b')};
  write_text_file(path, versions[0]);
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) write_text_file(path, versions[i % 2]);
  });
  int torn = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = read_text_file(path);
    if (text != versions[0] && text != versions[1]) ++torn;
  }
  writer.join();
  REQUIRE(torn == 0);
}
