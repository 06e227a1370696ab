// As hopper_work_test.cpp, with blocks of three tiles.
#define BLOCK_KV 192
#define BLOCK_NAME ", blocks of three tiles"
#include "tests/generator/hopper_work_test.cpp"
