#include "main/flags/network.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/tcp/sockets.h"
#include "net/tls/certificate_files.h"
#include "net/tls/secrets.h"
#include "net/tls/task_certificates.h"
#include "net/wire/text.h"
#include "run/process/confinement.h"
#include "run/process/log.h"

namespace disttf {
namespace {

constexpr const char* kTimeouts = "Timeouts: the task then exits with a message";
constexpr std::uint64_t kMostThreads = 256;

// Adds a timeout in seconds, at least `least`.
void add_timeout(CLI::App& app, const char* name, std::uint64_t& value, std::uint64_t least,
                 const char* description) {
  FlagGroup add(app, kTimeouts);
  add.number(name, value, "SECONDS", least, kDaySeconds, description);
}

}  // namespace

void TimeoutFlags::add_to(CLI::App& app) {
  add_timeout(app, "--start_timeout", start_s, 1, "wait for tasks that never connected");
  add_peer(app, "wait for a lost chief or ps");
  add_timeout(app, "--worker_timeout", worker_s, 1, "sync: wait for a lost worker");
  add_heartbeat(app);
}

void TimeoutFlags::add_peer(CLI::App& app, const char* description) {
  add_timeout(app, "--peer_timeout", peer_s, 1, description);
}

void TimeoutFlags::add_heartbeat(CLI::App& app) {
  // Heartbeats come every second: a timeout of 1 s would expire when one is slightly late.
  add_timeout(app, "--heartbeat_timeout", heartbeat_s, 2,
              "a peer without messages for this long counts as lost");
}

roles::Timeouts TimeoutFlags::options() const {
  using std::chrono::seconds;
  return {.start = seconds(start_s),
          .peer = seconds(peer_s),
          .worker = seconds(worker_s),
          .heartbeat_timeout = seconds(heartbeat_s)};
}

void NetworkFlags::add_to(CLI::App& app, CredentialFlags::Of of) {
  FlagGroup add(app, kTransportGroup);
  credentials.add_to(app, of);
  add.choice("--transport", transport, "NAME", {"auto", "tcp", "shm"},
             "transport of tensors: `auto`: shared memory between tasks of one machine, else "
             "`tcp`; `shm`: shared memory only. A ps with `tcp` shares no memory");
  add.number("--threads", threads, "N", 0, kMostThreads,
             "threads for gradients or updates; they do not affect the result. `0`: one for a "
             "trainer, for a ps its usable CPUs up to 4");
}

roles::Transport NetworkFlags::transport_option() const {
  // The check of --transport has accepted the name, so at() cannot throw.
  static const std::map<std::string, roles::Transport> kTransports = {
      {"auto", roles::Transport::kAuto},
      {"tcp", roles::Transport::kTcp},
      {"shm", roles::Transport::kSharedMemory}};
  return kTransports.at(transport);
}

namespace {

struct GivenFile {
  const char* flag;
  const std::string& path;
};

std::invalid_argument contradiction(const std::string& flag, const GivenFile& other) {
  return std::invalid_argument(flag + " is not allowed with " + other.flag + " " +
                               net::quoted(other.path) + "; give one of them");
}

// The first address on another machine, or null. Workers that may join later have an entry without
// an address.
const net::Address* elsewhere(const net::Cluster& cluster) {
  for (const auto* list : {&cluster.ps, &cluster.chief, &cluster.workers, &cluster.evaluators}) {
    const auto found = std::ranges::find_if(*list, [](const net::Address& address) {
      return address.port != 0 && !net::is_loopback_host(address.host);
    });
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

}  // namespace

void CredentialFlags::check() const {
  const GivenFile secret{"--secret_file", secret_file};
  const GivenFile certificate{"--task_cert", task_cert};
  if (insecure && !secret.path.empty()) throw contradiction("--insecure: true", secret);
  const std::array files{certificate, GivenFile{"--task_key", task_key},
                         GivenFile{"--task_ca", task_ca}};
  const auto is_given = [](const GivenFile& file) { return !file.path.empty(); };
  const auto* const given = std::ranges::find_if(files, is_given);
  // No part of a certificate: nothing more to check.
  if (given == files.end()) return;
  // A certificate without its key or its authorities must not fall back to a connection in clear
  // text.
  const auto* const missing = std::ranges::find_if_not(files, is_given);
  if (missing != files.end()) {
    throw std::invalid_argument(std::string(missing->flag) + ": missing; it belongs to " +
                                given->flag + " " + net::quoted(given->path));
  }
  if (insecure) throw contradiction("--insecure: true", certificate);
  if (!secret.path.empty()) {
    throw contradiction("--secret_file: " + net::quoted(secret.path), certificate);
  }
}

void CredentialFlags::add_to(CLI::App& app, Of of) {
  FlagGroup add(app, kTransportGroup);
  add.text("--secret_file", secret_file, "FILE",
           "file with the secret of the run: the same for all tasks, at least 32 characters, "
           "readable only by its owner; tasks then connect only by TLS [`DISTTF_SECRET`]");
  add.toggle("--insecure", insecure,
             "no [secret](security.md), even if `DISTTF_SECRET` is set: connections are in clear "
             "text, and any host that reaches a port can join. Tasks on several machines need a "
             "secret, certificates, or this");
  if (of == Of::kSeveralTasks) return;
  add.text(
      "--task_cert", task_cert, "FILE",
      "[certificate](security.md#certificates) of this task, instead of a secret, PEM; its one "
      "URI names the run and the task, as in `spiffe://example.org/mnist/worker/1`. All three "
      "files are reloaded when they change");
  add.text("--task_key", task_key, "FILE",
           "private key of `--task_cert`, PEM, unencrypted, readable only by owner and group");
  add.text("--task_ca", task_ca, "FILE", "certificate authorities of the other tasks, PEM");
}

std::shared_ptr<net::Credentials> CredentialFlags::of_task(const Environment& environment,
                                                           const net::Cluster& cluster,
                                                           const net::TaskId& self,
                                                           bool is_child) const {
  check();
  // After the contradictions are checked, and before the variable is read: --insecure overrides the
  // variable, but contradicts a flag.
  if (insecure) return nullptr;
  const std::string text = value_of(environment, net::kSecretVariable);
  if (secret_file.empty() && task_cert.empty() && text.empty()) {
    // A task that inherits its socket was started by a launch or a server, which made this check.
    const net::Address* const address = is_child ? nullptr : elsewhere(cluster);
    if (address != nullptr) {
      throw std::invalid_argument(
          "--secret_file: missing; " + net::to_string(*address) +
          " is on another machine, and without a secret any host that reaches a port can join the "
          "run. Give all tasks the same secret, by --secret_file or " +
          net::kSecretVariable + ", or certificates, or --insecure");
    }
    return nullptr;
  }
  // Before the secret is read from its file. A failure is no error: other users cannot read it in
  // any case.
  if (!roles::keep_memory_private()) {
    roles::log_debug("other processes of this user can read or dump this task's memory");
  }
  const auto warn = [](std::string_view sentence) { roles::log_warning(sentence); };
  if (!task_cert.empty()) {
    const net::TaskCertificateFiles files{
        .certificate = task_cert, .key = task_key, .authorities = task_ca};
    // A renewal replaces the files one by one: retries while they do not match.
    return net::while_renewed(
        [&] { return std::make_shared<net::TaskCertificates>(files, self, warn); });
  }
  // A flag wins over the variable.
  if (!secret_file.empty()) return std::make_shared<net::Secrets>(secret_file, warn);
  return std::make_shared<net::Secrets>(text, net::kSecretVariable);
}

void CredentialFlags::check_rendered(const std::string& secret, const char* advice) const {
  check();
  const std::array others{GivenFile{"--secret_file", secret_file},
                          GivenFile{"--task_cert", task_cert}};
  // --secret names the engine's secret; the other two name files that the user has put on the
  // machines.
  bool is_given = !secret.empty();
  for (const GivenFile& other : others) {
    if (other.path.empty()) continue;
    if (!secret.empty()) throw contradiction("--secret: " + net::quoted(secret), other);
    is_given = true;
  }
  if (!secret.empty() && insecure) {
    throw std::invalid_argument("--secret: " + net::quoted(secret) +
                                " is not allowed with --insecure; give one of them");
  }
  if (!is_given && !insecure) {
    throw std::invalid_argument(
        std::string("--secret: missing; the tasks run on several machines, and without a secret "
                    "any host that reaches a port can join the run. ") +
        advice);
  }
}

roles::SecretOfRun CredentialFlags::of_launch(const Environment& environment) const {
  check();
  if (!task_cert.empty()) {
    throw std::invalid_argument("--task_cert: " + net::quoted(task_cert) +
                                " is not allowed without a cluster: a certificate belongs to one "
                                "task, and a local run makes a secret for its tasks");
  }
  // The same order as in credentials_from(), so that the launch and its tasks agree.
  if (insecure) return roles::SecretOfRun::kNone;
  const bool is_given =
      !secret_file.empty() || !value_of(environment, net::kSecretVariable).empty();
  return is_given ? roles::SecretOfRun::kGiven : roles::SecretOfRun::kMade;
}

}  // namespace disttf
