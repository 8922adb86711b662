#include "storage/checkpoint/shell/held_run_lock.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/start_thread.h"
#include "storage/store/core/store_url.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;

// The interval at which a lock is checked whose owner may be dead.
constexpr milliseconds kLookAtDisk{500};
constexpr milliseconds kLookInStore{3000};

// Returns the 22nd field of /proc/PID/stat; nullopt if there is no such process, it is hidden, or
// it has ended but was not reaped, which in a container may last forever.
std::optional<std::uint64_t> start_time_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  if (!std::getline(file, text)) {
    return std::nullopt;
  }
  // The third field begins after the program's name, which may contain anything.
  std::istringstream fields(text.substr(std::min<std::size_t>(text.rfind(')') + 1, text.size())));
  char state = 0;
  if (!(fields >> state) || state == 'Z' || state == 'X') {
    return std::nullopt;
  }
  // Fields 4 to 21; the state was the third.
  constexpr int kFieldsBefore = 18;
  std::string ignored;
  for (int field = 0; field < kFieldsBefore; ++field) {
    fields >> ignored;
  }
  std::uint64_t started = 0;
  return fields >> started ? std::optional(started) : std::nullopt;
}

// A pid and a start time identify a process within this machine and namespace. Empty: unknown.
std::string machine_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat pids {};
  const bool is_known = !boot.empty() && stat("/proc/self/ns/pid", &pids) == 0;
  return is_known ? boot + "-" + std::to_string(pids.st_ino) : std::string();
}

std::string host_name() {
  std::array<char, 256> host{};
  // One less, since a longer name is cut off without a zero at its end.
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::string present_text() { return time_text(std::chrono::file_clock::now()); }

}  // namespace

std::optional<bool> process_lives(std::int64_t pid, std::uint64_t started) {
  if (started == 0 || !start_time_of("self")) {
    return std::nullopt;
  }
  if (const auto found = start_time_of(std::to_string(pid))) {
    // The kernel reuses pids, so only the start time tells the process from a later one.
    return *found == started;
  }
  // If /proc hides the processes of other users, process 1 is hidden, too.
  return start_time_of("1") ? std::optional(false) : std::nullopt;
}

RunLockOwner own_lock(const std::filesystem::path& directory, const net::Cluster& cluster) {
  RunLockOwner self{.run = {},
                    .process = fmt::format("{:016x}", random_number()),
                    .host = host_name(),
                    .machine = machine_name(),
                    .directory = directory.string(),
                    .pid = getpid(),
                    .started = start_time_of("self").value_or(0),
                    .time = present_text()};
  self.run = run_of_cluster(cluster, self.machine);
  if (!is_store_url(directory)) {
    std::error_code error;
    const auto real = std::filesystem::weakly_canonical(directory, error);
    // The path that links lead to, so that two spellings of one directory compare equal.
    self.directory = error ? self.directory : real.string();
  }
  return self;
}

HeldRunLock::HeldRunLock(const std::filesystem::path& directory, const net::Cluster& cluster,
                         StopSignal& stop)
    : directory_(directory),
      stop_(stop),
      holder_(disk_, directory, own_lock(directory, cluster),
              [](const RunLockOwner& owner) { return process_lives(owner.pid, owner.started); }) {
  take();
  looked_ = holder_.looked();
  try {
    thread_ = start_background_thread([this] { keep(); });
  } catch (...) {
    // The lock must not outlive a chief that could not start.
    holder_.release();
    throw;
  }
}

HeldRunLock::~HeldRunLock() {
  // The thread ends first: a renewal under way would write the lock again after its removal.
  done_.interrupt();
  thread_.join();
  holder_.release();
}

void HeldRunLock::take() {
  bool is_told = false;
  try {
    while (const auto left = holder_.try_to_take(net::Clock::now())) {
      if (*left > kLookInStore && !is_told) {
        is_told = true;
        const RunLockOwner& other = holder_.other();
        log_warning(
            fmt::format("{} was locked by process {} on host \"{}\", which may live: waiting "
                        "up to {} s for it to renew the lock",
                        directory_.string(), other.pid, other.host,
                        std::chrono::ceil<std::chrono::seconds>(*left).count()));
      }
      stop_.interrupt().wait_until(net::Clock::now() +
                                   (is_store_url(directory_) ? kLookInStore : kLookAtDisk));
      stop_.throw_if_stopped();
    }
  } catch (const std::system_error& error) {
    log_warning(
        "--train_dir: the directory cannot be locked, so another run in it may go "
        "unnoticed: " +
        std::string(error.what()));
  }
}

void HeldRunLock::check() const {
  try {
    holder_.check(net::Clock::now(), looked_.load());
  } catch (const std::system_error&) {
    return;  // the save reports what is wrong with the directory
  }
}

void HeldRunLock::keep() {
  // The first check comes early: in a store two processes may both have taken a free lock.
  std::chrono::seconds pause = kLockSettles;
  while (!done_.wait_until(net::Clock::now() + pause)) {
    pause = kLockRenewal;
    try {
      holder_.renew(net::Clock::now(), present_text());
    } catch (const Failure& failure) {
      // No more renewals: the lock is another run's.
      stop_.stop_with(failure);
      return;
    } catch (const std::exception&) {  // saving checkpoints reports disk errors
    }
    looked_ = holder_.looked();
  }
}

}  // namespace disttf::roles
