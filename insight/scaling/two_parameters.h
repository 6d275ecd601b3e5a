// Models of two parameters, found as Extra-P does: the best term of each parameter alone, then the
// best way to put the two together. (Calotoiu et al., "Fast Multi-Parameter Performance Modeling",
// CLUSTER 2016; extrap/modelers/multi_parameter/multi_parameter_modeler.py of Extra-P 4.2.5.)
//
// A parameter's term is found over lines: runs between which only that parameter changes. Of all
// lines those count that have the most sizes. Each line is divided by its mean, so that all count
// alike, and the mean of the lines is taken as one line. Where a metric is a sum or a product of
// terms, each of its lines is a constant and a coefficient times the same term, and so is the mean.
//
// Whether a parameter has a trend is asked of all its lines (ChanceOfLines in chance.h). In the end
// terms that are about as good for the lines are tried in the place of the best ones, with all
// runs.
//
// Thread safety: a function without state.
#pragma once

#include "insight/scaling/model.h"

namespace sonde::insight {

ScalingModel ModelOfTwo(const Runs& runs);

}  // namespace sonde::insight
