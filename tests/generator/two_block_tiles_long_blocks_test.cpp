// As two_block_tiles_test.cpp, with blocks of three tiles.
#define BLOCK_KV 384
#define BLOCK_NAME ", blocks of three tiles"
#include "tests/generator/two_block_tiles_test.cpp"
