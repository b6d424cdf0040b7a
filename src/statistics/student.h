// Student's t distribution. Pure functions; any thread.
#pragma once

namespace lockstep::statistics {

/// Returns the probability of at most `t` with so many degrees of freedom (more than 0, need not be whole).
double t_probability(double t, double freedom);
/// Returns the value that t exceeds with the probability 1 - p; p lies between 0 and 1, without the ends.
double t_quantile(double p, double freedom);

}  // namespace lockstep::statistics
