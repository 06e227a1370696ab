#pragma once

namespace tilewright::verify {

/// Finds the element whose error comes nearest to its bound; of equally near ones, that with the
/// least bound.
struct NearestToBound {
  double error = 0;
  double bound = 0;

  void take(double of_element, double bound_of_element) {
    const double of_bound = of_element / bound_of_element;
    if (of_bound < share || (of_bound == share && bound_of_element >= bound)) return;
    share = of_bound;
    error = of_element;
    bound = bound_of_element;
  }

  double share = -1;  ///< error / bound; -1 before the first element
};

}  // namespace tilewright::verify
