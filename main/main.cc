// disttf: flags and environment -> a validated configuration -> one role -> an exit code.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "main/command_line.h"
#include "math/large_copies.h"
#include "net/http/http_connection.h"
#include "run/process/log.h"
#include "run/process/memory_reserve.h"
#include "run/process/stop_signal.h"

namespace {

using namespace disttf;  // NOLINT(google-build-using-namespace): this file is the product's front

// Opens closed standard descriptors. Else a socket or a pipe would take such a descriptor's number,
// and output would go into it. A closed standard output is opened for reading alone, so that
// printing results fails (finish_output()) instead of losing them.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const int flags = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) < 0) {
      return;  // no /dev/null in an empty root
    }
  }
}

// The kernel discards a signal that process 1 of a container neither handles nor ignores, so Ctrl-C
// would not end a command. Roles that wait with a signalfd or asio handle their signals there.
void take_signals_as_process_1() {
  if (getpid() != 1) return;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    // A parent that ignores a signal (nohup) means that for this process, too.
    if (roles::is_ignored(number)) continue;
    std::signal(number, roles::end_by_signal);
  }
}

// An uncaught exception is a bug of this program. Logs it, then aborts, which dumps core where the
// machine is set up for that.
[[noreturn]] void report_uncaught() noexcept {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    roles::log_error("internal error: terminated");
  } catch (const std::exception& error) {
    roles::log_error(std::string("internal error: ") + error.what());
  } catch (...) {
    roles::log_error("internal error: unknown exception");
  }
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  // First: these two choose for the whole process, and must run while it has one thread.
  roles::keep_memory_reserve();
  math::choose_large_copies();
  // Before any other descriptor is opened: the next one would get the number of a closed standard
  // descriptor.
  open_standard_descriptors();
  // After the standard descriptors are open, because the handler writes to the log.
  std::set_terminate(report_uncaught);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that closes our output must not end the run
  std::signal(SIGUSR1, SIG_IGN);  // "save now": handled by a leading chief (stop_signal.h)
  std::signal(SIGUSR2, SIG_IGN);  // "write a timeline": likewise
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` a write fails with EFBIG, as on a full disk
  take_signals_as_process_1();
  net::ignore_openssl_config();  // the machine's settings must not change what this program does
  prctl(PR_SET_NAME, "disttf");  // launch's children run as /proc/self/exe; ps would show "exe"
  const int exit_code =
      run_command_line(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  // Last: a result that standard output does not accept turns exit code 0 into an error.
  return roles::finish_output(exit_code);
}
