#include "tests/process/slurm.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

const std::string kController = "control";
constexpr std::array<const char*, 3> kNodes = {"n1", "n2", "n3"};
// Slurm does not notify clients of state changes of jobs and nodes, so it is polled at this
// interval.
constexpr std::chrono::milliseconds kAskEvery{50};

const Words kSlurmPrograms = {"/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd",
                              "/usr/bin/sbatch",  "/usr/bin/srun",       "/usr/bin/scontrol",
                              "/usr/bin/scancel", "/usr/bin/sinfo",      "/usr/bin/unshare",
                              "/usr/bin/env"};

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string text = name.data();
  return text.substr(0, text.find('.'));
}

// munged requires 32 bytes or more, which only its user can read.
void write_key(const fs::path& path) {
  std::random_device random;
  std::ofstream file(path, std::ios::binary);
  for (int each = 0; each < 128; ++each) {
    file.put(static_cast<char>(random()));
  }
  file.close();
  fs::permissions(path, fs::perms::owner_read);
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Returns a field of "... JobState=RUNNING Reason=None ...".
std::string field(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find(" " + name + "=");
  if (begin == std::string::npos) {
    return {};
  }
  const std::size_t value = begin + name.size() + 2;
  return text.substr(value, text.find_first_of(" \n", value) - value);
}

}  // namespace

std::unique_ptr<Slurm> Slurm::create(const fs::path& folder, std::string& why) {
  for (const std::string& program : kSlurmPrograms) {
    if (access(program.c_str(), X_OK) != 0) {
      why = program + " is missing (Debian: slurm-wlm, munge; .ci/install engines)";
      return nullptr;
    }
  }
  Words hosts(kNodes.begin(), kNodes.end());
  hosts.push_back(kController);
  std::unique_ptr<Network> network = Network::create(hosts, why);
  if (!network) {
    return nullptr;
  }
  std::unique_ptr<Slurm> slurm(new Slurm(folder, std::move(network)));
  try {
    slurm->start();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(error.what() + ("\n" + slurm->report()));
  }
  return slurm;
}

Slurm::Slurm(const fs::path& folder, std::unique_ptr<Network> network)
    : folder_(folder), network_(std::move(network)) {}

// Timeouts are short: a dead node must be detected within seconds. Processes are found through
// /proc, and counted rather than confined, so no cgroups are needed.
void Slurm::write_config() const {
  const std::string folder = folder_.string();
  std::ofstream file(folder_ / "slurm.conf");
  file << "ClusterName=disttf\n"
       << "SlurmctldHost=" << host_name() << "(" << network_->address_of(kController) << ")\n"
       << "SlurmUser=root\nSlurmdUser=root\n"
       << "AuthType=auth/munge\nCredType=cred/munge\n"
       << "AuthInfo=socket=" << folder << "/munge.socket\n"
       << "StateSaveLocation=" << folder << "/state\n"
       << "SlurmdSpoolDir=" << folder << "/spool/%n\n"
       << "SlurmctldPidFile=" << folder << "/slurmctld.pid\n"
       << "SlurmdPidFile=" << folder << "/slurmd-%n.pid\n"
       << "MailProg=/bin/true\nMpiDefault=none\n"
       << "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
       << "JobAcctGatherType=jobacct_gather/none\n"
       << "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n"
       << "SlurmdParameters=config_overrides\n"  // a test machine may have fewer cores
       << "ReturnToService=2\nSlurmdTimeout=5\nKillWait=2\n";
  int port = 17001;
  for (const std::string node : kNodes) {
    file << "NodeName=" << node << " NodeHostname=" << host_name()
         << " NodeAddr=" << network_->address_of(node) << " Port=" << port++
         << " CPUs=4 State=UNKNOWN\n";
  }
  file << "PartitionName=all Nodes=ALL Default=YES State=UP\n";
  // Named explicitly, so that Slurm does not look for cgroups: a host of the Network has none.
  std::ofstream(folder_ / "cgroup.conf") << "CgroupPlugin=cgroup/v1\n";
}

void Slurm::start() {
  fs::create_directories(folder_ / "state");
  for (const char* const node : kNodes) {
    fs::create_directories(folder_ / "spool" / node);
  }
  write_key(folder_ / "munge.key");
  write_config();
  const std::string folder = folder_.string();
  Process& munged =
      start_on(kController,
               {"/usr/sbin/munged", "--foreground", "--force",
                "--key-file=" + folder + "/munge.key", "--socket=" + folder + "/munge.socket",
                "--pid-file=" + folder + "/munged.pid", "--seed-file=" + folder + "/munge.seed"});
  if (!munged.wait_for_line("Created .* work threads")) {
    throw std::runtime_error("munged did not start");
  }
  start_on(kController, {"/usr/sbin/slurmctld", "-D", "-c", "-f", folder + "/slurm.conf"});
  for (const std::string node : kNodes) {
    // All nodes share this machine's host name, so each daemon gets its node's name.
    start_on(node, {"/usr/sbin/slurmd", "-D", "-N", node, "-f", folder + "/slurm.conf"});
  }
  wait_for_nodes();
}

// The program is the first of a PID namespace; when it ends, all processes in it end.
Process& Slurm::start_on(const std::string& host, const Words& words) {
  Words all = network_->words_on(host);
  for (const char* word : {"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}) {
    all.emplace_back(word);
  }
  all.insert(all.end(), words.begin(), words.end());
  const std::string name = fs::path(words.front()).filename().string() + " on " + host;
  auto& daemon = daemons_[name];
  daemon = std::make_unique<Process>(ProcessOptions{.program = network_->program(),
                                                    .arguments = all,
                                                    .environment = {},
                                                    .working_directory = folder_,
                                                    .name = name});
  return *daemon;
}

std::string Slurm::command(const Words& words) {
  Words all = network_->words_on(kController);
  all.push_back("/usr/bin/env");
  all.push_back("SLURM_CONF=" + (folder_ / "slurm.conf").string());
  all.insert(all.end(), words.begin(), words.end());
  Process process({.program = network_->program(),
                   .arguments = all,
                   .environment = {},
                   .working_directory = folder_,
                   .name = words.front()});
  if (process.wait().exit_code != 0) {
    throw std::runtime_error(process.report());
  }
  return process.standard_output();
}

void Slurm::wait_for_nodes() {
  const auto deadline = Clock::now() + kPatience;
  std::string states;
  while (Clock::now() < deadline) {
    try {
      states = command({"/usr/bin/sinfo", "--noheader", "--Node", "--format=%T"});
    } catch (const std::runtime_error& error) {
      states = error.what();  // the controller does not answer yet
    }
    if (states == "idle\nidle\nidle\n") {
      return;
    }
    std::this_thread::sleep_for(kAskEvery);
  }
  throw std::runtime_error("the nodes did not become idle: " + states);
}

std::string Slurm::submit(const fs::path& script) {
  const std::string job = command({"/usr/bin/sbatch", "--parsable", script.string()});
  return job.substr(0, job.find('\n'));
}

void Slurm::cancel(const std::string& job) {
  static_cast<void>(command({"/usr/bin/scancel", job}));
}

std::string Slurm::show(const std::string& job) {
  return command({"/usr/bin/scontrol", "--oneliner", "show", "job", job});
}

std::string Slurm::wait_for_end(const std::string& job, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (true) {
    const std::string state = field(show(job), "JobState");
    // All other states are those of an ended job.
    const bool goes_on = state == "PENDING" || state == "CONFIGURING" || state == "RUNNING" ||
                         state == "COMPLETING" || state == "SUSPENDED";
    if (!goes_on || Clock::now() >= deadline) {
      return state;
    }
    std::this_thread::sleep_for(kAskEvery);
  }
}

void Slurm::kill_node(const std::string& node) {
  Process& daemon = *daemons_.at("slurmd on " + node);
  // Kills unshare, which takes the daemon along; the node's jobs end with its PID namespace.
  daemon.send(SIGKILL);
  daemon.wait();
}

std::string Slurm::report() const {
  std::string text;
  for (const auto& [name, daemon] : daemons_) {
    text += daemon->report();
  }
  return text + "\n--- slurm.conf\n" + text_of(folder_ / "slurm.conf");
}

}  // namespace disttf::test_process
