// The reading of forward and of evaluate_float: the score is a float, an index an int.

using tw_real = float;
