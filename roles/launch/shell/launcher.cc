#include "roles/launch/shell/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "net/http/http_responder.h"
#include "net/tcp/sockets.h"
#include "roles/launch/core/fault_plan.h"
#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/child_output.h"
#include "roles/launch/shell/control_address.h"
#include "roles/launch/shell/control_verbs.h"
#include "roles/launch/shell/job_update.h"
#include "roles/launch/shell/launch_telemetry.h"
#include "roles/launch/shell/managed_job.h"
#include "roles/launch/shell/task_processes.h"
#include "run/monitor/shell/address_access.h"
#include "run/monitor/shell/page_server.h"
#include "run/monitor/shell/process_facts.h"
#include "run/monitor/shell/record_feed.h"
#include "run/monitor/shell/telemetry_files.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/progress.h"
#include "run/process/stop_signal.h"
#include "run/process/task_listener.h"

namespace disttf::roles {
namespace {

// Tools like timeout(1) signal a process and then its group: two signals, one request. A person's
// second Ctrl-C comes later than this.
constexpr std::chrono::milliseconds kSameRequest{300};

class Launcher : public ManagedJob {
 public:
  explicit Launcher(const LaunchOptions& options);
  int run();

  [[nodiscard]] JobStatus status() const override;
  [[nodiscard]] std::string log(const net::TaskId& id) const override;
  [[nodiscard]] std::shared_ptr<net::HttpLineStream> follow(const net::TaskId& id) override;
  std::string restart(const net::TaskId& id) override;
  std::string replace(const net::TaskId& id) override;
  std::string update(const LaunchUpdate& wanted) override;
  std::string save() override;
  std::string trace(std::uint32_t steps) override;
  std::string stop() override;
  std::string make_page_link() override;

 private:
  [[nodiscard]] const char* run_state() const;
  [[nodiscard]] LocalTask& task_of(const net::TaskId& id) const;
  [[nodiscard]] LocalTask& task_to_restart(const net::TaskId& id) const;
  void refuse_when_busy() const;
  [[nodiscard]] pid_t chief_pid() const;
  [[nodiscard]] pid_t training_chief() const;
  void open_control();
  void take_record(const std::string& line);
  void open_port(std::uint16_t port);
  void open_page();
  [[nodiscard]] net::HttpReply answer(const net::HttpServerRequest& request);
  void on_change(const LocalTask& task);
  void on_all_gone();
  [[nodiscard]] TaskEvents events();
  void plan_faults();
  void watch_signals();
  void on_stop_signal(int signal);
  void begin_to_stop(int signal, const std::string& by_whom);
  void on_line(const LocalTask& task, std::string_view line, bool is_result);
  void on_progress(pid_t writer, std::string_view record);
  void draw_progress(const Progress& progress);
  void make_fault(const ProcessFault& fault);
  void say(const std::string& sentence, LogLevel level = LogLevel::kInfo) {
    console_.say(sentence, level);
  }

  const LaunchOptions& options_;
  const std::string secret_;  // of the run, made by this launch; empty: none made
  asio::io_context context_{1};
  asio::signal_set signals_;
  Console console_;
  ProgressMeter progress_;
  std::optional<Progress> last_progress_;
  std::optional<std::chrono::steady_clock::time_point> stopped_at_;  // time of the first signal
  const std::chrono::system_clock::time_point since_ = std::chrono::system_clock::now();
  TaskProcesses processes_;
  JobUpdate update_;
  LaunchUpdate updates_;  // all accepted updates, combined
  std::optional<FaultPlan> faults_;
  std::optional<LaunchMeters> meters_;  // nullopt: not exported
  std::optional<ControlSocket> control_;
  std::string control_url_;
  std::optional<net::HttpResponder> server_;
  RecordFeed feed_;
  std::optional<RecordFile> record_file_;  // only with --train_dir
  LaunchRecords records_{[this](const std::string& line) { take_record(line); }};
  RunPage page_;
  std::optional<PageServer> page_server_;
  ReportingChief reporting_chief_;
};

Launcher::Launcher(const LaunchOptions& options)
    : options_(options),
      secret_(options.secret == SecretOfRun::kMade ? make_run_secret() : std::string()),
      signals_(context_, SIGINT, SIGTERM, SIGCHLD),
      processes_(context_, options, secret_variables(options.secret, secret_), events()),
      update_(context_, processes_, [this](const std::string& sentence) { say(sentence); }),
      page_(feed_, {"restart", "replace", "update", "save", "trace", "stop"}) {
  // Under nohup SIGHUP is ignored, and the launch must survive the end of its terminal.
  if (!is_ignored(SIGHUP)) {
    signals_.add(SIGHUP);
  }
  // Without --train_dir launch stores no records.
  const std::string train_dir = argument_value(options.task_arguments, "train_dir");
  if (!train_dir.empty()) {
    // With host and pid in the name, the files of earlier launches in the directory stay.
    record_file_.emplace(train_dir, fmt::format("{}-{}", process_facts().host, getpid()));
  }
  if (options.meters != nullptr) {
    meters_.emplace(options.meters->metrics(), *options.metrics_address);
  }
}

TaskEvents Launcher::events() {
  return {
      .line = [this](const LocalTask& task, std::string_view line,
                     bool is_result) { on_line(task, line, is_result); },
      .progress = [this](pid_t writer, std::string_view record) { on_progress(writer, record); },
      .changed = [this](const LocalTask& task) { on_change(task); },
      .say = [this](const std::string& sentence, LogLevel level) { say(sentence, level); },
      .all_gone = [this] { on_all_gone(); }};
}

int Launcher::run() {
  // Before the first task starts: orphans of a task must become children of this process from the
  // beginning, or the check for descendants would miss them.
  keep_orphans();
  // Both addresses are open before the first task starts: a wrong port ends the launch early.
  open_control();
  open_page();
  plan_faults();
  watch_signals();
  processes_.start_all();
  // Returns when no signal, pipe, timer or connection is left (on_all_gone()).
  context_.run();
  return processes_.policy().exit_code().value_or(kDone);
}

// Stores the launch's own records; the chief writes its records to its own file.
void Launcher::take_record(const std::string& line) {
  feed_.take(line);
  if (record_file_) {
    record_file_->write(line, {}, record_time());
  }
}

void Launcher::open_control() {
  if (!options_.control) {
    return;
  }
  try {
    control_.emplace(context_, *options_.control);
    if (!secret_.empty()) {
      control_->write_secret(secret_);
    }
  } catch (const Failure& failure) {
    // If no flag asks for it, a missing control address does not prevent training.
    if (!options_.control->socket.empty() || options_.control->port) {
      throw;
    }
    // Also removes files that this attempt has made.
    control_.reset();
    log_info(std::string("this launch cannot be managed: ") + failure.what());
    return;
  }
  server_.emplace(
      context_, [this](const net::HttpServerRequest& request) { return answer(request); },
      net::HttpResponderOptions{.audit = audit_of("the control address")});
  // The socket needs no token: refuses_peer rejects other users and the tasks of this launch by the
  // kernel's credentials.
  server_->listen(control_->take_acceptor(),
                  {.use = net::HttpUse::kCommand,
                   .max_connections = net::kCommandConnections,
                   .refuses_peer = [](const net::LocalPeer& peer) { return why_refused(peer); }});
  if (options_.control->port) {
    open_port(*options_.control->port);
  }
}

// Every user of the machine can connect to the port, so it requires a token that only this user can
// read.
void Launcher::open_port(std::uint16_t port) {
  try {
    asio::ip::tcp::acceptor acceptor = listen_after_predecessor(
        "--control_port " + std::to_string(port),
        [&] { return net::listen_on(context_, port, net::ListenScope::kLoopback); });
    control_url_ = "http://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
    server_->listen(std::move(acceptor), {.use = net::HttpUse::kCommand,
                                          .max_connections = net::kCommandConnections,
                                          .refuse = net::bearer_of(control_->make_token())});
  } catch (const std::system_error& error) {
    throw Failure(kCannotListen, std::string("--control_port: ") + error.what());
  }
  say("managed at " + control_url_ + "; the bearer token is in " + control_->token_path());
}

void Launcher::open_page() {
  if (options_.page) {
    page_server_.emplace(context_, *options_.page, page_, [this](const auto& request) {
      return answer_verb(*this, request, Caller::kPage);
    });
    say("the run's page is " + page_server_->make_link());
  }
}

// Answers requests at the control address, which also serves the page's data.
net::HttpReply Launcher::answer(const net::HttpServerRequest& request) {
  std::optional<net::HttpReply> reply = page_.answer(request);
  return reply ? *std::move(reply) : answer_verb(*this, request, Caller::kControl);
}

void Launcher::on_change(const LocalTask& task) {
  // First, so that the state in the records below includes the update's progress.
  update_.on_change();
  const SupervisedTask& state = processes_.state_of(task);
  records_.task(task.status(state), state);
  records_.state(run_state());
  if (meters_) {
    meters_->tasks(status(), processes_.tasks());
  }
  if (task.is_chief) {
    const bool is_awaited = task.pid > 0 || state.waits;
    console_.draw_live(is_awaited ? progress_.on_chief_away() : std::string());
  }
}

// run() returns once the readers of logs, if any, have received the last lines.
void Launcher::on_all_gone() {
  // A pending wait for signals would keep context_.run() from returning.
  signals_.cancel();
  if (server_) {
    server_->stop();
  }
  records_.state("ended");
  if (page_server_) {
    page_server_->stop();
  }
}

const char* Launcher::run_state() const {
  const RestartPolicy& policy = processes_.policy();
  return policy.finished()        ? "finished"
         : policy.exit_code()     ? "ending"
         : update_.is_under_way() ? "updating"
                                  : "training";
}

JobStatus Launcher::status() const {
  JobStatus status{
      .state = run_state(),
      .pid = getpid(),
      .since = since_,
      .progress = last_progress_,
      .tasks = {},
      .socket = control_ ? control_->path() : std::string(),
      .url = control_url_,
      .secret_file = control_ && !secret_.empty() ? control_->secret_path() : std::string()};
  // By job, because workers that have joined later are at the end of the list.
  for (const net::Job job :
       {net::Job::kPs, net::Job::kChief, net::Job::kWorker, net::Job::kEvaluator}) {
    for (const auto& task : processes_.tasks()) {
      if (task->id.job == job) {
        status.tasks.push_back(task->status(processes_.state_of(*task)));
      }
    }
  }
  return status;
}

LocalTask& Launcher::task_of(const net::TaskId& id) const {
  if (LocalTask* const task = processes_.find(id)) {
    return *task;
  }
  throw UnknownTask("there is no task " + task_name(id) + " in this launch");
}

void Launcher::refuse_when_busy() const {
  if (!processes_.may_start()) {
    throw JobRefusal("the run has ended or is ending; no task is restarted");
  }
  // Two sequences of restarts at once could each wait for a task that the other has stopped.
  if (update_.is_under_way()) {
    throw JobRefusal("an update is under way; try again when it is done");
  }
}

LocalTask& Launcher::task_to_restart(const net::TaskId& id) const {
  LocalTask& task = task_of(id);
  refuse_when_busy();
  // Such a task has succeeded, or failed for good: the policy has decided not to start it.
  if (task.pid < 0 && !processes_.state_of(task).waits) {
    throw JobRefusal(task_name(id) + " has ended and is not restarted");
  }
  return task;
}

std::string Launcher::log(const net::TaskId& id) const { return task_of(id).log.text(); }

std::shared_ptr<net::HttpLineStream> Launcher::follow(const net::TaskId& id) {
  auto reader = std::make_shared<net::HttpLineStream>();
  task_of(id).log.follow(reader);
  return reader;
}

std::string Launcher::restart(const net::TaskId& id) {
  LocalTask& task = task_to_restart(id);
  records_.asked(task_name(id), "Requested: restart " + task_name(id));
  processes_.restart(task);
  return task_name(id) + " is stopping and restarts at " + net::to_string(task.port.address());
}

std::string Launcher::replace(const net::TaskId& id) {
  LocalTask& task = task_to_restart(id);
  records_.asked(task_name(id), "Requested: replace " + task_name(id));
  processes_.replace(task);
  return task_name(id) + " was killed; a new process takes its place" +
         (processes_.state_of(task).can_move() ? " at a new address" : " at the same address");
}

std::string Launcher::update(const LaunchUpdate& wanted) {
  refuse_when_busy();
  LaunchUpdate all = updates_;
  if (wanted.workers) {
    all.workers = wanted.workers;
  }
  if (wanted.options) {
    all.options = wanted.options;
  }
  // Applies all updates to the original command line, so that an update of the workers does not
  // undo an earlier one of the options. Throws before anything changes.
  const LaunchOptions options = options_.reconsider(all);
  const UpdatePlan plan = plan_update(processes_.options(), options);
  std::string sentence = "nothing changes";
  if (!plan.changes.empty()) {
    sentence = update_.begin(options, plan);
    // After begin(), which may throw: a refused update must not be part of the next one.
    updates_ = all;
    say("update: " + sentence);
    records_.asked("", "update: " + sentence);
    records_.state(run_state());
  }
  for (const std::string& note : options.notes) {
    sentence += "; " + note;
  }
  return sentence;
}

std::string Launcher::save() {
  refuse_when_busy();
  if (argument_value(processes_.options().task_arguments, "train_dir").empty()) {
    throw JobRefusal("nothing is saved without --train_dir");
  }
  // The pid is not reused: this thread alone reaps the chief, and sets its pid to -1 then.
  kill(training_chief(), SIGUSR1);
  records_.asked("", "Requested: save");
  return "the next step is saved";
}

std::string Launcher::trace(std::uint32_t steps) {
  refuse_when_busy();
  sigval value{};
  value.sival_int = static_cast<int>(steps);
  // The number of steps travels with the signal; launch has no other channel to the chief.
  sigqueue(training_chief(), SIGUSR2, value);
  return "the chief collects a timeline of " + std::to_string(steps) + " steps";
}

// The pid of a chief that trains: earlier it does not handle the signals.
pid_t Launcher::training_chief() const {
  const pid_t chief = chief_pid();
  if (!reporting_chief_.trains(chief)) {
    throw JobRefusal("the chief is not training now; try again");
  }
  return chief;
}

// -1: the chief has no process now.
pid_t Launcher::chief_pid() const {
  for (const auto& task : processes_.tasks()) {
    // The first one is the only one: part_of() names worker 0 only without a separate chief.
    if (task->is_chief) {
      return task->pid;
    }
  }
  return -1;
}

std::string Launcher::stop() {
  if (!processes_.may_start()) {
    throw JobRefusal("the run has ended or is ending");
  }
  begin_to_stop(SIGTERM, "on request");
  return "the run is ending";
}

std::string Launcher::make_page_link() {
  if (!page_server_) {
    throw JobRefusal("this launch has no page; start it with --page");
  }
  return page_server_->make_link();
}

void Launcher::plan_faults() {
  if (options_.chaos) {
    std::vector<std::size_t> all(processes_.tasks().size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    faults_.emplace(*options_.chaos, std::move(all));
    say("chaos: seed " + std::to_string(options_.chaos->seed) + ", " +
        std::to_string(options_.chaos->per_1000) + " faults in 1000 steps");
  }
}

void Launcher::watch_signals() {
  signals_.async_wait([this](std::error_code error, int signal) {
    if (!error) {
      watch_signals();
      if (signal != SIGCHLD) {
        on_stop_signal(signal);
      }
      processes_.reap();
    }
  });
}

void Launcher::on_stop_signal(int signal) {
  const auto now = std::chrono::steady_clock::now();
  if (!stopped_at_) {
    begin_to_stop(signal, std::string("by ") + signal_name(signal));
  } else if (now - *stopped_at_ >= kSameRequest) {
    say(std::string(signal_name(signal)) + " again; killing all tasks");
    // A task that hangs while it saves can still be ended by the user.
    processes_.kill_all();
  }
}

void Launcher::begin_to_stop(int signal, const std::string& by_whom) {
  records_.asked("", "The run was stopped " + by_whom);
  // A signal after a stop by request counts as the second one.
  stopped_at_ = std::chrono::steady_clock::now();
  if (processes_.stop(exit_code_for(signal), signal)) {
    say("stopped " + by_whom + "; the chief saves first; a second signal kills all tasks");
  }
}

void Launcher::on_line(const LocalTask& task, std::string_view line, bool is_result) {
  if (is_result) {
    console_.print_output(line);
  } else {
    console_.print_line_of(task.id, line);
  }
}

void Launcher::on_progress(pid_t writer, std::string_view record) {
  feed_.take(record);  // ignores other lines
  if (record == kEvaluationBegins) {
    processes_.supervisor().evaluation_begins(std::chrono::steady_clock::now());
  }
  const std::optional<Progress> progress = parse_progress(record);
  // A step of a chief that has been replaced would make a restart seem complete too early, and a
  // signal to the new process, which does not handle it yet, would end that.
  if (progress && reporting_chief_.take(writer, chief_pid())) {
    // Kept for status(), which must answer without asking the chief.
    last_progress_ = progress;
    if (meters_) {
      meters_->progress(*progress, std::chrono::steady_clock::now());
    }
    update_.on_progress(*progress);
    draw_progress(*progress);
    // Faults after the end of the run would hit processes that are already stopping.
    if (faults_ && !processes_.policy().exit_code()) {
      for (const ProcessFault& fault : faults_->take_until(progress->step)) {
        make_fault(fault);
      }
    }
  }
}

void Launcher::draw_progress(const Progress& progress) {
  std::string line = progress_.on_record(progress, std::chrono::steady_clock::now());
  if (const std::string slowest = feed_.slowest(); !line.empty() && !slowest.empty()) {
    line += "  " + slowest;
  }
  console_.draw_live(std::move(line));
}

void Launcher::make_fault(const ProcessFault& fault) {
  LocalTask& task = *processes_.tasks().at(fault.task);
  const bool kills = fault.kind == ProcessFault::Kind::kKill;
  const bool has_parts = has_own_program(task, options_) && fault.part != ProcessFault::Part::kAll;
  const char* const part = !has_parts                                   ? ""
                           : fault.part == ProcessFault::Part::kProgram ? "the program of "
                                                                        : "the task of ";
  say(std::string("chaos: ") + (kills ? "SIGKILL" : "SIGSTOP") + " to " + part + task.name +
      " at step " + std::to_string(fault.step) +
      (kills ? "" : " for " + std::to_string(fault.frozen_for.count()) + " ms") +
      (task.pid > 0 ? "" : ", which is not running"));
  // The fault is not made up for later: the plan depends on the step alone.
  if (task.pid < 0) {
    return;
  }
  task.hit = has_parts ? fault.part : ProcessFault::Part::kAll;
  if (kills) {
    processes_.kill_task(task);
  } else {
    processes_.freeze(task, fault.frozen_for);
  }
}

}  // namespace

int run_launcher(const LaunchOptions& options) { return Launcher(options).run(); }

}  // namespace disttf::roles
