#include "tests/process/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace disttf::test_process {
namespace {

using TestClock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) {
    all.push_back(word.data());
  }
  all.push_back(nullptr);
  return all;
}

}  // namespace

void TerminalScreen::take(const std::string& bytes) {
  for (const char c : bytes) {
    if (!escape_.empty()) {
      escape_ += c;
      // The '[' after ESC is in this range, too, but does not end a sequence.
      const bool is_last = escape_.size() > 2 && c >= '@' && c <= '~';
      if (is_last) {
        take_escape(std::exchange(escape_, {}));
      }
    } else if (c == '\x1b') {
      escape_ = c;
    } else {
      put(c);
    }
  }
}

void TerminalScreen::take_escape(const std::string& sequence) {
  if (sequence == "\x1b[?1049h") {
    main_lines_ = std::exchange(lines_, std::vector<std::string>(lines_.size()));
    is_other_ = true;
  } else if (sequence == "\x1b[?1049l") {
    lines_ = main_lines_;
    is_other_ = false;
    row_ = 0;
  } else if (sequence == "\x1b[?25l" || sequence == "\x1b[?25h") {
    has_cursor_ = sequence.back() == 'h';
  } else if (sequence == "\x1b[H") {
    row_ = 0;
    is_at_begin_ = true;
  } else if (sequence == "\x1b[J") {
    for (std::size_t each = row_ + 1; each < lines_.size(); ++each) {
      lines_[each].clear();
    }
  }
  // Colours are ignored; \x1b[K erases characters that put() has not kept.
}

void TerminalScreen::put(char c) {
  if (c == '\r') {
    is_at_begin_ = true;
  } else if (c == '\n') {
    if (++row_ >= lines_.size()) {
      lines_.erase(lines_.begin());
      lines_.emplace_back();
      row_ = lines_.size() - 1;
    }
    lines_[row_].clear();
    is_at_begin_ = false;
  } else {
    if (std::exchange(is_at_begin_, false)) {
      lines_[row_].clear();
    }
    lines_[row_] += c;
  }
}

std::vector<std::string> TerminalScreen::lines() const {
  std::vector<std::string> all = lines_;
  while (!all.empty() && all.back().empty()) {
    all.pop_back();
  }
  return all;
}

ProgramOnTerminal::ProgramOnTerminal(const TerminalOptions& options) {
  int master = -1;
  int slave = -1;
  winsize size{};
  size.ws_col = options.columns;
  size.ws_row = options.rows;
  if (openpty(&master, &slave, nullptr, nullptr, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a terminal");
  }
  master_ = data::FileDescriptor(master);
  slave_ = data::FileDescriptor(slave);
  // The program must not inherit the master, or it would not notice that the terminal has gone.
  fcntl(master, F_SETFD, FD_CLOEXEC);
  tcgetattr(slave, &before_);
  screen_.resize(options.rows);
  std::vector<std::string> words = {options.program};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> entries;
  for (const auto& [name, value] : options.environment) {
    entries.push_back(std::string(name).append("=").append(value));
  }
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(entries);
  pid_ = fork();
  if (pid_ == 0) {
    constexpr int kCannotRun = 127;
    if (login_tty(slave) == 0) {
      execve(arguments.front(), arguments.data(), environment.data());
    }
    _exit(kCannotRun);
  }
  pidfd_ = data::FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

ProgramOnTerminal::~ProgramOnTerminal() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    static_cast<void>(reap(0));
  }
}

void ProgramOnTerminal::type(const std::string& keys) const {
  if (write(master_.number(), keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) {
    throw std::system_error(errno, std::generic_category(), "cannot type");
  }
}

void ProgramOnTerminal::resize(std::uint16_t columns, std::uint16_t rows) {
  winsize size{};
  size.ws_col = columns;
  size.ws_row = rows;
  screen_.resize(rows);
  ioctl(master_.number(), TIOCSWINSZ, &size);
}

bool ProgramOnTerminal::read_some(TestClock::time_point deadline) {
  std::array<pollfd, 2> waits{pollfd{.fd = master_.number(), .events = POLLIN, .revents = 0},
                              pollfd{.fd = pidfd_.number(), .events = POLLIN, .revents = 0}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - TestClock::now());
  const int ready =
      poll(waits.data(), waits.size(),
           static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0)));
  if (ready <= 0 || (waits[0].revents & POLLIN) == 0) {
    return false;  // no more output, or the program has ended
  }
  std::array<char, 4096> buffer{};
  const ssize_t count = read(master_.number(), buffer.data(), buffer.size());
  if (count <= 0) {
    return false;
  }
  const std::string piece(buffer.data(), static_cast<std::size_t>(count));
  bytes_ += piece;
  screen_.take(piece);
  return true;
}

bool ProgramOnTerminal::wait_for(const std::function<bool(const TerminalScreen&)>& is_there,
                                 std::chrono::milliseconds limit) {
  const auto deadline = TestClock::now() + limit;
  while (!is_there(screen_)) {
    if (!read_some(deadline)) {
      return false;
    }
  }
  return true;
}

bool ProgramOnTerminal::shows(const std::string& text) {
  return wait_for([&text](const TerminalScreen& screen) {
    return std::ranges::any_of(screen.lines(), [&text](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  });
}

bool ProgramOnTerminal::reap(int flags) {
  int status = 0;
  if (waitpid(pid_, &status, flags) != pid_) {
    return false;
  }
  if (WIFSTOPPED(status)) {
    return true;
  }
  reaped_ = true;
  ending_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ending_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return true;
}

Ending ProgramOnTerminal::wait() {
  const auto deadline = TestClock::now() + kPatience;
  while (!reaped_) {
    while (read_some(deadline)) {
    }
    if (!reap(WNOHANG) && TestClock::now() >= deadline) {
      ending_.timed_out = true;
      break;
    }
  }
  // Output written just before the end may still be in the terminal.
  while (read_some(TestClock::now())) {
  }
  return ending_;
}

bool ProgramOnTerminal::wait_until_stopped() {
  siginfo_t info{};
  // WNOWAIT leaves the state for reap().
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) == 0 &&
         info.si_code == CLD_STOPPED;
}

bool ProgramOnTerminal::echoes() const {
  termios now{};
  return tcgetattr(slave_.number(), &now) == 0 && (now.c_lflag & ECHO) != 0;
}

void ProgramOnTerminal::set_line_mode() const {
  termios now{};
  tcgetattr(slave_.number(), &now);
  now.c_lflag |= static_cast<tcflag_t>(ICANON | ECHO);
  tcsetattr(slave_.number(), TCSANOW, &now);
}

bool ProgramOnTerminal::is_left_as_it_was() const {
  termios now{};
  tcgetattr(slave_.number(), &now);
  return now.c_iflag == before_.c_iflag && now.c_oflag == before_.c_oflag &&
         now.c_cflag == before_.c_cflag && now.c_lflag == before_.c_lflag &&
         std::ranges::equal(now.c_cc, before_.c_cc) && !screen_.is_other_screen() &&
         screen_.has_cursor();
}

}  // namespace disttf::test_process
