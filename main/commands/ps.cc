#include "main/commands/registry.h"
#include "main/commands/task_command.h"

namespace disttf {
namespace {

class PsCommand : public TaskCommand {
 public:
  PsCommand() : TaskCommand({.name = "ps", .job = net::Job::kPs, .has_page = false}) {}
};

}  // namespace

CommandRow ps_command() {
  return {
      .name = "ps",
      .description = "One parameter server of a cluster",
      .about =
          "Holds a range of the parameters, applies gradients to it and sends it to "
          "trainers, until the chief ends the run.",
      .examples = {{"disttf ps --task_index 0 --ps_hosts a:2222,b:2222 --worker_hosts c:2222",
                    "The first of two."}},
      .files = files_of_a_task(),
      .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
      .see_also = {"worker", "chief", "resolve"},
      .make = make_command<PsCommand>,
  };
}

}  // namespace disttf
