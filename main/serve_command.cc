#include "main/serve_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "main/commands/sandbox_needs.h"
#include "main/flag_values.h"
#include "main/flags/addresses.h"
#include "main/input_range_flag.h"
#include "main/version.h"
#include "math/denormals.h"
#include "net/wire/text.h"
#include "roles/process/machine.h"

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
constexpr std::uint64_t kMostHealthcheckSeconds = 3600;
constexpr std::size_t kMostFollowSeconds = 86'400;
constexpr std::size_t kMostConnections = std::size_t{1} << 20U;

void add_limits(CLI::App& app, Flags& flags) {
  roles::ServeOptions& serve = flags.serve;
  const auto add = [&app](const char* name, auto& value, const char* about, std::size_t least,
                          std::size_t most) {
    return app.add_option(name, value, about)
        ->type_name("N")
        ->transform(whole_number(least, most))
        ->group(kServeGroup);
  };
  add("--threads", flags.serve_threads, "threads that read, compute and write [all usable CPUs]", 1,
      kMostServeThreads);
  add("--max_batch", serve.limits.max_batch, "most rows in a batch", 1, kMostBatch)
      ->capture_default_str();
  add("--max_queue", serve.limits.max_queue,
      "most rows that wait for a thread; further requests get 503", 1, kMostQueue)
      ->capture_default_str();
  add("--max_body", flags.serve_max_body_mib,
      "largest request body in MiB [256 rows of the model, at least 4]", 1, kMostBodyMib);
  add("--max_connections", serve.max_connections, "most open connections", 1, kMostConnections)
      ->capture_default_str();
  add("--timeout", flags.serve_timeout_ms,
      "longest wait for a thread in ms; then a request gets 504", 1, kMostTimeoutMs)
      ->capture_default_str();
  add("--drain", flags.serve_drain_s,
      "seconds after SIGTERM in which requests are answered and /v2/health/ready returns 503", 0,
      kMostDrainSeconds)
      ->capture_default_str();
}

// Takes the word before the flags; empty: there is none. Throws if another word follows.
std::string take_word(std::vector<std::string>& arguments, const std::string& command,
                      const std::string& word) {
  if (arguments.empty() || arguments.front().starts_with("-")) {
    return {};
  }
  std::string value = std::move(arguments.front());
  arguments.erase(arguments.begin());
  if (!arguments.empty() && !arguments.front().starts_with("-")) {
    // A second word would otherwise be reported as a value without a flag.
    throw std::invalid_argument(command + ": one " + word + ", but " +
                                net::quoted(arguments.front()) + " follows it");
  }
  return value;
}

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

// Follows the run as an evaluator that is in no list of the cluster.
roles::FollowOptions follow_options(const Flags& flags, const net::Environment& environment,
                                    std::vector<std::string>& warnings) {
  net::ClusterFlags wanted = flags.cluster.for_resolvers(net::Job::kEvaluator);
  if (flags.run.training.max_workers != 0) {
    wanted.max_workers = flags.run.training.max_workers;
  }
  net::Resolution resolution = net::find_cluster(wanted, environment);
  warnings = std::move(resolution.warnings);
  if (!resolution.found) {
    throw std::invalid_argument(
        "--ps_hosts: missing; --ps_hosts and --worker_hosts name the run to follow");
  }
  net::Cluster& cluster = resolution.found->cluster;
  const net::TaskId self{.job = net::Job::kEvaluator, .index = 0};
  // Before the cluster is moved from below.
  std::shared_ptr<net::Credentials> credentials =
      flags.run.network.credentials.of_task(environment, cluster, self);
  return {.task = {.cluster = std::move(cluster),
                   .self = self,
                   .incarnation = roles::new_incarnation(),
                   .timeouts = {.heartbeat_timeout =
                                    std::chrono::seconds(flags.run.timeouts.heartbeat_s)},
                   .credentials = std::move(credentials)},
          .every = std::chrono::seconds(flags.serve_follow_secs)};
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

}  // namespace

void add_serve_flags(CLI::App& app, Flags& flags) {
  // For the help; the word is taken off the command line before the flags are read.
  app.add_option("DIR")->description(
      "The --train_dir of a run, or a directory of models in folders named by whole numbers: "
      "serves its newest model, also later ones. Without DIR serves the parameters of the run that "
      "--ps_hosts and --worker_hosts name");
  roles::ServeOptions& serve = flags.serve;
  app.add_option("--port", serve.port, "listen port; 0: any free port, which the log shows")
      ->type_name("PORT")
      ->transform(whole_number(0, kMostPort))
      ->capture_default_str()
      ->group(kServeGroup);
  app.add_option("--host", serve.host, "listen IP address; `all` or 0.0.0.0: all addresses")
      ->type_name("ADDRESS")
      ->check(ip_address_or_all())
      ->capture_default_str()
      ->group(kServeGroup);
  app.add_option("--host_names", flags.serve_host_names,
                 "more host names that clients may use ([default names](serve.md#names)): "
                 "`models.example.org`, `*.example.org` for all below it, `*` for any")
      ->type_name("NAME,...")
      ->group(kServeGroup);
  add_input_range_flag(app, flags.input_range, kServeGroup);
  app.add_option("--name", serve.name, "name of the model in URLs")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kServeGroup);
  app.add_option("--keep_versions", serve.keep_versions,
                 "number of newest versions that clients can request")
      ->type_name("N")
      ->transform(whole_number(1, kMostVersions))
      ->capture_default_str()
      ->group(kServeGroup);
  app.add_option("--follow_secs", flags.serve_follow_secs,
                 "following a run: least seconds between two versions; 0: no pause")
      ->type_name("SECONDS")
      ->transform(whole_number(0, kMostFollowSeconds))
      ->capture_default_str()
      ->group(kServeGroup);
  add_address_flags(app, serve.files, "answer", kServeGroup);
  flags.run.network.credentials.add_to(app, CredentialFlags::Of::kOneTask);
  add_limits(app, flags);
  app.add_option("--access_log", serve.access_log, "file for a line of JSON per answer [none]")
      ->type_name("FILE")
      ->group(kServeGroup);
}

std::string take_serve_word(std::vector<std::string>& arguments) {
  return take_word(arguments, "serve", "directory");
}

roles::ServeOptions serve_options(const std::string& directory, const CLI::App& app,
                                  const Flags& flags, const net::Environment& environment,
                                  std::vector<std::string>& warnings) {
  roles::ServeOptions options = flags.serve;
  // A directory and a run at once would leave open which of them is served.
  const std::string of_run = flag_of_run(app);
  if (directory.empty()) {
    // A container may get its run from TF_CONFIG alone.
    if (of_run.empty() && !net::is_task_environment(environment)) {
      throw std::invalid_argument(
          "serve: the directory is missing; for example serve TRAIN_DIR "
          "--port 8501, or --ps_hosts and --worker_hosts name a run to follow (see disttf serve "
          "--help)");
    }
    options.follow = follow_options(flags, environment, warnings);
  } else if (!of_run.empty()) {
    throw std::invalid_argument(of_run + ": is for following a run, but " + net::quoted(directory) +
                                " is a directory; give one of them");
  }
  const bool is_name = !options.name.empty() && std::ranges::all_of(options.name, [](char c) {
    return net::is_letter(c) || net::is_digit(c) || c == '-' || c == '_' || c == '.';
  });
  // The name is a segment of URLs, in which clients resolve these two.
  if (!is_name || options.name == "." || options.name == "..") {
    throw std::invalid_argument("--name: " + net::quoted(options.name) +
                                " is not a name of letters, digits, -, _ and .");
  }
  options.host_names = host_names_from(flags.serve_host_names);
  options.limits.input_range = input_range_from(flags.input_range);
  check_address_flags(options.files);
  options.directory = directory;
  options.version = kVersion;
  options.threads = flags.serve_threads != 0 ? flags.serve_threads
                                             : std::min(roles::processors(), kMostServeThreads);
  options.limits.timeout = std::chrono::milliseconds(flags.serve_timeout_ms);
  // 0 stays 0: the service derives the bound from its model.
  options.limits.max_body_bytes = flags.serve_max_body_mib << 20U;
  options.drain = std::chrono::seconds(flags.serve_drain_s);
  return options;
}

std::unique_ptr<Action> run_service(roles::ServeOptions options) {
  const auto run = [](const roles::ServeOptions& given) {
    math::flush_denormals();  // before there is a second thread
    return roles::run_serve(given);
  };
  return std::make_unique<Service>(std::move(options), run, roles::ProcessKind::kServe);
}

void add_healthcheck_flags(CLI::App& app, Flags& flags) {
  // For the help, as above.
  app.add_option("URL")->description(
      "The URL to request, such as http://127.0.0.1:8501/v2/health/ready: exits with 0 if the "
      "status is 200, else 1; without it the disttf of this container");
  app.add_option("--timeout", flags.healthcheck_timeout_s,
                 "seconds for the whole check; then it fails")
      ->type_name("SECONDS")
      ->transform(whole_number(1, kMostHealthcheckSeconds))
      ->capture_default_str()
      ->group("Healthcheck");
  app.add_option("--ca_file", flags.run.data.ca_file,
                 "trusted certificate authorities of an https URL, PEM [the system's file]")
      ->type_name("FILE")
      ->group("Healthcheck");
  app.add_option("--token_file", flags.healthcheck_token_file,
                 "file whose first [token](security.md#access-tokens) is sent")
      ->type_name("FILE")
      ->group("Healthcheck");
}

std::optional<net::Url> take_healthcheck_word(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with("-")) {
    return std::nullopt;
  }
  return net::parse_url("healthcheck", take_word(arguments, "healthcheck", "URL"));
}

}  // namespace disttf
