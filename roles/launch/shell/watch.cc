#include "roles/launch/shell/watch.h"

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
#include "roles/monitor/shell/terminal_keys.h"
#include "roles/process/stop_signal.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A launch that was there and does not answer is asked again so often, so far apart: its socket
// closes a moment before its name goes.
constexpr int kMostMisses = 5;
constexpr milliseconds kMissed{200};
constexpr int kMostMissesOfALivingOne = 150;

// What the launch tells of its run; null: it does not, or not now.
OrderedJson ask_for_run(const std::string& socket) {
  const LaunchAnswer answer = ask_launch(socket, "/v1/run");
  return answer.error || !answer.is_ok() ? OrderedJson() : data::parse_ordered_json(answer.body);
}

double steady_seconds() {
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Those of a terminal, too, that end a program: it must not be left as a watcher needs it.
constexpr std::array kWatched = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};

bool is_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGQUIT || signal == SIGHUP;
}

// What a watcher waits for: a signal, keys, or neither.
struct Happened {
  int signal = 0;
  std::string keys;
  [[nodiscard]] bool is_nothing() const { return signal == 0 && keys.empty(); }
};

// The signals that a watcher takes when it is ready to, and not in the middle of a line.
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

  // The next one, or keys; nothing: none came before `end`.
  [[nodiscard]] Happened wait_until(steady_clock::time_point end, TerminalKeys& keys) const {
    while (true) {
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
  explicit Watch(const WatchOptions& options)
      : options_(options),
        screen_(!options.json && !options.once && state().can_redraw),
        // A terminal that is written to by somebody behind us, such as less, is read by them, too.
        keys_(options.is_top && !options.json && !options.once && state().is_terminal) {}

  int run() {
    while (true) {
      const std::error_code error = look();
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

  // How often in a row `error` is no end. A launch that ends closes its socket before it removes
  // the name, and on a busy machine some seconds lie between the two: as long as its process lives.
  [[nodiscard]] int most_misses(const std::error_code& error) const {
    const bool is_silent = error == std::errc::timed_out;
    const bool lives =
        view_->pid && (kill(static_cast<pid_t>(*view_->pid), 0) == 0 || errno == EPERM);
    return lives && !is_silent ? kMostMissesOfALivingOne : kMostMisses;
  }

  // Takes what the launch says now.
  std::error_code look() {
    const LaunchAnswer status = ask_launch(options_.socket, "/v1/status");
    if (status.error) {
      return status.error;
    }
    // One that ends may answer with nothing, with a part, or that it cannot: the next look shows.
    const bool is_answer = status.is_ok() && data::parse_ordered_json(status.body).is_object();
    const bool may_be_ending =
        status.is_ok() || status.status == 0 || status.status >= net::http_status::kServerError;
    if (view_ && !is_answer && may_be_ending) {
      return std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    if (!status.is_ok()) {
      screen_.leave();
      fail_as_told(status.status, status.body);
    }
    if (OrderedJson run = ask_for_run(options_.socket); !run.is_null()) {
      run_ = std::move(run);  // what was known last stays known
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

  // Until the next look; the exit code, where something ends all.
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
      if (happened.signal == SIGTSTP) {  // Ctrl-Z: the shell gets the terminal as it was
        keys_.leave();
        screen_.leave();
        raise(SIGSTOP);
        screen_.enter();
      }
      keys_.enter();  // whoever went on after a stop may have been given other modes
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

  // What is on a terminal.
  [[nodiscard]] std::string frame(const TerminalState& terminal) const {
    return options_.is_top ? top_text(*view_, terminal.style)
                           : status_screen(*view_, terminal.style);
  }

  // The run where its state is another one, and the tasks of which something else is true than
  // before: not how far they are, which always is.
  std::string changed_lines(const TerminalState& terminal) {
    const std::size_t width = terminal.is_terminal ? terminal.style.columns : 0;
    std::string text = view_->state == shown_state_ ? "" : run_line(*view_);
    shown_state_ = view_->state;
    TextTable table = status_table(*view_);
    if (is_first_ || widths_.size() != table.columns.size()) {
      widths_ = widths_of(table);
      shown_tasks_.clear();
    }
    table.least_widths = widths_;
    const bool with_titles = shown_tasks_.empty();
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

  // The run has ended: its last state stays to be read.
  int end() {
    const bool was_drawn = screen_.is_used();
    screen_.leave();
    view_->state = "ended";
    if (options_.json) {
      write_output(launch_json(*view_));
    } else {
      write_output((was_drawn ? frame(state()) : std::string()) + end_line(*view_));
    }
    return kDone;
  }

  const WatchOptions& options_;
  WatchedSignals signals_;
  Screen screen_;
  TerminalKeys keys_;
  LaunchMeter meter_;
  OrderedJson run_;                 // what the launch has told of it
  std::optional<LaunchView> view_;  // the newest one
  int misses_ = 0;
  bool is_first_ = true;
  // Of what was printed last, where that is not redrawn.
  std::string shown_state_;
  std::map<std::string, std::string> shown_tasks_;
  std::vector<std::size_t> widths_;
};

}  // namespace

int run_watch(const WatchOptions& options) { return Watch(options).run(); }

std::string status_text(const std::string& socket, std::string_view status,
                        const TerminalVariables& variables) {
  const TerminalState terminal = terminal_state(STDOUT_FILENO, variables);
  const LaunchView view =
      LaunchMeter().take(data::parse_ordered_json(status), ask_for_run(socket), steady_seconds());
  const std::size_t width = terminal.is_terminal ? terminal.style.columns : 0;
  return run_line(view, width) + text_of(status_table(view), width);
}

}  // namespace disttf::roles
