#include "run/process/stop_signal.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "net/waiting/interrupt.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/start_thread.h"

namespace disttf::roles {
namespace {

// The pause before on_signal_ is called again after it threw. A tenth of a second is not
// noticeable, and does not keep a process busy that lacks memory.
constexpr int kTellAgainMs = 100;

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  if (!is_ignored(SIGHUP)) {  // a signal that is ignored and blocked would still be received
    sigaddset(&set, SIGHUP);
  }
  return set;
}

}  // namespace

StopSignal::StopSignal(std::function<void(int)> on_signal) : on_signal_(std::move(on_signal)) {
  const sigset_t set = watched_signals();
  // Before the thread starts: threads inherit the mask, so that only the descriptor gets the
  // signals.
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const int signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
  if (signal_fd < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch for signals");
  }
  thread_ = start_thread([this, signal_fd] { watch(signal_fd); });
}

StopSignal::~StopSignal() {
  done_.interrupt();
  // The signals stay blocked: a second Ctrl-C must not kill a process that is about to end.
  thread_.join();
}

void StopSignal::watch(int signal_fd) {
  std::array<pollfd, 2> waits{pollfd{.fd = signal_fd, .events = POLLIN, .revents = 0},
                              pollfd{.fd = done_.fd(), .events = POLLIN, .revents = 0}};
  bool is_told = true;
  while (true) {
    const int ready = poll(waits.data(), waits.size(), is_told ? -1 : kTellAgainMs);
    if (ready < 0) {
      continue;  // EINTR; other errors cannot happen with these two descriptors
    }
    if (ready == 0) {
      is_told = tell();
      continue;
    }
    if (waits[1].revents != 0) {
      break;
    }
    signalfd_siginfo info{};
    if (read(signal_fd, &info, sizeof info) != sizeof info) {
      continue;
    }
    if (info.ssi_signo == SIGUSR1) {
      ask_to_save();
    } else if (info.ssi_signo == SIGUSR2) {
      const bool says = info.ssi_code == SI_QUEUE && info.ssi_int > 0;
      asks_to_trace_ = says ? static_cast<std::uint32_t>(info.ssi_int) : kUsualTrace;
      // Only the first signal counts: a second one must not change the exit code.
    } else if (number() == 0) {
      // Before the interrupt: a thread that wakes finds the number. Nothing else is published with
      // it.
      number_.store(static_cast<int>(info.ssi_signo), std::memory_order_relaxed);
      interrupt_.interrupt();
      is_told = tell();
    }
  }
  close(signal_fd);
}

bool StopSignal::tell() {
  try {
    if (on_signal_) {
      on_signal_(number());
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void StopSignal::stop_with(const Failure& failure) {
  // The first failure counts: later ones are its consequences.
  // Two flags: the first elects the one caller that writes failure_, the second one publishes it.
  if (!fails_.exchange(true)) {
    failure_.emplace(failure);
    has_failed_.store(true, std::memory_order_release);
    interrupt_.interrupt();
  }
}

void StopSignal::stop_with(const std::exception_ptr& exception) {
  try {
    stop_with(failure_of(exception));
  } catch (const std::bad_alloc&) {
    // Made in advance, since no sentence can be composed now.
    stop_with(no_memory_);
  }
}

void StopSignal::throw_if_stopped() const {
  // Acquire: failure_ is read only after its writer has published it.
  if (has_failed_.load(std::memory_order_acquire)) {
    throw Failure(*failure_);
  }
  if (const int signal = number(); signal != 0) {
    throw Failure(exit_code_for(signal),
                  std::string("stopped by ") + signal_name(signal) + " before the run finished");
  }
}

bool is_ignored(int number) noexcept {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void end_by_signal(int number) {
  // The default action of a signal does not end process 1 of a container.
  if (getpid() != 1) {
    std::signal(number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    // Pending until it is unblocked below, as a handler's own signal is blocked.
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
  // Not exit(), whose handlers must not run within a signal handler.
  _exit(exit_code_for(number));
}

const char* signal_name(int number) noexcept {
  switch (number) {
    case SIGHUP:
      return "SIGHUP";
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    default:
      return "a signal";
  }
}

int exit_code_for(int number) noexcept { return 128 + number; }

int finish(OnFinish on_finish, const StopSignal& stop) {
  if (on_finish == OnFinish::kIdle) {
    log_idle();
    while (!stop.interrupt().wait_until(net::Clock::now() + std::chrono::hours(1))) {
    }
  }
  return kDone;
}

void log_idle() { log_info("the run is over; staying until SIGTERM or SIGINT (--on_finish idle)"); }

}  // namespace disttf::roles
