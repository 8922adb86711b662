#include <stdexcept>
#include <utility>

#include "main/commands/registry.h"
#include "main/commands/resolution_text.h"
#include "main/commands/task_command.h"
#include "main/flags/run.h"
#include "main/version.h"
#include "roles/servers/shell/task_server.h"

namespace disttf {
namespace {

class ServerCommand : public Command {
 public:
  void add_options(CLI::App& app) override {
    cluster_.add_lists(app);
    timeouts_.add_heartbeat(app);
    cluster_.add_identity(app, /*names_job=*/true);
    cluster_.add_finding(app);
    data_.add_to(app, DataFlags::Takes::kNamed);
    // The driver sends the other timeouts with its request.
    timeouts_.add_peer(app, "wait for an answer or the next request");
    network_.add_to(app, CredentialFlags::Of::kOneTask);
    add_metrics_flags(app, metrics_);
    inherited_.add_listen_fd(app);
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    Invocation& invocation = line.invocation;
    check_addresses(metrics_, {});
    invocation.log.name_task = !inherited_.is_child();
    net::Resolution resolution =
        net::find_cluster(wanted_cluster(cluster_, inherited_, {}), line.environment);
    invocation.warnings = std::move(resolution.warnings);
    if (!inherited_.is_child()) {  // else launch has logged it
      invocation.summary = summary(resolution);
    }
    if (!resolution.found) {
      throw std::invalid_argument(
          "--job_name: missing; a server needs --job_name, --task_index, --ps_hosts and "
          "--worker_hosts, or an environment that describes a cluster");
    }
    invocation.log.task = net::task_name(resolution.found->task);
    // A server has no training options of its own: the driver sends each run's, so only the words
    // for its tasks are kept.
    return run_with(
        roles::TaskServerOptions{.task = make_task(network_, timeouts_, inherited_,
                                                   line.environment, std::move(*resolution.found)),
                                 .version = "disttf " + std::string(kVersion),
                                 .task_arguments = arguments_for_tasks(line.app)},
        roles::run_task_server, roles::ProcessKind::kLauncher);
  }

 private:
  ClusterFlags cluster_;
  TimeoutFlags timeouts_;
  DataFlags data_;
  NetworkFlags network_;
  roles::MetricsOptions metrics_;
  InheritedFlags inherited_;
};

}  // namespace

CommandRow server_command() {
  return {
      .name = "server",
      .description = "A task that waits for requests of plus or train --existing_servers",
      .about = "Waits for a driver, and runs its task of one run after the other.",
      .examples =
          {{"disttf server --job_name ps --task_index 0 --ps_hosts a:2222 --worker_hosts b:2222",
            "A parameter server that waits."}},
      .files = {kInputDataFile, kAuthoritiesFile},
      .reads = {Reads::kCluster, Reads::kDownloads, Reads::kStores},
      .see_also = {"plus", "train"},
      .make = make_command<ServerCommand>,
  };
}

}  // namespace disttf
