#include "tests/process/container_host.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <stdexcept>

#include "tests/process/process.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// netavark calls iptables, on which its package does not depend.
const Words kPrograms = {
    "/usr/bin/podman",  "/usr/bin/buildah",         "/usr/bin/crun",
    "/usr/bin/conmon",  "/usr/lib/podman/netavark", "/usr/lib/podman/aardvark-dns",
    "/usr/bin/unshare", "/usr/bin/nsenter",         "/usr/bin/umount",
    "/usr/sbin/ip",     "/usr/sbin/iptables"};

// podman keeps the names of a network in /run, wherever its images are, so this machine has its own
// /run. If both cgroup versions are mounted, crun assumes version 2 and fails; the version 2 mount
// is removed, here only. Process 1 then only has to keep running.
const std::string kFirstProcess =
    "umount /sys/fs/cgroup/unified 2>/dev/null; "
    "mount -t tmpfs tmpfs /run && ip link set lo up && echo ready; "
    "while :; do sleep 1000 & wait; done";

std::string last_stage(const fs::path& containerfile) {
  std::ifstream file(containerfile);
  std::string stage;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("FROM ")) {
      stage.clear();
    }
    stage += line + "\n";
  }
  return stage;
}

// Removes the empty groups that podman made for pods. Each folder there must be removed separately.
void remove_pod_groups() {
  std::error_code error;
  for (const auto& controller : fs::directory_iterator("/sys/fs/cgroup", error)) {
    const fs::path parent = controller.path() / "libpod_parent";
    std::vector<fs::path> groups = {parent};
    for (const auto& entry : fs::recursive_directory_iterator(parent, error)) {
      if (entry.is_directory(error)) {
        groups.push_back(entry.path());
      }
    }
    std::sort(groups.rbegin(), groups.rend());  // inner groups first
    for (const fs::path& group : groups) {
      rmdir(group.c_str());
    }
  }
}

}  // namespace

std::unique_ptr<ContainerHost> ContainerHost::create(const fs::path& folder, bool pods,
                                                     std::string& why) {
  for (const std::string& program : kPrograms) {
    if (access(program.c_str(), X_OK) != 0) {
      why = program + " is missing (.ci/install engines)";
      return nullptr;
    }
  }
  std::unique_ptr<ContainerHost> host(new ContainerHost(folder, pods));
  if (!host->start_machine()) {
    why = "this process may not create namespaces: " + host->machine_->report();
    return nullptr;
  }
  host->build_image();
  try {
    host->run({"podman", "network", "create", "--subnet=10.89.0.0/24", "cluster"});
    host->run({"podman", "run", "--rm", "--network=cluster", "disttf", "--version"});
  } catch (const std::runtime_error& error) {
    why = std::string("containers with a network of their own do not run here: ") + error.what();
    return nullptr;
  }
  return host;
}

ContainerHost::ContainerHost(const fs::path& folder, bool pods) : folder_(folder), pods_(pods) {
  write_config();
}

ContainerHost::~ContainerHost() {
  // Processes that nsenter started there are its children, and it must reap them: process 1 waits
  // for that.
  for (Process& process : processes_) {
    if (process.wait(std::chrono::milliseconds(0)).timed_out) {
      for (const pid_t child : children_of(process.pid())) {
        kill(child, SIGKILL);
      }
      process.wait();
    }
  }
  machine_.reset();
  if (first_ > 0 && wait_until_gone({first_}) && pods_) {
    remove_pod_groups();
  }
}

// No overlay file systems, no raised limits, no cgroups except for pods: containers do not have
// these permissions everywhere.
void ContainerHost::write_config() const {
  const std::string folder = folder_.string();
  std::ofstream(folder_ / "containers.conf")
      << "[containers]\ncgroups = \"" << (pods_ ? "enabled" : "disabled") << "\"\n"
      << "default_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n"
      << "log_driver = \"k8s-file\"\n"
      << "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
      << "tmp_dir = \"" << folder << "/tmp\"\n"
      << "[network]\nnetwork_backend = \"netavark\"\n"
      << "network_config_dir = \"" << folder << "/networks\"\n";
  std::ofstream(folder_ / "storage.conf") << "[storage]\ndriver = \"vfs\"\n"
                                          << "graphroot = \"" << folder << "/images\"\n"
                                          << "runroot = \"" << folder << "/run\"\n";
}

bool ContainerHost::start_machine() {
  machine_ = std::make_unique<Process>(
      ProcessOptions{.program = "/usr/bin/unshare",
                     .arguments = {"--mount", "--net", "--pid", "--fork", "--kill-child",
                                   "--mount-proc", "/bin/sh", "-c", kFirstProcess},
                     .environment = {},
                     .working_directory = folder_,
                     .name = "machine for containers"});
  if (!machine_->wait_for_line("^ready$")) {
    return false;
  }
  first_ = children_of(machine_->pid()).at(0);
  return true;
}

void ContainerHost::build_image() {
  const fs::path context = folder_ / "context";
  const fs::path build = folder_ / "build";  // replaces the stage of that name
  fs::create_directories(context);
  fs::create_directories(build / "src/build/release");
  fs::create_directories(build / "etc/ssl/certs");
  for (const char* writable : {"input_data", "tmp"}) {
    fs::create_directories(build / "image" / writable);
    fs::permissions(build / "image" / writable, fs::perms::all | fs::perms::sticky_bit);
  }
  fs::copy_file(disttf_binary(), build / "src/build/release/disttf");
  std::ofstream(build / "etc/ssl/certs/ca-certificates.crt") << "# none are needed\n";
  std::ofstream(context / "Containerfile") << last_stage(source_directory() / "Containerfile");
  run({"buildah", "build", "--format=docker", "--isolation=chroot", "--network=host",
       "--build-context=build=" + build.string(), "--tag=disttf", context.string()});
}

Words ContainerHost::words_on_machine(const Words& words) const {
  Words all = {"--target=" + std::to_string(first_),
               "--mount",
               "--net",
               "--pid",
               "--wdns=" + folder_.string(),
               "/usr/bin/env",
               "DISABLE_HC_SYSTEMD=true",  // no timer: the test runs the health check itself
               "CONTAINERS_CONF=" + (folder_ / "containers.conf").string(),
               "CONTAINERS_STORAGE_CONF=" + (folder_ / "storage.conf").string()};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Process& ContainerHost::start(const Words& words) {
  return processes_.emplace_back(ProcessOptions{.program = "/usr/bin/nsenter",
                                                .arguments = words_on_machine(words),
                                                .environment = {},
                                                .working_directory = folder_,
                                                .name = words.front()});
}

std::string ContainerHost::run(const Words& words) {
  Process& process = start(words);
  if (process.wait().exit_code != 0) {
    throw std::runtime_error(process.report());
  }
  return process.standard_output();
}

void ContainerHost::start_container(const std::string& name, const Words& podman_flags,
                                    const Words& arguments) {
  Words words = {"podman", "run", "--detach", "--network=cluster", "--name=" + name};
  words.insert(words.end(), podman_flags.begin(), podman_flags.end());
  words.emplace_back("disttf");
  words.insert(words.end(), arguments.begin(), arguments.end());
  run(words);
}

int ContainerHost::exit_code(const std::string& name) {
  return std::stoi(run({"podman", "wait", name}));
}

std::string ContainerHost::logs(const std::string& name) {
  Process& process = start({"podman", "logs", name});
  process.wait();
  return process.standard_output() + process.standard_error();
}

bool ContainerHost::says(const std::string& name, const std::string& pattern) {
  return start({"podman", "logs", "--follow", name}).wait_for_line(pattern);
}

}  // namespace disttf::test_process
