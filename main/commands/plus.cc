#include "roles/servers/shell/plus.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <utility>

#include "main/commands/registry.h"
#include "main/flag_values.h"
#include "main/flags/cluster.h"
#include "main/flags/flag_group.h"
#include "main/flags/network.h"

namespace disttf {
namespace {

constexpr const char* kSmokeTest = "Smoke test";

class PlusCommand : public Command {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kSmokeTest);
    cluster_.add_lists(app);
    timeouts_.add_heartbeat(app);
    credentials_.add_to(app, CredentialFlags::Of::kOneTask);
    add.toggle("--verbose", verbose_,
               "also print each task's round trip, version and reachable tasks");
    add.number("--wait", wait_s_, "SECONDS", 0, kDaySeconds,
               "seconds to wait for servers to start");
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    net::Cluster cluster = cluster_.find_lists(line.environment);
    std::shared_ptr<net::Credentials> credentials =
        credentials_.of_task(line.environment, cluster, {.job = net::Job::kEvaluator, .index = 0});
    return run_with(roles::PlusOptions{.cluster = std::move(cluster),
                                       .credentials = std::move(credentials),
                                       .verbose = verbose_,
                                       .wait = std::chrono::seconds(wait_s_),
                                       .heartbeat_timeout = timeouts_.options().heartbeat_timeout},
                    roles::run_plus);
  }

 private:
  ClusterFlags cluster_;
  TimeoutFlags timeouts_;
  CredentialFlags credentials_;
  bool verbose_ = false;
  std::uint64_t wait_s_ = 10;
};

}  // namespace

CommandRow plus_command() {
  return {
      .name = "plus",
      .description = "Smoke test of a cluster: its servers add 10 and 32",
      .about =
          "Checks that each server is reachable and reaches the others; names those that are "
          "missing.",
      .examples = {{"disttf plus --ps_hosts a:2222 --worker_hosts b:2222 --verbose",
                    "Prints 42, and a line for each task."}},
      .reads = {Reads::kCluster},
      .see_also = {"server"},
      .make = make_command<PlusCommand>,
  };
}

}  // namespace disttf
