// Where NCCL is looked for, and what is said where it is missing.
#include "runtime/parallel/nccl_library.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "runtime/api/nccl.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright::parallel {
namespace {

using test::refusal;

// TILEWRIGHT_NCCL for as long as it lives.
class NamedNccl {
 public:
  explicit NamedNccl(const char* path) : before_(environment("TILEWRIGHT_NCCL")) {
    setenv("TILEWRIGHT_NCCL", path, 1);
  }
  ~NamedNccl() {
    if (before_.empty()) {
      unsetenv("TILEWRIGHT_NCCL");
    } else {
      setenv("TILEWRIGHT_NCCL", before_.c_str(), 1);
    }
  }
  NamedNccl(const NamedNccl&) = delete;
  NamedNccl& operator=(const NamedNccl&) = delete;

 private:
  std::string before_;
};

}  // namespace

TEST_CASE("NCCL: what TILEWRIGHT_NCCL names is taken, and nothing else") {
  const NamedNccl file("/nowhere/libnccl.so.2");
  CHECK(NcclLibrary::candidates() == std::vector<std::string>{"/nowhere/libnccl.so.2"});
  CHECK_THAT(refusal([] { nccl_id(); }), Catch::Contains("NCCL was not found"));
  const std::string folder = std::filesystem::temp_directory_path().string();
  const NamedNccl in_folder(folder.c_str());
  CHECK(NcclLibrary::candidates() ==
        std::vector<std::string>{(std::filesystem::path(folder) / "libnccl.so.2").string()});
}

TEST_CASE("NCCL: the loader's path comes first") {
  const NamedNccl none("");
  REQUIRE(!NcclLibrary::candidates().empty());
  CHECK(NcclLibrary::candidates().front() == "libnccl.so.2");
}

TEST_CASE("NCCL: a CPU is refused") {
  CHECK_THAT(refusal([] { nccl_rank({}, 0, 1, Device::cpu()); }),
             Catch::Contains("NCCL was given the CPU"));
  CHECK_THAT(refusal([] { nccl_communicator(nullptr, Device::cpu()); }),
             Catch::Contains("NCCL was given the CPU"));
}

}  // namespace tilewright::parallel
