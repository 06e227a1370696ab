# Warnings and sanitizers of this project's own code, never handed on to its users.
add_library(tilewright_options INTERFACE)
target_compile_options(tilewright_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wnull-dereference)
if(TILEWRIGHT_WERROR)
  target_compile_options(tilewright_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false overflows and dereferences from inlined libstdc++ and fmt code.
  target_compile_options(tilewright_options INTERFACE
    -Wno-null-dereference -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict
    -Wno-maybe-uninitialized -Wno-missing-field-initializers)
else()
  target_compile_options(tilewright_options INTERFACE -Wno-missing-field-initializers)
endif()
if(TILEWRIGHT_SANITIZE)
  target_compile_options(tilewright_options INTERFACE
    -fsanitize=${TILEWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TILEWRIGHT_SANITIZE})
endif()

# For code that is not hot: argument parsing compiles in two thirds of the time.
add_library(tilewright_quick_to_compile INTERFACE)
target_compile_options(tilewright_quick_to_compile INTERFACE $<$<CONFIG:Release>:-O1>)
