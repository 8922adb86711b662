#include "main/commands/registry.h"
#include "main/commands/task_command.h"

namespace disttf {
namespace {

class TrainCommand : public TaskCommand {
 public:
  TrainCommand() : TaskCommand({.name = "train", .names_job = true, .can_drive_servers = true}) {}
};

}  // namespace

CommandRow train_command() {
  return {
      .name = "train",
      .description =
          "Any of these: the role comes from --job_name, TF_CONFIG or the environment; "
          "without a cluster, trains on this machine",
      .about = "The default command.",
      .examples = {{"disttf train --job_name worker --task_index 1 --ps_hosts a:2222 "
                    "--worker_hosts b:2222,c:2222",
                    "As the tutorials' scripts are called."},
                   {"TF_CONFIG='{...}' disttf", "As orchestrators do."}},
      .files = files_of_a_task(),
      .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores, Reads::kPath},
      .see_also = {"launch", "resolve", "server"},
      .make = make_command<TrainCommand>,
  };
}

}  // namespace disttf
