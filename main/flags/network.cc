#include "main/flags/network.h"

#include <CLI/CLI.hpp>
#include <map>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "main/flags/group_names.h"

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

}  // namespace disttf
