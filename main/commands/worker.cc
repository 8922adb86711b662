#include "main/commands/registry.h"
#include "main/commands/task_command.h"

namespace disttf {
namespace {

class WorkerCommand : public TaskCommand {
 public:
  WorkerCommand() : TaskCommand({.name = "worker", .job = net::Job::kWorker}) {}
};

}  // namespace

CommandRow worker_command() {
  return {
      .name = "worker",
      .description = "One worker of a cluster; worker 0 is the chief where there is no chief task",
      .about =
          "Computes gradients on its share of the examples and pushes them to all parameter "
          "servers.",
      .examples = {{"disttf worker --task_index 0 --ps_hosts a:2222,b:2222 --worker_hosts c:2222",
                    "The only worker, hence the chief."}},
      .files = files_of_a_task(),
      .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores, Reads::kPath},
      .see_also = {"ps", "chief", "resolve"},
      .make = make_command<WorkerCommand>,
  };
}

}  // namespace disttf
