#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "main/commands/registry.h"
#include "main/commands/sandbox_needs.h"
#include "main/flag_values.h"
#include "main/flags/addresses.h"
#include "main/flags/cluster.h"
#include "main/flags/flag_group.h"
#include "main/flags/model_input.h"
#include "main/flags/network.h"
#include "main/version.h"
#include "math/denormals.h"
#include "net/wire/text.h"
#include "roles/serve/shell/serve_command.h"
#include "run/process/machine.h"

namespace disttf {
namespace {

constexpr const char* kServeGroup = "Serve";
// These bounds are against typing errors: they are far above what a service needs.
constexpr std::size_t kMostServeThreads = 64;
constexpr std::size_t kMostBatch = 4096;
constexpr std::size_t kMostQueue = std::size_t{1} << 24U;
constexpr std::size_t kMostVersions = 64;
constexpr std::size_t kMostBodyMib = 1024;
constexpr std::size_t kMostTimeoutMs = 3'600'000;
constexpr std::size_t kMostDrainSeconds = 3600;
constexpr std::size_t kMostFollowSeconds = 86'400;
constexpr std::size_t kMostConnections = std::size_t{1} << 20U;

// The first given flag that concerns a run to follow; empty: none.
std::string flag_of_run(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    // By group, so that a new flag of the cluster counts without a change here; the others are in
    // groups that serve shares with other flags.
    const bool is_of_run =
        group == kClusterGroup || group == kFindGroup || option->check_lname("follow_secs") ||
        option->check_lname("heartbeat_timeout") || option->check_lname("secret_file") ||
        option->check_lname("insecure") || option->check_lname("task_cert") ||
        option->check_lname("task_key") || option->check_lname("task_ca");
    if (is_of_run && option->count() > 0) {
      return "--" + option->get_lnames().front();
    }
  }
  return {};
}

class Service : public RunWith<roles::ServeOptions> {
 public:
  using RunWith::RunWith;

  [[nodiscard]] std::optional<roles::SandboxPolicy> sandbox(
      const net::Environment& environment) const override {
    SandboxNeeds needs(environment);
    needs.listen(options.port);
    needs.change_beside(options.access_log);
    needs.of_address(options.files);
    // A service that follows a run reads parameters from the ps and needs no folder of models.
    if (options.follow) {
      needs.task(options.follow->task);
    } else {
      needs.read_models(options.directory);
    }
    return std::move(needs).take();
  }
};

// The names of --host_names, in lower case.
std::vector<std::string> host_names_from(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (const std::string& text : split_at_commas(texts)) {
    // The wildcard is allowed only as the whole first label.
    const std::string_view rest = std::string_view(text).substr(text.starts_with("*.") ? 2 : 0);
    const bool is_name = !rest.empty() && std::ranges::all_of(rest, [](char c) {
      return net::is_letter(c) || net::is_digit(c) || c == '-' || c == '_' || c == '.';
    });
    if (text != "*" && !is_name) {
      throw std::invalid_argument("--host_names: " + net::quoted(text) +
                                  " is not a name, as models.example.org or *.example.org, nor *");
    }
    // Host names are compared without case.
    names.push_back(net::to_lower(text));
  }
  return names;
}

class ServeCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kServeGroup);
    app.add_option("DIR")->description(
        "The --train_dir of a run, or a directory of models in folders named by whole numbers: "
        "serves its newest model, also later ones. Without DIR serves the parameters of the run "
        "that "
        "--ps_hosts and --worker_hosts name");
    add.number("--port", serve_.port, "PORT", 0, kMostPort,
               "listen port; 0: any free port, which the log shows");
    add.text("--host", serve_.host, "ADDRESS", "listen IP address; `all` or 0.0.0.0: all addresses")
        ->check(ip_address_or_all());
    add.text("--host_names", host_names_, "NAME,...",
             "more host names that clients may use ([default names](serve.md#names)): "
             "`models.example.org`, `*.example.org` for all below it, `*` for any");
    add_input_range_flag(app, input_range_, kServeGroup);
    add.text("--name", serve_.name, "NAME", "name of the model in URLs");
    add.number("--keep_versions", serve_.keep_versions, "N", 1, kMostVersions,
               "number of newest versions that clients can request");
    add.number("--follow_secs", follow_secs_, "SECONDS", 0, kMostFollowSeconds,
               "following a run: least seconds between two versions; 0: no pause");
    add_address_flags(app, serve_.files, "answer", kServeGroup);
    credentials_.add_to(app, CredentialFlags::Of::kOneTask);
    add_limits(app);
    add.text("--access_log", serve_.access_log, "FILE",
             "file for a line of JSON per answer [none]");
    cluster_.add_lists(app);
    add_max_workers(app, max_workers_, kClusterGroup);
    cluster_.add_finding(app);
    timeouts_.add_heartbeat(app);
  }
  void add_last_options(CLI::App& app) override {
    WordCommand::add_last_options(app);
    add_confine(app, confine_);
  }

  std::unique_ptr<Action> action(const ParsedLine& line) override {
    line.invocation.confines = confine_;
    const auto run = [](const roles::ServeOptions& options) {
      math::flush_denormals();  // before there is a second thread
      return roles::run_serve(options);
    };
    return std::make_unique<Service>(options(line), run, roles::ProcessKind::kServe);
  }

 private:
  void add_limits(CLI::App& app) {
    FlagGroup add(app, kServeGroup);
    add.number("--threads", threads_, "N", 1, kMostServeThreads,
               "threads that read, compute and write [all usable CPUs]");
    add.number("--max_batch", serve_.limits.max_batch, "N", 1, kMostBatch, "most rows in a batch");
    add.number("--max_queue", serve_.limits.max_queue, "N", 1, kMostQueue,
               "most rows that wait for a thread; further requests get 503");
    add.number("--max_body", max_body_mib_, "N", 1, kMostBodyMib,
               "largest request body in MiB [256 rows of the model, at least 4]");
    add.number("--max_connections", serve_.max_connections, "N", 1, kMostConnections,
               "most open connections");
    add.number("--timeout", timeout_ms_, "N", 1, kMostTimeoutMs,
               "longest wait for a thread in ms; then a request gets 504");
    add.number("--drain", drain_s_, "N", 0, kMostDrainSeconds,
               "seconds after SIGTERM in which requests are answered and /v2/health/ready returns "
               "503");
  }

  void take(std::vector<std::string>& arguments) override {
    if (begins_with_word(arguments)) {
      directory_ = take_only_word(arguments, "serve", "directory");
    }
  }

  // Throws std::invalid_argument unless exactly one of directory and cluster is given, and if the
  // name cannot be part of a URL.
  [[nodiscard]] roles::ServeOptions options(const ParsedLine& line) const {
    roles::ServeOptions options = serve_;
    // A directory and a run at once would leave open which of them is served.
    const std::string of_run = flag_of_run(line.app);
    if (directory_.empty()) {
      // A container may get its run from TF_CONFIG alone.
      if (of_run.empty() && !net::is_task_environment(line.environment)) {
        throw std::invalid_argument(
            "serve: the directory is missing; for example serve TRAIN_DIR "
            "--port 8501, or --ps_hosts and --worker_hosts name a run to follow (see disttf serve "
            "--help)");
      }
      options.follow = follow_options(line);
    } else if (!of_run.empty()) {
      throw std::invalid_argument(of_run + ": is for following a run, but " +
                                  net::quoted(directory_) + " is a directory; give one of them");
    }
    const bool is_name = !options.name.empty() && std::ranges::all_of(options.name, [](char c) {
      return net::is_letter(c) || net::is_digit(c) || c == '-' || c == '_' || c == '.';
    });
    // The name is a segment of URLs, in which clients resolve these two.
    if (!is_name || options.name == "." || options.name == "..") {
      throw std::invalid_argument("--name: " + net::quoted(options.name) +
                                  " is not a name of letters, digits, -, _ and .");
    }
    options.host_names = host_names_from(host_names_);
    options.limits.input_range = input_range_from(input_range_);
    check_address_flags(options.files);
    options.directory = directory_;
    options.version = kVersion;
    options.threads = threads_.value_or(std::min(roles::processors(), kMostServeThreads));
    options.limits.timeout = std::chrono::milliseconds(timeout_ms_);
    // 0: the service derives the bound from its model.
    options.limits.max_body_bytes = max_body_mib_.value_or(0) << 20U;
    options.drain = std::chrono::seconds(drain_s_);
    return options;
  }

  // Follows the run as an evaluator that is in no list of the cluster.
  [[nodiscard]] roles::FollowOptions follow_options(const ParsedLine& line) const {
    net::ClusterFlags wanted = cluster_.for_resolvers(net::Job::kEvaluator);
    wanted.max_workers = max_workers_;
    net::Resolution resolution = net::find_cluster(wanted, line.environment);
    line.invocation.warnings = std::move(resolution.warnings);
    if (!resolution.found) {
      throw std::invalid_argument(
          "--ps_hosts: missing; --ps_hosts and --worker_hosts name the run to follow");
    }
    net::Cluster& cluster = resolution.found->cluster;
    const net::TaskId self{.job = net::Job::kEvaluator, .index = 0};
    // Before the cluster is moved from below.
    std::shared_ptr<net::Credentials> credentials =
        credentials_.of_task(line.environment, cluster, self);
    return {.task = {.cluster = std::move(cluster),
                     .self = self,
                     .incarnation = roles::new_incarnation(),
                     .timeouts = {.heartbeat_timeout = timeouts_.options().heartbeat_timeout},
                     .credentials = std::move(credentials)},
            .every = std::chrono::seconds(follow_secs_)};
  }

  std::string directory_;  // empty: a run is followed
  roles::ServeOptions serve_;
  std::size_t timeout_ms_ = 10'000;
  std::size_t drain_s_ = 1;
  std::optional<std::size_t> max_body_mib_;  // nullopt: by the model
  std::string input_range_ = "byte";
  std::vector<std::string> host_names_;
  std::optional<std::size_t> threads_;  // nullopt: roles::processors()
  std::size_t follow_secs_ = 10;
  ClusterFlags cluster_;
  std::optional<std::size_t> max_workers_;
  TimeoutFlags timeouts_;
  CredentialFlags credentials_;
  bool confine_ = true;
};

}  // namespace

CommandRow serve_command() {
  return {
      .name = "serve",
      .description = "Serve a trained model over HTTP",
      .words = "DIR",
      .about =
          "Supports TensorFlow Serving's REST API and the Open Inference Protocol, has a "
          "page to draw on, and loads newer models.",
      .examples = {{"disttf serve run --port 8501",
                    "Then ask http://127.0.0.1:8501/v1/models/default:predict."}},
      .files = {kCheckpointsFile},
      .reads = {Reads::kStores},
      .see_also = {"predict", "render"},
      .make = make_command<ServeCommand>,
  };
}

}  // namespace disttf
