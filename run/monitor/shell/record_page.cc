#include "run/monitor/shell/record_page.h"

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <deque>
#include <optional>
#include <system_error>
#include <utility>

#include "run/monitor/shell/recorded_run.h"
#include "run/monitor/shell/run_page.h"
#include "run/monitor/shell/terminal.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

constexpr std::chrono::seconds kReadOn{1};

struct ShownRun {
  explicit ShownRun(const std::string& path) : run(path), page(run.feed(), {}) {}
  RecordedRun run;
  RunPage page;  // subscribes here: earlier records are in the view
};

class RecordPage {
 public:
  RecordPage(const std::vector<std::string>& runs, const PageOptions& options) {
    std::vector<RunPage::Shown> all;
    all.reserve(runs.size());
    for (const std::string& run : runs) {
      all.push_back({.name = run, .page = &shown_.emplace_back(run).page});
    }
    shown_.front().page.show_runs(std::move(all));
    server_.emplace(context_, options, shown_.front().page);
  }

  int run() {
    write_output("the run's page is " + server_->url() + "\n");
    signals_.async_wait([this](std::error_code error, int signal) {
      if (!error) {
        signal_ = signal;
        timer_.cancel();
        server_->stop();
      }
    });
    read_on();
    // Returns once a signal has stopped the timer and the server.
    context_.run();
    return exit_code_for(signal_);
  }

 private:
  void read_on() {
    timer_.expires_after(kReadOn);
    timer_.async_wait([this](std::error_code error) {
      // A timer that has already expired ignores cancel().
      if (error || signal_ != 0) {
        return;
      }
      for (ShownRun& each : shown_) {
        each.run.read_on();
      }
      read_on();
    });
  }

  asio::io_context context_{1};
  asio::signal_set signals_{context_, SIGINT, SIGTERM};
  asio::steady_timer timer_{context_};
  std::deque<ShownRun> shown_;  // with stable addresses: each refers to itself
  std::optional<PageServer> server_;
  int signal_ = 0;
};

}  // namespace

int run_record_page(const std::vector<std::string>& runs, const PageOptions& options) {
  return RecordPage(runs, options).run();
}

}  // namespace disttf::roles
