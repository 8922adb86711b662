#include "roles/launch/shell/status_watch.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "data/file.h"
#include "data/json/json_text.h"
#include "net/http/http_status.h"
#include "roles/launch/shell/control_client.h"
#include "roles/launch/shell/launch_view.h"
#include "run/monitor/shell/terminal.h"
#include "run/outcome.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How often, and how far apart, to retry a launch that has answered before: its socket closes a
// moment before its name is removed.
constexpr int kMostMisses = 5;
constexpr milliseconds kMissed{200};
// 30 seconds, with pauses of kMissed.
constexpr int kMostMissesOfALivingOne = 150;

// The launch's answer about its run; null: none.
OrderedJson ask_for_run(const std::string& socket) {
  const LaunchAnswer answer = ask_launch(socket, "/v1/run");
  return answer.error || !answer.is_ok() ? OrderedJson() : data::parse_ordered_json(answer.body);
}

double steady_seconds() {
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Signals to handle, including those of a terminal: at the end the terminal's modes are restored.
constexpr std::array kWatched = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};

bool is_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGQUIT || signal == SIGHUP;
}

// The event that ends a wait: a signal, keys, or neither.
struct Happened {
  int signal = 0;
  std::string keys;
  [[nodiscard]] bool is_nothing() const { return signal == 0 && keys.empty(); }
};

// Blocks these signals except during waits, so that none arrives in the middle of a line.
class WatchedSignals {
 public:
  WatchedSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int each : kWatched) {
      sigaddset(&set, each);
    }
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_ = data::FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC));
    if (!fd_.is_open()) {
      throw std::system_error(errno, std::generic_category(), "cannot watch for signals");
    }
  }

  // The next signal, or keys; neither: none came before `end`.
  [[nodiscard]] Happened wait_until(steady_clock::time_point end, TerminalKeys& keys) const {
    while (true) {
      // Rounded up: rounded down, poll() would return early and spin through the last millisecond.
      const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
      std::array<pollfd, 2> waits{pollfd{.fd = fd_.number(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = keys.descriptor(), .events = POLLIN, .revents = 0}};
      const int ready =
          poll(waits.data(), waits.size(), static_cast<int>(std::max<long>(left.count(), 0)));
      signalfd_siginfo info{};
      if (ready > 0 && waits[0].revents != 0 &&
          read(fd_.number(), &info, sizeof info) == sizeof info) {
        return {.signal = static_cast<int>(info.ssi_signo), .keys = {}};
      }
      if (ready > 0 && waits[1].revents != 0) {
        if (std::string pressed = keys.take(); !pressed.empty()) {
          return {.signal = 0, .keys = std::move(pressed)};
        }
      }
      // Any other result, also an interrupted poll(), waits for the rest of the time.
      if (ready == 0) {
        return {};
      }
    }
  }

 private:
  data::FileDescriptor fd_;
};

class Watch {
 public:
  explicit Watch(const StatusWatchOptions& options)
      : options_(options),
        screen_(!options.json && !options.once && state().can_redraw),
        // If another program such as less writes to the terminal after us, it reads the keys.
        keys_(options.is_top && !options.json && !options.once && state().is_terminal) {}

  int run() {
    while (true) {
      const std::error_code error = look();
      // The launch removes its socket's name when it ends. Without a view no launch has answered.
      if (error == std::errc::no_such_file_or_directory && view_) {
        return end();
      }
      if (error && (!view_ || ++misses_ > most_misses(error))) {
        screen_.leave();
        fail(error);
      }
      if (!error) {
        misses_ = 0;
        show();
        if (options_.once) {
          return kDone;
        }
      }
      if (const std::optional<int> code = rest(error ? kMissed : options_.every)) {
        return *code;
      }
    }
  }

 private:
  [[nodiscard]] TerminalState state() const {
    return terminal_state(STDOUT_FILENO, options_.variables);
  }

  // How many times in a row `error` is retried. A launch that ends closes its socket before it
  // removes the name; on a busy machine seconds pass between: retried as long as its process lives.
  [[nodiscard]] int most_misses(const std::error_code& error) const {
    const bool is_silent = error == std::errc::timed_out;
    const bool lives =
        view_->pid && (kill(static_cast<pid_t>(*view_->pid), 0) == 0 || errno == EPERM);
    return lives && !is_silent ? kMostMissesOfALivingOne : kMostMisses;
  }

  // Fetches the present state of the launch.
  std::error_code look() {
    const LaunchAnswer status = ask_launch(options_.socket, "/v1/status");
    if (status.error) {
      return status.error;
    }
    // A launch that ends may answer with nothing, with a part, or with an error: retry.
    const bool is_answer = status.is_ok() && data::parse_ordered_json(status.body).is_object();
    const bool may_be_ending = status.is_ok() || status.status >= net::http_status::kServerError;
    // Only after an answer: at the first request such an answer is an error to report.
    if (view_ && !is_answer && may_be_ending) {
      return std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    if (!status.is_ok()) {
      screen_.leave();
      fail_as_reported(status.status, status.body);
    }
    if (OrderedJson run = ask_for_run(options_.socket); !run.is_null()) {
      run_ = std::move(run);  // else the last known state stays
    }
    view_ = meter_.take(data::parse_ordered_json(status.body), run_, steady_seconds());
    return {};
  }

  [[noreturn]] void fail(const std::error_code& error) const {
    if (view_) {
      throw Failure(kLostPeers, "the launch at " + options_.socket +
                                    " does not answer any more: " + error.message());
    }
    fail_to_reach(options_.socket, error);
  }

  // Waits for the next update; returns the exit code if something ends the display.
  std::optional<int> rest(milliseconds time) {
    const auto end = steady_clock::now() + time;
    while (true) {
      const Happened happened = signals_.wait_until(end, keys_);
      if (happened.is_nothing()) {
        return std::nullopt;
      }
      if (is_end(happened.signal)) {
        return exit_code_for(happened.signal);
      }
      if (happened.keys.find_first_of("qQ") != std::string::npos) {
        return kDone;
      }
      if (happened.signal == SIGTSTP) {  // Ctrl-Z: restores the terminal for the shell
        keys_.leave();
        screen_.leave();
        // SIGTSTP is blocked and read from the descriptor, so it does not stop this process itself.
        raise(SIGSTOP);
        screen_.enter();
      }
      keys_.enter();  // the shell may have set other modes in the meantime
      if (view_ && screen_.is_used()) {
        show();
      }
    }
  }

  void show() {
    const TerminalState terminal = state();
    if (options_.json) {
      write_output(launch_json(*view_));
    } else if (screen_.is_used()) {
      screen_.draw(frame(terminal), terminal.style);
    } else if (options_.is_top) {
      TextStyle style = terminal.style;
      style.columns = terminal.is_terminal ? style.columns : 0;
      style.rows = 0;
      write_output((is_first_ ? "" : "\n") + top_text(*view_, style));
    } else {
      write_output(changed_lines(terminal));
    }
    is_first_ = false;
  }

  // The text of the screen.
  [[nodiscard]] std::string frame(const TerminalState& terminal) const {
    return options_.is_top ? top_text(*view_, terminal.style)
                           : status_screen(*view_, terminal.style);
  }

  // The run if its state has changed, and the tasks with changes other than progress.
  std::string changed_lines(const TerminalState& terminal) {
    const std::size_t width = terminal.is_terminal ? terminal.style.columns : 0;
    std::string text = view_->state == shown_state_ ? "" : run_line(*view_);
    shown_state_ = view_->state;
    TextTable table = status_table(*view_);
    if (is_first_ || widths_.size() != table.columns.size()) {
      widths_ = widths_of(table);
      shown_tasks_.clear();
    }
    // Later tables have only the changed rows; they keep the widths of the first one, to stay
    // aligned.
    table.least_widths = widths_;
    const bool with_titles = shown_tasks_.empty();
    // From the last row, so that erasing one does not move rows that are still to be compared.
    for (std::size_t each = table.rows.size(); each-- > 0;) {
      const LaunchTask& task = view_->tasks[each];
      const std::string now = task.address + " " + task.state + " " + task.since + " " +
                              std::to_string(task.pid.value_or(0)) + " " +
                              std::to_string(task.restarts.value_or(0));
      std::string& before = shown_tasks_[task.task];
      if (before == now) {
        table.rows.erase(table.rows.begin() + static_cast<std::ptrdiff_t>(each));
      }
      before = now;
    }
    return text + text_of(table, width, with_titles);
  }

  // The run has ended: leaves its last state on the screen.
  int end() {
    const bool was_drawn = screen_.is_used();
    // Before printing: text on the alternate screen would disappear with it.
    screen_.leave();
    view_->state = "ended";
    if (options_.json) {
      write_output(launch_json(*view_));
    } else {
      write_output((was_drawn ? frame(state()) : std::string()) + end_line(*view_));
    }
    return kDone;
  }

  const StatusWatchOptions& options_;
  WatchedSignals signals_;
  Screen screen_;
  TerminalKeys keys_;
  LaunchMeter meter_;
  OrderedJson run_;                 // the launch's last answer about it
  std::optional<LaunchView> view_;  // the newest one
  int misses_ = 0;
  bool is_first_ = true;
  // The last printed state, without a redrawn screen.
  std::string shown_state_;
  std::map<std::string, std::string> shown_tasks_;
  std::vector<std::size_t> widths_;
};

}  // namespace

int run_status_watch(const StatusWatchOptions& options) { return Watch(options).run(); }

std::string status_text(const std::string& socket, std::string_view status,
                        const TerminalVariables& variables) {
  const TerminalState terminal = terminal_state(STDOUT_FILENO, variables);
  const LaunchView view =
      LaunchMeter().take(data::parse_ordered_json(status), ask_for_run(socket), steady_seconds());
  const std::size_t width = terminal.is_terminal ? terminal.style.columns : 0;
  return run_line(view, width) + text_of(status_table(view), width);
}

}  // namespace disttf::roles
