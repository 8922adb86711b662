#include "main/doctor/doctor.h"

#include <CLI/CLI.hpp>

#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "main/flags/flag_group.h"

namespace disttf {
namespace {

constexpr const char* kDoctorGroup = "Doctor";

class DoctorCommand : public Command {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kDoctorGroup);
    add.toggle("--json", as_json_, "print JSON");
    add.number("--port", port_, "PORT", 1, kMostPort, "port to check for a task [none]");
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    return run_with(
        roles::DoctorOptions{.as_json = as_json_, .port = port_, .environment = line.environment},
        roles::run_doctor);
  }

 private:
  bool as_json_ = false;
  std::optional<std::uint16_t> port_;
};

}  // namespace

CommandRow doctor_command() {
  return {
      .name = "doctor",
      .description = "Check what this machine offers to a task",
      .about =
          "Tests what a task depends on, as this user and in this container. Exits with 4 if "
          "a task could not use --port, else with 0.",
      .examples = {{"disttf doctor --port 2222",
                    "Can tasks share memory, is the port free, what does seccomp do?"}},
      .files = {kAuthoritiesFile},
      .reads = {Reads::kGpus},
      .see_also = {"resolve", "plus"},
      .make = make_command<DoctorCommand>,
  };
}

}  // namespace disttf
