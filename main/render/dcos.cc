// DC/OS: a Marathon group, with the names that DC/OS gives to tasks on both of its networks.
//
// The TensorFlow package can only start a Python module, no other program. Its options contain all
// that is needed; dcos_options.h reads them.
#include "main/render/marathon.h"
#include "main/render/targets.h"

namespace disttf::render {

std::string render_dcos(const Deployment& deployment) {
  refuse_evaluator(deployment, "dcos");
  refuse_metrics(deployment, "dcos");
  refuse_named_volumes(deployment, "dcos");
  // As in the package, all tasks of a kind have one port, so each gets its own machine, or its own
  // address on a virtual network.
  return marathon_group(
      deployment, {.domain = deployment.domain.empty() ? "marathon.autoip.dcos.thisdcos.directory"
                                                       : deployment.domain,
                   .own_ports = false});
}

}  // namespace disttf::render
