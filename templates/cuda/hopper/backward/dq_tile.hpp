#pragma once

namespace tw_kernel {

// A tile of dQ: rows from `first` to before `end` of q.
struct DqTile {
  int b;
  int h;
  int first;
  int end;
};

}  // namespace tw_kernel
