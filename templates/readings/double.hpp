// The reading of the double-precision reference.

using tw_real = double;
