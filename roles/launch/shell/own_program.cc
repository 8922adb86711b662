#include "roles/launch/shell/own_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "data/file.h"
#include "net/memory/program_channel.h"
#include "net/tls/secrets.h"
#include "net/waiting/descriptor.h"
#include "net/waiting/interrupt.h"
#include "roles/launch/core/own_program_supervisor.h"
#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/child_process.h"
#include "run/gpu_list.h"
#include "run/outcome.h"
#include "run/process/confinement.h"
#include "run/process/log.h"
#include "run/process/stop_signal.h"
#include "run/program/program_message.h"

namespace disttf::roles {
namespace {

// How many threads OpenMP takes, and with it PyTorch and NumPy's products.
constexpr const char* kThreadsVariable = "OMP_NUM_THREADS";
constexpr const char* kCublasVariable = "CUBLAS_WORKSPACE_CONFIG";

using SupervisorClock = std::chrono::steady_clock;

// The longest single wait while a time limit runs.
constexpr std::chrono::seconds kLongestProgramWait{1};

// Blocks the signals that the supervisor handles, and returns a descriptor that reads them.
data::FileDescriptor watch_supervisor_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD, kRunOverSignal}) {
    sigaddset(&set, number);
  }
  if (!is_ignored(SIGHUP)) {  // a signal that is ignored and blocked would still be received
    sigaddset(&set, SIGHUP);
  }
  // A parent may have left it ignored; children would then be reaped by the kernel.
  std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  data::FileDescriptor signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.is_open()) {
    throw std::system_error(errno, std::generic_category(), "cannot watch for signals");
  }
  return signals;
}

// Sends a message, with the descriptor if it is not negative. An error means that the task is about
// to end.
void send_to_task(int socket, const ProgramMessage& message, int descriptor) {
  const auto header = encode(message, 0);
  const std::span<const int> descriptors(&descriptor, descriptor < 0 ? 0 : 1);
  if (const std::error_code error = net::send_packet(socket, header, {}, descriptors)) {
    log_debug("cannot send " + name_of(message.kind) + " to the task: " + error.message());
  }
}

// How the child has ended; nullopt: it lives. Before it is reaped, `before` is called, while its
// number can belong to no other process.
template <typename Before>
std::optional<Ending> reap_ended(pid_t pid, Before before) {
  siginfo_t ended{};
  if (pid < 0 || waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid != pid) {
    return std::nullopt;
  }
  before();
  int status = 0;
  waitpid(pid, &status, 0);
  return ending_of(status);
}

class OwnProgram {
 public:
  explicit OwnProgram(const OwnProgramOptions& options)
      : options_(options),
        signals_(watch_supervisor_signals()),
        core_({.has_spare = options.has_spare, .end_timeout = options.end_timeout}) {}
  int run();

 private:
  struct Running {
    pid_t pid = -1;
    net::Descriptor socket;  // the task's end, until it is handed over
  };

  void wait();
  void read_signals();
  void forward(const signalfd_siginfo& info) const;
  void read_messages();
  void reap();
  // Carries out the core's effects. To be called after each event.
  void act();
  void carry_out(const StartOwnTask& effect);
  void carry_out(const StartOwnProgram& effect);
  void carry_out(const HandOverProgram& effect);
  void carry_out(const TellTask& effect);
  void carry_out(const SignalOwnTask& effect) const;
  void carry_out(const SignalOwnProgram& effect) const;
  static void carry_out(const SayLine& effect);
  void carry_out(const SupervisorEnded& effect) { ended_ = effect; }

  const OwnProgramOptions& options_;
  data::FileDescriptor signals_;
  net::Descriptor task_socket_;
  pid_t task_ = -1;  // -1: it has ended
  std::map<ProgramId, Running> programs_;
  std::optional<SupervisorEnded> ended_;
  OwnProgramSupervisor core_;
};

int OwnProgram::run() {
  core_.begin();
  act();
  while (!ended_) {
    wait();
  }
  if (ended_->signal != 0) {
    static_cast<void>(finish_output(kError));
    // The task has left a core dump, if any.
    static_cast<void>(keep_memory_private());
    end_by_signal(ended_->signal);
  }
  return ended_->exit_code;
}

// Waits for the next event, and handles it.
void OwnProgram::wait() {
  std::array<pollfd, 2> waits{pollfd{.fd = signals_.number(), .events = POLLIN, .revents = 0},
                              // poll() ignores it once it is closed.
                              pollfd{.fd = task_socket_.number(), .events = POLLIN, .revents = 0}};
  int timeout_ms = -1;
  net::FreezeWatch watch;
  auto until = core_.deadline();
  if (until != SupervisorClock::time_point::max()) {
    // A suspension of this process is noticed at the end of a wait.
    until = std::clamp(until, watch.now(), watch.now() + kLongestProgramWait);
    timeout_ms =
        static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(until - watch.now()).count());
  }
  watch.expect(until);
  if (poll(waits.data(), waits.size(), timeout_ms) < 0) {
    return;  // EINTR
  }
  core_.forgive(watch.missed(SupervisorClock::now()));
  if (waits[1].revents != 0) {
    read_messages();
    act();
  }
  if (waits[0].revents != 0) {
    read_signals();
  }
  core_.time(SupervisorClock::now());
  act();
}

void OwnProgram::read_signals() {
  signalfd_siginfo info{};
  bool has_children = false;
  while (read(signals_.number(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) {
      has_children = true;
    } else if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2) {
      forward(info);
    } else {
      const int signal = static_cast<int>(info.ssi_signo);
      signal == kRunOverSignal ? core_.run_over(SupervisorClock::now())
                               : core_.stop(signal, SupervisorClock::now());
      act();
    }
  }
  if (has_children) {
    reap();
  }
}

// Passes a request to save, or for a timeline, to the task, with its number.
void OwnProgram::forward(const signalfd_siginfo& info) const {
  const int signal = static_cast<int>(info.ssi_signo);
  if (task_ < 0) {
    return;
  }
  if (info.ssi_code == SI_QUEUE) {
    sigval value{};
    value.sival_int = info.ssi_int;
    sigqueue(task_, signal, value);
  } else {
    kill(task_, signal);
  }
}

void OwnProgram::read_messages() {
  std::array<std::byte, kProgramHeaderBytes> bytes{};
  std::vector<net::Descriptor> descriptors;  // none is expected
  while (task_socket_.number() >= 0) {
    const net::PacketResult received =
        net::receive_packet(task_socket_.number(), bytes, descriptors);
    if (received.error == std::errc::resource_unavailable_try_again) {
      return;
    }
    const bool is_lost = received.error && received.error != std::errc::message_size &&
                         received.error != std::errc::too_many_files_open;
    if (is_lost || (!received.error && received.size == 0)) {  // SIGCHLD reports the task's end
      task_socket_ = net::Descriptor();
      return;
    }
    std::string why = "a packet that is too long";
    const auto packet =
        received.error ? std::nullopt : decode(std::span(bytes).first(received.size), why);
    if (packet) {
      core_.message(packet->message, SupervisorClock::now());
    } else {
      log_debug("the task has sent " + why);
    }
  }
}

void OwnProgram::reap() {
  // The messages of a task, and those about a program that has ended, come before the endings.
  read_messages();
  act();
  for (const auto& [id, running] : programs_) {
    pollfd has_sent{.fd = running.socket.number(), .events = POLLIN, .revents = 0};
    if (poll(&has_sent, 1, 0) > 0) {
      core_.program_spoke(id);
    }
  }
  // The task first: a program that ends at the same time is not needed any more.
  if (const auto ending = reap_ended(task_, [] {})) {
    task_ = -1;
    core_.task_ended(*ending, SupervisorClock::now());
    act();
  }
  for (auto each = programs_.begin(); each != programs_.end();) {
    const auto [id, running] = std::pair(each->first, each->second.pid);
    // What a program has started ends with it.
    const auto ending = reap_ended(running, [pid = running] { signal_group_of(pid, SIGKILL); });
    // Before the event, whose effects must not see a process that is gone.
    each = ending ? programs_.erase(each) : std::next(each);
    if (ending) {
      core_.program_ended(id, *ending, SupervisorClock::now());
    }
  }
  act();
  reap_others([this](pid_t pid) {
    return pid == task_ || std::ranges::any_of(programs_, [pid](const auto& each) {
             return each.second.pid == pid;
           });
  });
}

// ------------------------------------------------------------------------------------ effects

void OwnProgram::act() {
  core_.effects().drain([this](const auto& effect) { this->carry_out(effect); });
}

void OwnProgram::carry_out(const StartOwnTask& /*effect*/) {
  net::PacketPair sockets = net::make_packet_pair();
  std::vector<std::string> words = options_.task_words;
  words.push_back("--program_fd=" + std::to_string(sockets.second.number()));
  // From here on only the task has these two: a connection is refused once it has ended.
  const data::FileDescriptor listening(options_.listen_fd);
  const data::FileDescriptor progress(options_.progress_fd);
  // The GPUs of this trainer are the program's.
  std::vector<std::string> variables = options_.task_variables;
  for (const char* const visible : {kCudaVisible, kRocrVisible, kHipVisible}) {
    if (std::getenv(visible) != nullptr) {
      variables.push_back(visible + std::string("="));
    }
  }
  const ChildProcess child = start_child_with_retries(
      {.arguments = std::move(words),
       .variables = std::move(variables),
       .inherited = {sockets.second.number(), listening.number(), progress.number()},
       .has_pipes = false,
       .leads_group = false});
  task_ = child.pid;
  task_socket_ = std::move(sockets.first);
  // A task that is frozen must not hold up its supervisor.
  fcntl(task_socket_.number(), F_SETFL, O_NONBLOCK);
}

void OwnProgram::carry_out(const StartOwnProgram& effect) {
  try {
    net::PacketPair sockets = net::make_packet_pair();
    // A launch passes its trainers a listening socket.
    const bool shares_machine = options_.listen_fd >= 0 && options_.cluster.trainer_count() > 1;
    const ChildProcess child = start_program_process({.program = options_.program,
                                                      .cluster = options_.cluster,
                                                      .self = options_.self,
                                                      .socket = sockets.second.number(),
                                                      .is_spare = effect.is_spare,
                                                      .shares_machine = shares_machine});
    programs_.emplace(effect.id, Running{.pid = child.pid, .socket = std::move(sockets.first)});
    core_.program_started(effect.id);
  } catch (const std::system_error& error) {
    core_.could_not_start(effect.id, error.what(), SupervisorClock::now());
  }
}

void OwnProgram::carry_out(const HandOverProgram& effect) {
  const auto found = programs_.find(effect.id);
  // A spare that was killed together with the program before it; the core knows already.
  if (found == programs_.end()) {
    return;
  }
  send_to_task(task_socket_.number(), {.kind = ProgramKind::kStarted, .step = effect.number},
               found->second.socket.number());
  found->second.socket = net::Descriptor();
}

void OwnProgram::carry_out(const TellTask& effect) {
  send_to_task(task_socket_.number(), effect.message, -1);
}

void OwnProgram::carry_out(const SignalOwnTask& effect) const {
  if (task_ > 0) {
    kill(task_, effect.signal);
    kill(task_, SIGCONT);  // a stopped process receives the signal only when it continues
  }
}

void OwnProgram::carry_out(const SignalOwnProgram& effect) const {
  if (const auto found = programs_.find(effect.id); found != programs_.end()) {
    signal_group_of(found->second.pid, effect.signal);
    signal_group_of(found->second.pid, SIGCONT);
  }
}

void OwnProgram::carry_out(const SayLine& effect) {
  effect.is_error ? log_error(effect.text) : log_warning(effect.text);
}

}  // namespace

ChildProcess start_program_process(const ProgramStart& start) {
  std::vector<std::string> variables = task_variables(start.cluster, start.self);
  // Python prints its stacks when a hanging program is aborted.
  variables.emplace_back("PYTHONFAULTHANDLER=1");
  variables.push_back(kProgramFdVariable + ("=" + std::to_string(start.socket)));
  // A framework would take all processors for each of the programs that share them.
  if (start.shares_machine && std::getenv(kThreadsVariable) == nullptr) {
    variables.push_back(kThreadsVariable + std::string("=1"));
  }
  // Without it cuBLAS may give other bits from run to run, and PyTorch's deterministic algorithms
  // refuse to run. It is read before the program's first line runs. Not only with
  // --gpus_per_worker: an engine gives its tasks GPUs of which disttf learns nothing.
  if (std::getenv(kCublasVariable) == nullptr) {
    variables.push_back(kCublasVariable + std::string("=:4096:8"));
  }
  // The program needs no secret of the run: the task speaks to the others.
  std::vector<std::string> removed = {net::kSecretVariable};
  if (start.is_spare) {
    variables.push_back(kProgramSpareVariable + std::string("=1"));
  } else {
    removed.emplace_back(kProgramSpareVariable);
  }
  const std::vector<std::string>& words = start.program.words;
  return start_child({.program = start.program.file,
                      .name = words.front(),
                      .arguments = {words.begin() + 1, words.end()},
                      .variables = std::move(variables),
                      .removed = std::move(removed),
                      .inherited = {start.socket},
                      .has_pipes = false,
                      .prints_to_error = start.prints_to_error});
}

int run_own_program(const OwnProgramOptions& options) { return OwnProgram(options).run(); }

}  // namespace disttf::roles
