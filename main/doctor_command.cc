#include "main/doctor_command.h"

#include <CLI/CLI.hpp>

#include "main/flag_values.h"

namespace disttf {
namespace {

constexpr const char* kDoctorGroup = "Doctor";

}  // namespace

void add_doctor_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--json", flags.json, "what is found as JSON")
      ->transform(boolean())
      ->group(kDoctorGroup);
  app.add_option("--port", flags.doctor_port,
                 "to be tried as a task's own; without it nothing is said of ports")
      ->type_name("PORT")
      ->transform(whole_number(1, kMostPort))
      ->group(kDoctorGroup);
}

roles::DoctorOptions doctor_options(const Flags& flags) {
  return {.as_json = flags.json, .port = flags.doctor_port};
}

}  // namespace disttf
