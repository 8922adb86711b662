// disttf doctor: checks what a task needs of this machine.
#pragma once

#include "main/environment.h"
#include "main/flags.h"
#include "roles/doctor/shell/doctor.h"

namespace CLI {
class App;
}

namespace disttf {

void add_doctor_flags(CLI::App& app, Flags& flags);
[[nodiscard]] roles::DoctorOptions doctor_options(const Flags& flags,
                                                  const Environment& environment);

}  // namespace disttf
