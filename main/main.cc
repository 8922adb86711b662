// disttf: flags and environment -> a validated configuration -> one role -> an exit code.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "main/run_command_line.h"
#include "math/large_copies.h"
#include "net/http/tls.h"
#include "roles/process/log.h"
#include "roles/process/memory_reserve.h"
#include "roles/process/stop_signal.h"

namespace {

using namespace disttf;  // NOLINT(google-build-using-namespace): this file is the product's front

// A process that was started with a standard descriptor closed would get a socket or a pipe of its
// own in that place, and print into it. Output that was closed is opened for reading alone, so that
// results printed there fail (finish_output()) rather than vanish.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const int flags = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) < 0) {
      return;  // an empty root has none
    }
  }
}

// The kernel discards a signal that process 1 of a container neither handles nor ignores: Ctrl-C
// would not end a command. What a task waits for by a signalfd or asio is handled there.
void take_signals_as_process_1() {
  if (getpid() != 1) return;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    if (roles::is_ignored(number)) continue;
    std::signal(number, roles::end_by_signal);
  }
}

// An exception that nobody has caught is a bug of this program: it is told in a sentence, and the
// core is dumped where the machine does that.
[[noreturn]] void tell_uncaught() noexcept {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    roles::log_error("internal error: terminated");
  } catch (const std::exception& error) {
    roles::log_error(std::string("internal error: ") + error.what());
  } catch (...) {
    roles::log_error("internal error: an exception of an unknown kind");
  }
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  roles::keep_memory_reserve();
  math::choose_large_copies();
  open_standard_descriptors();
  std::set_terminate(tell_uncaught);
  std::signal(SIGPIPE, SIG_IGN);  // a reader of our output that goes away must not end the run
  std::signal(SIGUSR1, SIG_IGN);  // "save now": heard by a chief that leads (stop_signal.h)
  std::signal(SIGUSR2, SIG_IGN);  // the same of a timeline
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` a write fails with EFBIG, as on a full disk
  take_signals_as_process_1();
  net::ignore_openssl_config();  // what this file does is not to depend on the machine's
  prctl(PR_SET_NAME, "disttf");  // launch's children run as /proc/self/exe; ps would say "exe"
  const int exit_code =
      run_command_line(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  return roles::finish_output(exit_code);
}
