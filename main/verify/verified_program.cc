#include "main/verify/verified_program.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "net/memory/program_channel.h"
#include "roles/launch/shell/child_process.h"
#include "run/process/start_thread.h"
#include "run/program/program_message.h"

namespace disttf::roles {
namespace {

// How long a program that hangs may take to print its stacks.
constexpr std::chrono::seconds kAbortGrace{5};

net::Deadline deadline_in(std::chrono::seconds limit) {
  return limit.count() == 0 ? net::Deadline::max() : net::Clock::now() + limit;
}

}  // namespace

data::FileDescriptor watch_child_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  // A parent may have left it ignored; children would then be reaped by the kernel.
  std::signal(SIGCHLD, SIG_DFL);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  data::FileDescriptor signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.is_open()) {
    throw std::system_error(errno, std::generic_category(), "cannot watch for signals");
  }
  return signals;
}

VerifiedProgram::VerifiedProgram(const Program& program, const net::Cluster& cluster,
                                 const net::TaskId& self, bool is_spare, std::chrono::seconds limit,
                                 int child_signals)
    : child_signals_(child_signals), deadline_(deadline_in(limit)) {
  net::PacketPair of_program = net::make_packet_pair();
  net::PacketPair of_task = net::make_packet_pair();
  pid_ = start_program_process({.program = program,
                                .cluster = cluster,
                                .self = self,
                                .socket = of_program.second.number(),
                                .is_spare = is_spare,
                                .prints_to_error = true})
             .pid;
  supervisor_ = std::move(of_task.first);
  task_socket_ = std::move(of_task.second);
  // The task reads it before anything else. Both ends belong to this process, hence no error.
  const int end = of_program.first.number();
  static_cast<void>(net::send_packet(supervisor_.number(),
                                     encode({.kind = ProgramKind::kStarted, .step = 1}, 0), {},
                                     std::span(&end, 1)));
  thread_ = start_thread([this] { watch(); });
}

VerifiedProgram::~VerifiedProgram() {
  stop_watching_.interrupt();
  thread_.join();
  if (!ending_) {
    signal_group_of(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void VerifiedProgram::allow(std::chrono::seconds limit) {
  const std::scoped_lock lock(mutex_);
  // The watching thread notices it at the deadline before, which is earlier.
  deadline_ = deadline_in(limit);
}

std::optional<Ending> VerifiedProgram::await_end(const StopSignal& stop,
                                                 std::chrono::seconds limit) {
  static_cast<void>(net::wait_for(has_ended_.fd(), POLLIN, stop.interrupt(), deadline_in(limit)));
  stop.throw_if_stopped();
  const std::scoped_lock lock(mutex_);
  return ending_;
}

std::string VerifiedProgram::end_text() const {
  const std::scoped_lock lock(mutex_);
  return is_aborted_ ? "hangs: it did not answer in time (--program_timeout_secs)"
                     : to_string(*ending_);
}

// The body of the thread.
void VerifiedProgram::watch() {
  while (!stop_watching_.interrupted()) {
    // The last one is the interrupt's.
    std::array<pollfd, 3> polled = {
        pollfd{.fd = child_signals_, .events = POLLIN, .revents = 0},
        pollfd{.fd = supervisor_.number(), .events = POLLIN, .revents = 0}, pollfd{}};
    net::Deadline deadline{};
    {
      const std::scoped_lock lock(mutex_);
      deadline = deadline_;
    }
    static_cast<void>(net::wait_for_any(polled, stop_watching_, deadline));
    if (polled[0].revents != 0) {
      drain_signals();
    }
    if (polled[1].revents != 0) {
      take_message();
    }
    if (reap()) {
      supervisor_.reset();  // a task that waits for an answer learns of it
      has_ended_.interrupt();
      return;
    }
    pass_deadline();
  }
}

void VerifiedProgram::drain_signals() const {
  signalfd_siginfo info{};
  while (read(child_signals_, &info, sizeof(info)) == sizeof(info)) {
  }
}

void VerifiedProgram::take_message() {
  std::array<std::byte, kProgramHeaderBytes> bytes{};
  std::vector<net::Descriptor> descriptors;  // none is expected
  const net::PacketResult got = net::receive_packet(supervisor_.number(), bytes, descriptors);
  if (got.size == 0) {
    supervisor_.reset();  // the task has ended
    return;
  }
  std::string why;
  const auto packet = decode(std::span(bytes).first(got.size), why);
  if (packet && packet->message.kind == ProgramKind::kRestart) {
    abort_process();
  }
}

void VerifiedProgram::pass_deadline() {
  bool is_aborted = false;
  {
    const std::scoped_lock lock(mutex_);
    if (net::Clock::now() < deadline_) {
      return;
    }
    is_aborted = is_aborted_;
    deadline_ = net::Deadline::max();
  }
  if (is_aborted) {
    signal_group_of(pid_, SIGKILL);
  } else {
    abort_process();
  }
}

// Python prints its stacks on SIGABRT.
void VerifiedProgram::abort_process() {
  {
    const std::scoped_lock lock(mutex_);
    is_aborted_ = true;
    deadline_ = net::Clock::now() + kAbortGrace;
  }
  signal_group_of(pid_, SIGABRT);
  signal_group_of(pid_, SIGCONT);  // a stopped process receives the signal only when it continues
}

// Returns whether the process has ended.
bool VerifiedProgram::reap() {
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid != pid_) {
    return false;
  }
  // What it has started ends with it, while its number can belong to no other process.
  signal_group_of(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  const std::scoped_lock lock(mutex_);
  ending_ = ending_of(status);
  return true;
}

}  // namespace disttf::roles
