#include "main/commands/sandbox_needs.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "main/environment.h"
#include "net/http/http_connection.h"
#include "net/tls/credentials.h"
#include "storage/store/core/google_identity.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/store_environment.h"

namespace disttf {
namespace {

// The configuration of the machine: name resolution, trusted certificates, libraries. Whole
// folders, because files of /etc are replaced while a task runs (resolv.conf). /proc is readable,
// but a sandboxed process that is not root's cannot read the secrets of other processes there.
constexpr std::array kOfTheMachine = {"/etc",
                                      "/usr",
                                      "/lib",
                                      "/lib64",
                                      "/proc",
                                      "/sys",
                                      "/dev/random",
                                      "/dev/urandom",
                                      "/run/NetworkManager",
                                      "/run/nscd",
                                      "/run/resolvconf",
                                      "/run/systemd/resolve"};
// Standard output and the log, which are opened once more when they are a terminal.
constexpr std::array kWritten = {"/proc/self/fd/1", "/proc/self/fd/2", "/dev/null"};

constexpr std::uint16_t kNames = 53;  // DNS over TCP, for long answers
constexpr std::uint16_t kHttp = 80;
constexpr std::uint16_t kHttps = 443;

// Limits of the search for links below a folder: entries, and depth.
// The search runs at every start, before the task listens: a folder of a million images must not
// delay it.
constexpr std::size_t kMostEntries = 10'000;
constexpr int kDeepest = 1;

// Folders with files of several users or of the system. A directory of models does not open these,
// nor the user's home, even if it lies directly in one.
constexpr std::array<std::string_view, 10> kOfEverybody = {
    "/", "/etc", "/home", "/proc", "/root", "/run", "/tmp", "/usr", "/var", "/var/tmp"};
// Links that lead in a circle end the search here.
constexpr int kMostLinks = 16;

std::filesystem::path existing(std::filesystem::path path) {
  std::error_code ignored;
  path = std::filesystem::absolute(path, ignored);
  // Landlock needs something that exists: the parent in which the path will be created.
  while (!std::filesystem::exists(path, ignored) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

}  // namespace

SandboxNeeds::SandboxNeeds(const net::Environment& environment) : environment_(environment) {
  policy_.read.assign(kOfTheMachine.begin(), kOfTheMachine.end());
  policy_.changed.assign(kWritten.begin(), kWritten.end());
  // Both may be links that lead out of /etc, and both may be replaced while a task runs.
  read_beside("/etc/resolv.conf");
  read_beside(net::find_ca_file());
  // An empty list allows no port; nullopt would allow all.
  policy_.listens_on.emplace();
  policy_.connects_to = {kNames};
}

void SandboxNeeds::read(const Path& place) {
  if (is_here(place)) {
    policy_.read.push_back(existing(place));
    follow_links(place);
  }
}

void SandboxNeeds::read_models(const Path& place) {
  read(place);
  if (!is_here(place)) return;
  std::error_code error;
  const Path full = std::filesystem::absolute(place, error).lexically_normal();
  read_folder_of(full);
  read_targets_of(full, kMostLinks);
}

void SandboxNeeds::read_beside(const Path& file) {
  if (file.empty()) return;
  std::error_code error;
  policy_.read.push_back(existing(std::filesystem::absolute(file, error).parent_path()));
  // The file may be a link, as in Kubernetes, whose target is replaced.
  if (const Path real = std::filesystem::canonical(file, error); !error) {
    policy_.read.push_back(real.parent_path());
  }
}

void SandboxNeeds::change(const Path& folder) {
  // The folder is created now: a rule needs an existing file, and a rule for the parent would
  // open its other folders for writing.
  if (is_here(folder)) {
    std::error_code ignored;  // the later write reports the error
    std::filesystem::create_directories(folder, ignored);
    policy_.changed.push_back(folder);
    follow_links(folder);
  }
}

void SandboxNeeds::change_beside(const Path& file) {
  if (file.empty()) return;
  std::error_code ignored;
  // The folder, because a replacement is written beside the file and renamed over it. The file
  // itself, because it may be a link or a device elsewhere.
  policy_.changed.push_back(std::filesystem::absolute(file, ignored).parent_path());
  policy_.changed.push_back(file);
}

void SandboxNeeds::connect(std::uint16_t port) {
  // After connect_anywhere() there is no list any more, and the order of the calls does not
  // matter.
  if (policy_.connects_to) policy_.connects_to->push_back(port);
}

void SandboxNeeds::metrics(const roles::MetricsOptions& metrics) {
  if (metrics.port) listen(*metrics.port);
  change_beside(metrics.textfile);
  of_address(metrics.files);  // flags without an address are rejected earlier
}

void SandboxNeeds::of_address(const roles::AddressFiles& files) {
  read_beside(files.certificate);
  read_beside(files.key);
  read_beside(files.tokens);
}

void SandboxNeeds::task(const roles::Task& task) {
  const net::Cluster& cluster = task.cluster;
  for (const net::Job job :
       {net::Job::kPs, net::Job::kWorker, net::Job::kChief, net::Job::kEvaluator}) {
    // Landlock filters by port, not by host: the lists are all that can be said about peers.
    for (const net::Address& address : cluster.tasks_of(job)) connect(address.port);
  }
  // An inherited socket listens already.
  if (task.listen_fd < 0 && task.self.index < cluster.tasks_of(task.self.job).size()) {
    listen(cluster.address_of(task.self).port);
  }
  if (!task.credentials) return;
  // Credentials are read again when their files change, long after the sandbox is in force.
  for (const std::string& file : task.credentials->files()) read_beside(file);
}

void SandboxNeeds::data(const roles::DataOptions& data) {
  const bool is_made = data.dataset != nullptr && data.dataset->is_built_in() && !data.own;
  std::error_code ignored;
  // A generated data set is written only where the directory exists.
  if (!is_made || std::filesystem::exists(data.directory, ignored)) change(data.directory);
  read_beside(data.ca_file);
  // Own data is only read: its conversion goes to the data directory.
  if (data.own) read(data.own->path);
  const bool has_proxy = !data.proxy.http_proxy.empty() || !data.proxy.https_proxy.empty() ||
                         !data.proxy.all_proxy.empty();
  // The address of a proxy or a mirror may be any.
  if (!data.mirrors.empty() || has_proxy) connect_anywhere();
  if (!data.store.empty()) use_store();
  // The ports of the built-in mirrors.
  connect(kHttp);
  connect(kHttps);
}

void SandboxNeeds::trainer(const roles::TrainerOptions& options, bool is_chief) {
  task(options.task);
  data(options.data);
  change_beside(options.metrics_file);
  // Workers write neither checkpoints nor summaries, so a worker that an attacker controls cannot
  // damage them.
  if (!is_chief) return;
  change(options.checkpoint.train_dir);
  change(options.summaries.directory);
  if (options.page) listen(options.page->port);
}

void SandboxNeeds::timelines(const roles::CheckpointOptions& checkpoint) {
  if (checkpoint.train_dir.empty() || roles::is_store_url(checkpoint.train_dir)) {
    std::error_code error;
    change(std::filesystem::temp_directory_path(error));
  }
}

void SandboxNeeds::read_folder_of(const Path& place) {
  Path folder = (place.has_filename() ? place : place.parent_path()).parent_path();
  const std::string home = value_of(environment_, "HOME");
  std::error_code error;
  const Path real = std::filesystem::weakly_canonical(folder, error);
  const bool holds_everything =
      error || std::ranges::find(kOfEverybody, real.string()) != std::end(kOfEverybody) ||
      (!home.empty() && real == std::filesystem::weakly_canonical(home, error));
  if (!holds_everything) policy_.read.push_back(std::move(folder));
}

void SandboxNeeds::read_targets_of(const Path& place, int links_left) {
  Path way;
  std::error_code error;
  for (const Path& each : place) {
    way /= each;
    if (links_left == 0 || !std::filesystem::is_symlink(way, error)) continue;
    const Path target =
        (way.parent_path() / std::filesystem::read_symlink(way, error)).lexically_normal();
    if (error) continue;
    read_folder_of(target);
    read_targets_of(target, links_left - 1);
  }
}

bool SandboxNeeds::is_here(const Path& place) {
  if (place.empty()) return false;
  if (roles::is_store_url(place)) use_store();
  return !roles::is_store_url(place);
}

void SandboxNeeds::use_store() {
  connect_anywhere();
  // Where a store's credentials may be: the files are renewed by other programs, hence their
  // folders.
  for (const char* name : roles::kStoreFileVariables) read_beside(value_of(environment_, name));
  read_token_of_workload(value_of(environment_, "GOOGLE_APPLICATION_CREDENTIALS"));
  read(value_of(environment_, "CLOUDSDK_CONFIG"));
  read(value_of(environment_, "HADOOP_CONF_DIR"));
  if (const std::string home = value_of(environment_, "HOME"); !home.empty()) {
    policy_.read.emplace_back(home + "/.aws");
    policy_.read.emplace_back(home + "/.config/gcloud");
  }
}

void SandboxNeeds::read_token_of_workload(const std::string& credentials) {
  std::ifstream file(credentials, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string ignored;
  if (const auto identity = roles::federated_identity_from(text, ignored)) {
    read_beside(identity->file);
  }
}

void SandboxNeeds::follow_links(const Path& folder) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  // An unreadable folder ends the search without an error: the code that uses the folder reports
  // it.
  for (std::size_t count = 0;
       !error && entry != std::filesystem::recursive_directory_iterator() && count < kMostEntries;
       entry.increment(error), ++count) {
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    std::error_code ignored;
    if (entry->is_symlink(ignored)) policy_.read.push_back(entry->path());
  }
}

}  // namespace disttf
