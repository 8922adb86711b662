// MPI and torchrun number the processes that they start, but tell them no addresses. Each of them
// would train alone and report success, so that is refused.
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
    Launcher{"torchrun", "RANK", "WORLD_SIZE"},
};

// RANK alone is anybody's.
[[nodiscard]] bool is_there(const Launcher& launcher, const Environment& environment) {
  if (!variable(environment, launcher.rank)) return false;
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
        " numbers the tasks but tells no addresses; give each --job_name, --task_index, "
        "--ps_hosts and --worker_hosts, start them with srun, or say --resolver local");
  }
}

}  // namespace disttf::net
