/* The public header alone, as C99; tests/c/header_cpp20.cpp is its C++20. */
#include <tilewright.h>

static const tw_call call = {.struct_size = sizeof(tw_call)};

int main(void) {
  return call.struct_size == sizeof call ? 0 : 1;
}
