// MPI and torchrun number the processes that they start, but provide no addresses. Each process
// would train alone and report success, so this is an error.
#include <array>
#include <stdexcept>

#include "net/resolvers/resolver.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
};
constexpr std::array kLaunchers = {
    Launcher{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Launcher{"MPI", "PMI_RANK", "PMI_SIZE"},
    Launcher{"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    Launcher{"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    Launcher{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    Launcher{"Horovod", "HOROVOD_RANK", "HOROVOD_SIZE"},
    Launcher{"torchrun", "RANK", "WORLD_SIZE"},
};

// Engines whose numbered tasks may be independent runs: a warning, no error.
struct Engine {
  const char* name;
  const char* count;  // the variable with the number of tasks
};
constexpr std::array kEngines = {
    Engine{"PBS", "PBS_NUM_NODES"},
    Engine{"PBS", "PBS_NP"},
    Engine{"Grid Engine", "NHOSTS"},
    Engine{"LSF", "LSB_DJOB_NUMPROC"},
    Engine{"AWS Batch", "AWS_BATCH_JOB_NUM_NODES"},
    Engine{"Cloud Run", "CLOUD_RUN_TASK_COUNT"},
    Engine{"Google Batch", "BATCH_TASK_COUNT"},
    Engine{"Volcano", "VC_WORKER_NUM"},
};

// RANK alone is too common a name: torchrun's other variables must be set, too.
[[nodiscard]] bool is_there(const Launcher& launcher, const Environment& environment) {
  if (!variable(environment, launcher.rank)) return false;
  // A launch of one process trains alone on purpose, and so may a rank without a size.
  const std::string_view size = variable(environment, launcher.size).value_or("1");
  if (size == "1") return false;
  if (std::string_view(launcher.rank) != "RANK") return true;
  return variable(environment, "GROUP_RANK") && variable(environment, "LOCAL_RANK") &&
         variable(environment, "LOCAL_WORLD_SIZE");
}

}  // namespace

void refuse_rank_only_launchers(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (!is_there(launcher, environment)) continue;
    throw std::invalid_argument(
        std::string(launcher.rank) + " is " + net::quoted(*variable(environment, launcher.rank)) +
        " of " + launcher.size + " " + net::quoted(*variable(environment, launcher.size)) + ": " +
        launcher.name +
        " numbers the tasks but provides no addresses; give each --job_name, --task_index, "
        "--ps_hosts and --worker_hosts, start them with srun, or use --resolver local");
  }
}

std::vector<std::string> signs_of_several_tasks(const Environment& environment) {
  std::vector<std::string> sentences;
  const std::string alone = "; without --ps_hosts and --worker_hosts this task trains alone";
  if (auto sentence = slurm_job_without_step(environment)) {
    sentences.push_back(*sentence + "; started without srun it trains alone");
  }
  for (const Engine& engine : kEngines) {
    const auto count = variable(environment, engine.count);
    if (!count || *count == "1" || *count == "0") continue;
    sentences.push_back(std::string(engine.count) + " is " + net::quoted(*count) + " (" +
                        engine.name + ")" + alone);
  }
  // PMIx gives a rank and no size; a step with a single task has one as well.
  const auto rank = variable(environment, "PMIX_RANK");
  if (rank && variable(environment, "SLURM_STEP_NUM_TASKS") != "1") {
    sentences.push_back("PMIX_RANK is " + net::quoted(*rank) + " (PMIx)" + alone);
  }
  // A pod's name without --task_hosts.
  const std::string_view host = host_label(environment);
  if (variable(environment, "KUBERNETES_SERVICE_HOST") && task_in_name(host) &&
      !variable(environment, "JOB_COMPLETION_INDEX")) {
    sentences.push_back("the host name " + net::quoted(host) +
                        " is that of one pod of several, but without --task_hosts this task "
                        "trains alone");
  }
  return sentences;
}

}  // namespace disttf::net
