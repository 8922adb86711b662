// DC/OS: a Marathon group, with the names that DC/OS gives to tasks on both of its networks.
//
// The TensorFlow package cannot start a program of its own, only a Python module; but its options
// say all that is needed, and dcos_options.h reads them.
#include "main/render/marathon.h"
#include "main/render/rendered.h"

namespace disttf::render {

std::string render_dcos(const Deployment& deployment) {
  refuse_evaluator(deployment, "dcos");
  refuse_metrics(deployment, "dcos");
  refuse_named_volumes(deployment, "dcos");
  // As the package does it: all tasks of a kind have one port, so each of them gets a machine, or
  // on a virtual network an address, of its own.
  return marathon_group(
      deployment, {.domain = deployment.domain.empty() ? "marathon.autoip.dcos.thisdcos.directory"
                                                       : deployment.domain,
                   .own_ports = false});
}

}  // namespace disttf::render
