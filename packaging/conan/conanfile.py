import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy

ROOT = Path(__file__).resolve().parent.parent.parent


class Tilewright(ConanFile):
    name = "tilewright"
    description = "JIT generator of attention kernels from C++ snippets"
    license = "Apache-2.0"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "tool": [True, False]}
    default_options = {"shared": False, "tool": False}

    def set_version(self):
        header = (ROOT / "base/version.hpp").read_text()
        parts = (re.search(rf"VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
        self.version = ".".join(parts)

    def export_sources(self):
        for folder in (
            "base",
            "c",
            "cache",
            "cli",
            "cmake",
            "docs",
            "examples",
            "fuzz",
            "generator",
            "picture",
            "runtime",
            "templates",
            "verify",
        ):
            copy(self, f"{folder}/*", ROOT, self.export_sources_folder)
        for file in ("CMakeLists.txt", "tilewright.hpp", "LICENSE", "README.md", "CHANGELOG.md"):
            copy(self, file, ROOT, self.export_sources_folder)

    def requirements(self):
        self.requires("fmt/[>=9]")
        self.requires("openssl/[>=3]")
        self.requires("nlohmann_json/[>=3.11]", visible=False)
        if self.options.tool:
            self.requires("cli11/[>=2.3]", visible=False)
            self.requires("libpng/[>=1.6]", visible=False)
            self.requires("freetype/[>=2.12]", visible=False)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TILEWRIGHT_BUILD_TESTS"] = False
        toolchain.cache_variables["TILEWRIGHT_BUILD_CLI"] = bool(self.options.tool)
        toolchain.cache_variables["TILEWRIGHT_WERROR"] = False
        toolchain.cache_variables["CMAKE_UNITY_BUILD"] = True  # a quarter of the time
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "tilewright")
        cpp = self.cpp_info.components["cpp"]
        cpp.set_property("cmake_target_name", "tilewright::tilewright")
        # Of the static library the whole name: libtilewright.so next to it is the C library.
        cpp.libs = ["tilewright_cpp" if self.options.shared else "libtilewright.a"]
        cpp.system_libs = ["pthread", "dl"]
        # What a profile takes from the system has no recipe, and is linked by name.
        recipes = {dependency.ref.name for dependency in self.dependencies.host.values()}
        for name, target, library in (("fmt", "fmt::fmt", "fmt"), ("openssl", "openssl::crypto", "crypto")):
            (cpp.requires if name in recipes else cpp.system_libs).append(target if name in recipes else library)
        c = self.cpp_info.components["c"]
        c.set_property("cmake_target_name", "tilewright::c")
        c.libs = ["tilewright"]
