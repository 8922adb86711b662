#include "main/commands/registry.h"
#include "main/commands/task_command.h"

namespace disttf {
namespace {

class ChiefCommand : public TaskCommand {
 public:
  ChiefCommand() : TaskCommand({.name = "chief", .job = net::Job::kChief}) {}
};

}  // namespace

CommandRow chief_command() {
  return {
      .name = "chief",
      .description = "The chief of a cluster, as a separate task",
      .about =
          "A trainer that also publishes the configuration, initializes the parameters, "
          "saves, evaluates and prints the result.",
      .examples = {{"disttf chief --ps_hosts a:2222 --worker_hosts c:2222 --chief_host b:2222",
                    "Beside one worker."}},
      .files = files_of_a_task(),
      .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores, Reads::kPath},
      .see_also = {"ps", "worker", "evaluator"},
      .make = make_command<ChiefCommand>,
  };
}

}  // namespace disttf
