// A chief that returns with another configuration after it was lost together with all ps of the
// run, or some.
// only some.
//
// A process whose configuration differs from the run's exits with code 2 and is restarted: a chief
// with its earlier flags, a worker with the chief's. So a run ends with one of the two
// configurations, and each of its states must belong to that one.
#pragma once

#include "tests/sim/scenario.h"

namespace disttf::sim {

// Affects some fully synchronous runs and no others.
void draw_other_configuration(Scenario& scenario);

}  // namespace disttf::sim
