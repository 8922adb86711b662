// Trainers of some scenarios have programs, which fail in ways of their own.
#pragma once

#include "tests/sim/scenario.h"

namespace disttf::sim {

// Draws whether the trainers have programs, and the faults of these. Called last.
void draw_program(Scenario& scenario);

}  // namespace disttf::sim
