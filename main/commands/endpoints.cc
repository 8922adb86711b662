#include "main/commands/manage.h"
#include "main/commands/registry.h"

namespace disttf {
namespace {

class EndpointsCommand : public ManagementCommand {
 public:
  EndpointsCommand() : ManagementCommand(roles::ManageVerb::kEndpoints) {}
};

}  // namespace

CommandRow endpoints_command() {
  return {
      .name = "endpoints",
      .description = "Show the addresses of a running launch",
      .about = "Lists the addresses of the jobs and the control address.",
      .examples = {{"disttf endpoints", "A row for each job."}},
      .files = {kSocketFile},
      .reads = {Reads::kRuntime, Reads::kTerminal},
      .see_also = {"status"},
      .make = make_command<EndpointsCommand>,
  };
}

}  // namespace disttf
