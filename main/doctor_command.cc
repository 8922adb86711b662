#include "main/doctor_command.h"

#include <CLI/CLI.hpp>

#include "main/flag_values.h"

namespace disttf {
namespace {

constexpr const char* kDoctorGroup = "Doctor";

}  // namespace

void add_doctor_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--json", flags.json, "print JSON")->transform(boolean())->group(kDoctorGroup);
  app.add_option("--port", flags.doctor_port, "port to check for a task [none]")
      ->type_name("PORT")
      ->transform(whole_number(1, kMostPort))
      ->group(kDoctorGroup);
}

roles::DoctorOptions doctor_options(const Flags& flags, const Environment& environment) {
  return {.as_json = flags.json, .port = flags.doctor_port, .environment = environment};
}

}  // namespace disttf
