// A chief that comes back with another configuration, when all ps of the run were lost with it, or
// only some.
//
// Who has another configuration than the run ends with code 2, and is started again: a chief with
// the flags of before, a worker with those of the chief. So a run ends with one of the two, and
// each state of it must be that configuration's.
#pragma once

#include "tests/sim/scenario.h"

namespace disttf::sim {

// In some strict runs; nothing in the others.
void draw_other_configuration(Scenario& scenario);

}  // namespace disttf::sim
