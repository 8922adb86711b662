#include "main/doctor/doctor.h"

#include <vector>

#include "main/doctor/checks.h"
#include "main/doctor/machine_limits.h"
#include "run/process/log.h"

namespace disttf::roles {

int run_doctor(const DoctorOptions& options) {
  std::vector<Finding> findings = {
      check_kernel(),
      check_seccomp(),
      check_no_new_privileges(),
      check_landlock(),
      check_core_dumps(),
      check_shared_memory(),
      check_descriptors(),
      check_processor(),
      check_processors(),
      check_memory(),
      check_clock(),
      check_authorities(),
      check_gpus(options.environment),
  };
  // Only on request: a running task may hold the port rightfully.
  if (options.port) {
    findings.push_back(check_port(*options.port));
  }
  print_result(options.as_json ? to_json(findings) : to_text(findings));
  return exit_code_of(findings);
}

}  // namespace disttf::roles
