#include "main/commands/registry.h"
#include "main/commands/task_command.h"

namespace disttf {
namespace {

class EvaluatorCommand : public TaskCommand {
 public:
  EvaluatorCommand()
      : TaskCommand({.name = "evaluator", .job = net::Job::kEvaluator, .takes_program = false}) {}
};

}  // namespace

CommandRow evaluator_command() {
  return {
      .name = "evaluator",
      .description = "Evaluates a run's checkpoints, or its current parameters, while it trains",
      .about = "Does not affect the run: it may start, exit and restart at any time.",
      .examples = {{"disttf evaluator --train_dir run --keep_best accuracy",
                    "Scores each checkpoint of run, and keeps the best one."}},
      .files = files_of_a_task(),
      .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
      .see_also = {"chief", "checkpoint", "plot"},
      .make = make_command<EvaluatorCommand>,
  };
}

}  // namespace disttf
