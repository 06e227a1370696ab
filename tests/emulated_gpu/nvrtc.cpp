// A libnvrtc.so that compiles a kernel for the host: tests/emulated_gpu/prelude.hpp before it,
// calls for the driver that it stands for.

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

constexpr int kCompilationError = 6;

struct Program {
  std::string source;
  std::string log;
  std::string image;
};

Program& program_of(void* program) {
  return *static_cast<Program*>(program);
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the driver calls, and the block's dynamic shared memory.
std::string with_calls(const std::string& source) {
  std::string text =
      "#include \"" EMULATED_PRELUDE "\"\n#line 1 \"kernel.cu\"\n" + source +
      "\n#define EMULATED_EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n"
      "EMULATED_EXPORT const emulated::Core* emulated_core = nullptr;\n"
      "thread_local __align__(1024) unsigned char shared_memory[232448];\n"
      "EMULATED_EXPORT unsigned char* emulated_shared_memory() { return shared_memory; }\n";
  const std::regex kernel(R"re(extern "C" __global__ [^(]*\([^)]*\)\s*(\w+)\()re");
  for (std::sregex_iterator i(source.begin(), source.end(), kernel), end; i != end; ++i) {
    const std::string name = (*i)[1];
    text += "EMULATED_EXPORT void emulated_" + name + "(void** parameters) {\n  emulated::call(&" +
            name + ", parameters);\n}\n";
    text += "EMULATED_EXPORT const std::size_t* emulated_bytes_" + name +
            "() {\n  return emulated::parameter_bytes(&" + name + ");\n}\n";
  }
  return text;
}

void compile(Program& program, const fs::path& folder) {
  const fs::path source = folder / "kernel.cpp", library = folder / "kernel.so",
                 log = folder / "log";
  std::ofstream(source) << with_calls(program.source);
  // As NVRTC does, a product and a sum become one multiply-add.
  const std::string contracts =
      __builtin_cpu_supports("fma") ? "-mfma -ffp-contract=fast -fexpensive-optimizations " : "";
  const std::string command =
      // A kernel that leaves the bounds of an array traps.
      "g++ " + contracts +
      "-std=c++20 -O1 -w -fPIC -shared -fno-gnu-unique -fvisibility=hidden "
      "-fno-strict-aliasing -fsanitize=bounds -fsanitize-undefined-trap-on-error "
      "-I'" EMULATED_SOURCE_DIR "' -o '" +
      library.string() + "' '" + source.string() + "' >'" + log.string() + "' 2>&1";
  const bool succeeded = std::system(command.c_str()) == 0;
  program.log = read_file(log);
  if (succeeded) program.image = read_file(library);
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  return *major = 13, *minor = 0, 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  return *count = 4, 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  constexpr int kAll[] = {80, 86, 89, 90};
  return std::memcpy(architectures, kAll, sizeof kAll), 0;
}
const char* nvrtcGetErrorString(int) {
  return "an error of the stand-in for NVRTC";
}
int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  return *program = new Program{source, {}, {}}, 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
int nvrtcCompileProgram(void* program, int, const char* const*) {
  std::string folder = (fs::temp_directory_path() / "emulated_gpu_XXXXXX").string();
  if (!mkdtemp(folder.data())) return kCompilationError;
  compile(program_of(program), folder);
  fs::remove_all(folder);
  return program_of(program).image.empty() ? kCompilationError : 0;
}
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return *size = program_of(program).image.size(), 0;
}
int nvrtcGetCUBIN(void* program, char* image) {
  const std::string& from = program_of(program).image;
  return std::memcpy(image, from.data(), from.size()), 0;
}
int nvrtcGetProgramLogSize(void* program, std::size_t* size) {
  return *size = program_of(program).log.size() + 1, 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  const std::string& from = program_of(program).log;
  return std::memcpy(log, from.c_str(), from.size() + 1), 0;
}

}  // extern "C"
