// The simulated cluster: its processes, their supervisor, and the faults. It is one class in one
// file, since nearly every fault depends on the running processes and on earlier faults.
#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/chief_process.h"
#include "tests/sim/directory_evaluator.h"
#include "tests/sim/evaluator.h"
#include "tests/sim/launcher.h"
#include "tests/sim/ps_process.h"
#include "tests/sim/scenario.h"

namespace disttf::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Faults happen in the first phase. In the second, every process must end.
constexpr seconds kSafetyPhase{400};
constexpr seconds kLivenessPhase{800};
// No timeout is shorter than this.
constexpr seconds kShortest{8};
// The most by which a clock may be ahead or behind.
constexpr seconds kMostClockError{200};
// All processes declare a ps dead that has sent nothing for this long: the heartbeat timeout and a
// margin.
constexpr seconds kHeartbeatTimeout{12};

class SimulatedCluster final : public Actor, public Directory, public LaunchedTasks {
 public:
  SimulatedCluster(const Scenario& scenario, bool trace, std::vector<std::string>* log)
      : scenario_(scenario),
        world_(scenario.seed, trace, log),
        secrets_(scenario.ps + scenario.trainers + (scenario.has_evaluator ? 1 : 0)),
        network_(world_, *this, scenario.network, scenario.has_secret ? &secrets_ : nullptr),
        checks_(world_, scenario.config, scenario.size, scenario.ps),
        disk_(world_, scenario.config, scenario.ps),
        current_(scenario.ps + scenario.trainers + (scenario.has_evaluator ? 1 : 0)),
        starts_(current_.size()),
        delivered_(64) {
    for (std::size_t index = 0; index < scenario.ps; ++index) {
      cluster_.ps.push_back({.host = "ps" + std::to_string(index), .port = 1});
    }
    for (std::size_t rank = 0; rank < scenario.trainers; ++rank) {
      const std::size_t host = rank / scenario.trainers_per_host;
      cluster_.workers.push_back(
          {.host = "w" + std::to_string(host),
           .port = static_cast<std::uint16_t>(1 + rank % scenario.trainers_per_host)});
    }
    if (scenario.launch) {
      launcher_.emplace(world_, *this,
                        SimulatedLauncher::Options{.ps = scenario.ps,
                                                   .trainers = scenario.trainers,
                                                   .restarts = *scenario.launch,
                                                   .saves = scenario.has_disk});
    }
  }

  Outcome run() {
    if (scenario_.other_config) {
      checks_.expect_also(*scenario_.other_config);
    }
    outcome_.happened.assign(scenario_.faults.size(), false);
    for (std::size_t node = 0; node < current_.size(); ++node) {
      // A launch starts all tasks before it accepts requests.
      const std::uint64_t delay = launcher_ ? 0 : world_.below(50, Draw::kRestart, node, 0);
      world_.schedule(world_.now() + milliseconds(delay), *this, kStart, node);
    }
    for (std::size_t each = 0; each < scenario_.faults.size(); ++each) {
      const Fault& fault = scenario_.faults[each];
      if (!fault.on && !fault.step && fault.follows == 0) {
        world_.schedule(kBeginning + fault.at, *this, kFault, each);
      }
    }
    schedule_secrets();
    while (world_.violation().empty() && !has_ended() && world_.step()) {
      for (Process* const process : std::exchange(to_rest_, {})) {
        process->lay_to_rest();
      }
      if (world_.now() > kBeginning + kSafetyPhase + kLivenessPhase) {
        world_.violate("the run does not come to its end: " + states_of(all_));
      }
    }
    check_last_save();
    outcome_.violation = world_.violation();
    outcome_.hash = world_.hash();
    outcome_.events = world_.events();
    outcome_.simulated = world_.now() - kBeginning;
    outcome_.marks = world_.marks();
    return outcome_;
  }

  Process* process_at(std::size_t node) override {
    Process* const process = current_[node];
    return process != nullptr && process->listens() ? process : nullptr;
  }

  bool about_to_deliver(const net::FrameHeader& frame, Process& from, Process& to) override {
    const std::uint64_t count = ++delivered_[static_cast<std::size_t>(frame.kind)];
    if (frame.kind == net::FrameKind::kPushPull || frame.kind == net::FrameKind::kPush) {
      reach_step(frame.step);
    }
    if (frame.kind == net::FrameKind::kHeartbeat) {
      return true;
    }
    for (std::size_t each = 0; each < scenario_.faults.size(); ++each) {
      const Fault& fault = scenario_.faults[each];
      if (fault.on == frame.kind && fault.nth == count) {
        const std::size_t node = fault.is_named    ? fault.node
                                 : fault.to_sender ? from.node()
                                                   : to.node();
        const std::size_t other = fault.is_named    ? fault.other
                                  : fault.to_sender ? to.node()
                                                    : from.node();
        const bool is_elsewhere =
            fault.words.empty() && fault.kind == Fault::Kind::kClog && fault.detail % 2 == 0;
        happen(each, node, is_elsewhere ? fault.other : other);
      }
    }
    return true;
  }

  void start_task(std::size_t node) override { start(node); }

  void signal_task(std::size_t node, int signal) override {
    Process* const process = current_[node];
    if (process == nullptr || !is_up(*process)) {
      return;
    }
    if (signal == SIGKILL) {
      kill(*process, /*silently=*/false);
    } else if (!process->is_frozen()) {  // a frozen process does not handle the signal
      terminated_ = true;
      terminate(*process);
    }
  }

  void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) override {
    switch (what) {
      case kStart:
        start(a);
        break;
      case kSecret:
        world_.mark(Mark::kSecretChanged);
        secrets_.change(a);
        break;
      case kFault:
        happen(a, scenario_.faults[a].node, scenario_.faults[a].other);
        break;
      case kFollow:
        happen(a, b, scenario_.faults[a].other);
        break;
      case kMount:
        disk_.mount();
        break;
      case kStoreIsBack:
        disk_.come_back();
        break;
      default:
        break;
    }
  }

 private:
  enum Happening : std::uint32_t { kStart = 1, kFault, kSecret, kMount, kStoreIsBack, kFollow };

  // The supervisor of a trainer and its program; nullptr: there is none.
  [[nodiscard]] OwnProgram* program_of(const Process& process) const {
    const auto* const trainer =
        scenario_.program ? dynamic_cast<const WorkerProcess*>(&process) : nullptr;
    return trainer == nullptr ? nullptr : trainer->own_program();
  }

  // Whether the process lives, or its supervisor does.
  [[nodiscard]] bool is_up(const Process& process) const {
    const OwnProgram* const program = program_of(process);
    return process.is_alive() || (program != nullptr && program->is_alive());
  }

  void terminate(Process& process) {
    if (OwnProgram* const program = program_of(process)) {
      program->stop();
    } else {
      process.terminate();
    }
  }

  void add_program(WorkerProcess& process) {
    const roles::RunConfig& config = config_now();
    const SimulatedProgram::Work work{.checks = checks_,
                                      .size = scenario_.size,
                                      .compute_us = scenario_.pace.compute_us,
                                      .slow_one_in = scenario_.pace.slow_one_in,
                                      .is_exact = config.every_gradient_counts(),
                                      .options = *scenario_.program};
    process.set_program(
        std::make_unique<OwnProgram>(world_, work, process,
                                     [this, &process](int code, const std::string& sentence) {
                                       ended(process, code, sentence);
                                     }),
        *scenario_.program);
  }

  // A task has ended whose supervisor may still live.
  void task_ended(Process& process, const roles::Ending& ending, const std::string& sentence) {
    checks_.witnesses().has_gone(process.task().incarnation);
    to_rest_.push_back(&process);
    program_of(process)->task_ended(ending, sentence);
  }

  void schedule_secrets() {
    std::uint64_t drawn = 0;
    for (const SecretChange& change : scenario_.secret_changes) {
      for (std::size_t step = 0; step < kSecretSteps; ++step) {
        const Time begin = kBeginning + change.at + step * change.each_within;
        const auto within = static_cast<std::uint64_t>(change.each_within.count());
        for (std::size_t node = 0; node < current_.size(); ++node) {
          const Duration after(world_.below(within, Draw::kSecret, 1, drawn++));
          world_.schedule(begin + after, *this, kSecret, node);
        }
      }
    }
  }

  [[nodiscard]] bool is_evaluator(std::size_t node) const {
    return node == scenario_.ps + scenario_.trainers;
  }

  // The configuration with which trainers are started.
  [[nodiscard]] const roles::RunConfig& config_now() const {
    return is_other_ ? *scenario_.other_config : scenario_.config;
  }

  // Returns whether the process ended since its flags do not match the run. The chief's flags are
  // corrected before its restart; a worker gets the chief's flags.
  bool ends_for_flags(const Process& process, int code) {
    if (code != roles::kUsage || !has_begun_anew_) {
      return false;
    }
    if (process.node() == scenario_.ps && current_[process.node()] == &process) {
      is_other_ = !is_other_;
      // If ps refuse a chief with either configuration, some hold the one and some the other. The
      // operator then restarts all ps, as docs/operations.md says.
      constexpr std::size_t kRefusalsBefore = 4;
      if (++refusals_ % kRefusalsBefore == 0) {
        restart(/*from=*/0, /*end=*/scenario_.ps, /*except=*/scenario_.ps);
      }
    }
    return true;
  }

  // Kills and restarts processes of these nodes.
  void restart(std::size_t from, std::size_t end, std::size_t except) {
    for (std::size_t node = from; node < end; ++node) {
      Process* const process = current_[node];
      if (node != except && process != nullptr && is_up(*process)) {
        kill(*process, /*silently=*/false);
        start_later(node);
      }
    }
  }

  bool begin_anew(const Fault& fault) {
    if (!scenario_.other_config) {
      return false;
    }
    world_.mark(Mark::kBegunAnew);
    has_begun_anew_ = true;
    is_other_ = !is_other_;
    // In a third of the cases one ps survives, otherwise none. The node after the ps is the
    // chief's.
    const std::size_t chief = scenario_.ps;
    const std::size_t left = fault.detail % 3 == 0 ? fault.detail / 3 % scenario_.ps : chief + 1;
    restart(0, chief + 1, left);
    return true;
  }

  void replace_older(std::size_t node) {
    for (const auto& each : all_) {
      if (each->node() == node) {
        each->replaced();
      }
    }
  }

  void start(std::size_t node) {
    if (current_[node] != nullptr && is_up(*current_[node])) {
      return;
    }
    // Also when the run is over: no process replaces it then, and none reports the end to it when
    // it runs again.
    replace_older(node);
    if (run_is_over_ || away_.contains(node)) {
      return;
    }
    const std::uint64_t number = ++starts_[node];
    roles::Task task;
    task.cluster = cluster_;
    task.self = is_evaluator(node)    ? net::TaskId{.job = net::Job::kEvaluator, .index = 0}
                : node < scenario_.ps ? net::TaskId{.job = net::Job::kPs, .index = node}
                                      : cluster_.trainer(node - scenario_.ps);
    task.incarnation = incarnation_of(world_, clock_error(node, number), node, number);
    task.timeouts = {.start = seconds(300),
                     .peer = seconds(60),
                     .worker = seconds(20),
                     .heartbeat_timeout = seconds(10)};
    task.transport = scenario_.pace.gradients_in_memory != 0 ? roles::Transport::kSharedMemory
                                                             : roles::Transport::kTcp;
    const auto on_end = [this](Process& process, int code, const std::string& sentence) {
      if (program_of(process) == nullptr) {
        ended(process, code, sentence);
      } else if (code == kKilled) {
        task_ended(process, {.signal = SIGKILL}, sentence);
      } else {
        task_ended(process, {.exit_code = code}, sentence);
      }
    };
    std::unique_ptr<Process> process;
    if (is_evaluator(node) && scenario_.evaluates_directory) {
      process = std::make_unique<DirectoryEvaluatorProcess>(
          world_, network_, checks_, disk_, scenario_.config, scenario_.evaluated_every,
          [this] { return !run_is_over_; }, task, node, on_end);
    } else if (is_evaluator(node)) {
      process = std::make_unique<EvaluatorProcess>(world_, network_, checks_, scenario_.config,
                                                   scenario_.evaluated_every, task, node,
                                                   scenario_.size, on_end);
    } else if (node < scenario_.ps) {
      process = std::make_unique<PsProcess>(
          world_, network_, checks_, scenario_.has_disk ? &disk_ : nullptr, task, node, on_end);
    } else if (node == scenario_.ps) {
      process = std::make_unique<ChiefProcess>(
          world_, network_, checks_, config_now(), scenario_.pace, scenario_.checkpoint,
          scenario_.has_disk ? &disk_ : nullptr, task, node, scenario_.size, on_end);
    } else {
      process = std::make_unique<WorkerProcess>(world_, network_, checks_, config_now(),
                                                scenario_.pace, task, node, scenario_.size, on_end);
    }
    if (scenario_.trainers_per_host > 1 && node >= scenario_.ps && !is_evaluator(node)) {
      join_host(dynamic_cast<TrainerProcess&>(*process), node - scenario_.ps);
    }
    auto* const trainer = scenario_.program ? dynamic_cast<WorkerProcess*>(process.get()) : nullptr;
    if (scenario_.clocks_differ) {
      process->set_clock(
          900'000 + static_cast<std::int64_t>(world_.below(200'001, Draw::kClock, node, number)));
    }
    process->set_number(number);
    if (trainer != nullptr) {
      add_program(*trainer);
    }
    world_.log(process->name() + " starts, process " + std::to_string(number));
    current_[node] = process.get();
    all_.push_back(std::move(process));
    if (launcher_) {
      launcher_->started(node);
    }
    if (trainer != nullptr) {
      trainer->own_program()->start();
    }
    current_[node]->start();
  }

  void join_host(TrainerProcess& process, std::size_t rank) {
    const net::HostGroup group = net::host_group_of(cluster_, rank);
    if (group.count > 1) {
      SimulatedHost& host = hosts_[group.first];
      host.members = group.count - 1;
      host.wake = [](Process& other) { dynamic_cast<WorkerProcess&>(other).record_host(); };
      process.set_host(host, scenario_.summed_ranges);
    }
  }

  // A task may be restarted on another machine, whose clock differs. Returns, for a trainer,
  // whether another process of its task, dead or alive, has a higher incarnation. (For a ps that
  // was frozen, the run's generations decide.)
  [[nodiscard]] bool is_outdated(const Process& process) const {
    return process.node() < scenario_.ps || std::ranges::any_of(all_, [&process](const auto& each) {
             return each->node() == process.node() && each->incarnation() > process.incarnation();
           });
  }

  [[nodiscard]] Duration clock_error(std::size_t node, std::uint64_t number) const {
    const std::uint64_t drawn = world_.draw(Draw::kIncarnation, 1000 + node, number);
    return drawn % 4 == 0 ? kMostClockError - milliseconds((drawn >> 8U) % 400'000)
                          : Duration::zero();
  }

  void start_later(std::size_t node, Duration more = Duration::zero()) {
    if (launcher_) {
      return;  // the launcher starts it
    }
    const std::uint64_t delay =
        10 + world_.below(scenario_.slowest_restart_ms, Draw::kRestart, node, 1 + starts_[node]);
    world_.schedule(world_.now() + more + milliseconds(delay), *this, kStart, node);
    ++outcome_.restarts;
  }

  void kill(Process& process, bool silently) {
    process.kill(silently);
    if (OwnProgram* const program = program_of(process)) {
      program->kill();
    }
    checks_.witnesses().has_gone(process.task().incarnation);
    tell_launcher(process, {.signal = SIGKILL});
  }

  void tell_launcher(const Process& process, const roles::Ending& ending) {
    if (launcher_ && current_[process.node()] == &process) {
      launcher_->ended(process.node(), ending);
      run_is_over_ = run_is_over_ || launcher_->has_decided();
    }
  }

  void ended(Process& process, int code, const std::string& sentence) {
    checks_.witnesses().has_gone(process.task().incarnation);
    judge_end(process, code, sentence);
    if (launcher_ && code == roles::kError && program_of(process) != nullptr) {
      launcher_->expect_failure();  // judge_end() has found the cause
    }
    tell_launcher(process, code == kKilled ? roles::Ending{.signal = SIGKILL}
                                           : roles::Ending{.exit_code = code});
  }

  void judge_end(Process& process, int exit_code, const std::string& sentence) {
    const OwnProgram* const program = program_of(process);
    // The task has its result all the same.
    const bool is_done =
        exit_code == roles::kError && program != nullptr && program->was_lost_at_end();
    const int code = is_done ? static_cast<int>(roles::kDone) : exit_code;
    to_rest_.push_back(&process);
    if (is_evaluator(process.node())) {
      judge_evaluator(dynamic_cast<const ScoringProcess&>(process), code, sentence);
      return;
    }
    if (code == roles::kDone) {
      if (process.node() == scenario_.ps) {
        outcome_.trained = world_.now() - kBeginning;
      }
      checks_.task_is_done(process.name());
      if (!std::exchange(run_is_over_, true)) {
        over_at_ = world_.now();
      }
      return;
    }
    const bool is_current = current_[process.node()] == &process;
    if (code == kKilled) {
      if (is_current && !run_is_over_) {
        start_later(process.node());
      }
      return;
    }
    if (code == roles::kError && program != nullptr && program->has_gone_wrong()) {
      fail_run();
      return;
    }
    const bool is_excused =
        ends_for_flags(process, code) ||
        (code == roles::kTerminated
             ? terminated_
             : code == roles::kLostPeers &&
                   (run_is_over_ || !is_current || excuse_ >= kShortest ||
                    (sentence.find("replaced") != std::string::npos && is_outdated(process))));
    if (code == roles::kLostPeers) {
      world_.mark(Mark::kLostPeers);
    }
    if (!is_excused) {
      world_.violate(process.name() + " ends with " + std::to_string(code) +
                     " without a cause (invariant 18): " + sentence);
      return;
    }
    if (is_current && !run_is_over_) {
      start_later(process.node());
    }
  }

  // A program has failed. Without a launch, the user stops the other tasks.
  void fail_run() {
    world_.mark(Mark::kRunFailedByProgram);
    terminated_ = true;
    if (!launcher_ && !run_is_over_) {
      run_is_over_ = true;
      for (const auto& each : all_) {
        if (is_up(*each)) {
          kill(*each, /*silently=*/false);
        }
      }
    }
  }

  // The exit code of an evaluator affects no other process. The evaluator must have the result if
  // it joined in time, no process was lost and no frame was slow. Otherwise a code that reports the
  // failure is allowed.
  void judge_evaluator(const ScoringProcess& process, int code, const std::string& sentence) {
    const bool is_over = run_is_over_ && process.was_there_before(over_at_);
    const bool is_fast = scenario_.network.slow_one_in == 0;
    if (outcome_.faults == 0 && is_fast && is_over && !process.has_result()) {
      world_.violate(process.name() + " ends with " + std::to_string(code) +
                     " without the result, though nothing has happened: " + sentence);
    }
    if (code != roles::kDone && !run_is_over_ && current_[process.node()] == &process) {
      start_later(process.node());
    }
  }

  [[nodiscard]] bool has_ended() const {
    return run_is_over_ && (!launcher_ || launcher_->has_ended()) &&
           std::ranges::none_of(all_, [this](const auto& process) { return is_up(*process); });
  }

  // The first gradient of that step is about to be delivered.
  void reach_step(std::uint64_t step) {
    if (step < next_step_) {
      return;
    }
    next_step_ = step + 1;
    for (std::size_t each = 0; each < scenario_.faults.size(); ++each) {
      const Fault& fault = scenario_.faults[each];
      if (fault.step && *fault.step <= step) {
        happen(each, fault.node, fault.other);
      }
    }
  }

  // `node`, `other`: the nodes that the fault concerns.
  void happen(std::size_t number, std::size_t node, std::size_t other) {
    const Fault& fault = scenario_.faults[number];
    Process* const process = current_[node];
    if (outcome_.happened[number] || run_is_over_ || world_.now() > kBeginning + kSafetyPhase) {
      return;
    }
    const bool has_happened = strike(fault, process, node, other);
    if (!has_happened) {
      return;
    }
    outcome_.happened[number] = true;
    ++outcome_.faults;
    schedule_followers(fault, node);
    if (!fault.words.empty()) {
      world_.log("--- " + fault.words);
    } else if (world_.traces()) {
      world_.trace("FAULT " + std::to_string(number) + ": " + to_string(fault, scenario_.ps));
    }
  }

  // Once a run with a --train_dir has printed its result, the result must be saved, unless the disk
  // failed or the ps were unreachable for so long that the chief stopped trying.
  void check_last_save() {
    const std::optional<std::uint64_t> result = checks_.result_step();
    bool is_excused = terminated_ || excuse_ >= kShortest || (launcher_ && launcher_->has_failed());
    for (std::size_t each = 0; each < scenario_.faults.size(); ++each) {
      const Fault::Kind kind = scenario_.faults[each].kind;
      is_excused = is_excused || (outcome_.happened[each] && kind > Fault::Kind::kKillAtDisk &&
                                  kind < Fault::Kind::kKillProgram);
    }
    if (scenario_.has_disk && result && !is_excused && disk_.saved() < *result) {
      world_.violate("the run ends after step " + std::to_string(*result) +
                     ", and the newest checkpoint is of step " + std::to_string(disk_.saved()) +
                     " (invariant 20)");
    }
  }

  // Schedules the faults that soon follow this one, which has struck `node`.
  void schedule_followers(const Fault& fault, std::size_t node) {
    for (std::size_t each = 0; fault.id != 0 && each < scenario_.faults.size(); ++each) {
      const Fault& next = scenario_.faults[each];
      if (next.follows == fault.id) {
        world_.schedule(world_.now() + next.at, *this, kFollow, each, follower(next, node));
      }
    }
  }

  [[nodiscard]] std::size_t follower(const Fault& next, std::size_t node) const {
    switch (next.whom) {
      case Fault::Whom::kSame:
        return node;
      case Fault::Whom::kOtherHost:
        return node < scenario_.ps ? (node + 1) % scenario_.ps : next.node;
      case Fault::Whom::kChief:
        return scenario_.ps;
      case Fault::Whom::kNamed:
        break;
    }
    return next.node;
  }

  bool strike(const Fault& fault, Process* process, std::size_t node, std::size_t other) {
    const bool is_alive = process != nullptr && process->is_alive();
    const bool is_there = is_alive && !process->is_frozen();
    switch (fault.kind) {
      case Fault::Kind::kKill:
      case Fault::Kind::kVanish:
        if (!is_alive) {
          return false;
        }
        world_.mark(fault.kind == Fault::Kind::kKill ? Mark::kKill : Mark::kVanish);
        if (kills_task_alone(fault, *process)) {
          static_cast<void>(stays_away(node, fault));
          process->kill(/*silently=*/false);
          task_ended(*process, {.signal = SIGKILL}, "killed");  // its supervisor ends with it
          return true;
        }
        kill(*process, fault.kind == Fault::Kind::kVanish);
        if (fault.kind == Fault::Kind::kVanish && scenario_.has_disk) {
          disk_.lose_power();
        }
        if (!stays_away(node, fault)) {
          start_later(node);
        }
        return true;
      case Fault::Kind::kTerm:
        if (!is_there) {
          return false;
        }
        world_.mark(Mark::kTerm);
        terminated_ = true;
        if (launcher_ && fault.detail % 8 < 3) {
          ask_launcher(fault.detail % 8, node);
        } else {
          terminate(*process);
        }
        return true;
      case Fault::Kind::kFreeze:
      case Fault::Kind::kReplace:
        if (!is_there) {
          return false;
        }
        world_.mark(Mark::kFreeze);
        if (OwnProgram* const program = program_of(*process)) {
          program->freeze_with_task(fault.detail / 1024 % 2 == 0);
        }
        if (fault.kind == Fault::Kind::kReplace && !launcher_) {
          // As an orchestrator does: a ps is replaced only after a heartbeat timeout at all others.
          const Duration until_lost = node < scenario_.ps ? kHeartbeatTimeout : Duration::zero();
          excuse_ += fault.duration + until_lost;
          process->freeze(world_.now() + fault.duration + 2 * until_lost);
          current_[node] = nullptr;
          start_later(node, until_lost);
        } else {
          excuse_ += fault.duration;
          process->freeze(world_.now() + fault.duration);
        }
        return true;
      case Fault::Kind::kBreak:
      case Fault::Kind::kCutBody:
        return strike_connection(fault, node, other);
      case Fault::Kind::kClog:
        if (node == other) {
          return false;
        }
        world_.mark(Mark::kClog);
        excuse_ += fault.duration;
        network_.clog(node, other, world_.now() + fault.duration);
        return true;
      case Fault::Kind::kIsolate:
        world_.mark(Mark::kClog);
        excuse_ += fault.duration;
        for (std::size_t each = 0; each < current_.size(); ++each) {
          network_.clog(node, each, world_.now() + fault.duration);
          network_.clog(each, node, world_.now() + fault.duration);
        }
        return true;
      case Fault::Kind::kKillAtDisk:
      case Fault::Kind::kDiskFails:
      case Fault::Kind::kRot:
      case Fault::Kind::kClockSteps:
        return strike_disk(fault);
      case Fault::Kind::kBeginAnew:
        return begin_anew(fault);
      case Fault::Kind::kUnmount:
      case Fault::Kind::kStoreAway:
        return take_disk_away(fault);
      case Fault::Kind::kKillProgram:
      case Fault::Kind::kFreezeProgram:
      case Fault::Kind::kWrongProgram:
        return is_alive && strike_program(fault, *process);
      case Fault::Kind::kCount:
        break;
    }
    return false;
  }

  // The process is killed and not its supervisor.
  [[nodiscard]] bool kills_task_alone(const Fault& fault, const Process& process) const {
    return fault.kind == Fault::Kind::kKill && fault.detail / 1024 % 3 == 0 &&
           !process.is_frozen() && program_of(process) != nullptr;
  }

  bool strike_program(const Fault& fault, const Process& process) {
    OwnProgram* const program = program_of(process);
    if (program == nullptr || !program->is_alive()) {
      return false;
    }
    switch (fault.kind) {
      case Fault::Kind::kKillProgram:
        return program->kill_program(fault.detail);
      case Fault::Kind::kFreezeProgram:
        excuse_ += fault.duration;
        return program->freeze_program(fault.duration, fault.detail);
      default:
        return program->go_wrong(static_cast<ProgramWrong>(1 + fault.detail % kProgramWrongs));
    }
  }

  bool strike_disk(const Fault& fault) {
    const std::size_t operation = fault.detail / 16 % 40;  // a save makes about twenty operations
    switch (fault.kind) {
      case Fault::Kind::kKillAtDisk:
        disk_.kill_at(operation, fault.detail % 2 == 0);
        return true;
      case Fault::Kind::kDiskFails:
        disk_.fail_at(operation,
                      fault.detail % 2 == 0 ? std::errc::no_space_on_device : std::errc::io_error,
                      fault.detail % 4 < 2 ? 1 : 1 + fault.detail / 640 % 60);
        return true;
      case Fault::Kind::kRot:
        return disk_.rot(fault.detail);
      default: {
        const auto by = static_cast<std::int64_t>(fault.detail % 20'000) - 10'000;
        disk_.step_clock(seconds(by));
        return true;
      }
    }
  }

  // The --train_dir is moved or unmounted, or the store does not answer; later it returns.
  bool take_disk_away(const Fault& fault) {
    const bool is_unmounted = fault.kind == Fault::Kind::kUnmount;
    if (!(is_unmounted ? disk_.unmount() : disk_.go_away())) {
      return false;
    }
    if (!is_unmounted) {  // a chief that has to start from the store waits for it
      excuse_ += fault.duration;
    }
    world_.schedule(world_.now() + fault.duration, *this, is_unmounted ? kMount : kStoreIsBack);
    return true;
  }

  // Sends the launch a user's request.
  void ask_launcher(std::uint64_t what, std::size_t node) {
    if (what == 0) {
      launcher_->restart(node);
    } else if (what == 1) {
      launcher_->replace(node);
    } else {
      launcher_->restart_all();
    }
  }

  // Elastic: a lost worker need not return if enough trainers are left.
  bool stays_away(std::size_t node, const Fault& fault) {
    const std::size_t least = std::max<std::size_t>(scenario_.config.min_workers, 1);
    if (launcher_ || !scenario_.config.elastic() || node <= scenario_.ps || is_evaluator(node) ||
        fault.detail % 2 == 0 || scenario_.trainers - away_.size() <= least) {
      return false;
    }
    away_.insert(node);
    world_.mark(Mark::kStaysAway);
    return true;
  }

  bool strike_connection(const Fault& fault, std::size_t node, std::size_t other) {
    const std::vector<ConnectionId> open = network_.open_between(node, other);
    if (open.empty()) {
      return false;
    }
    const ConnectionId id = open[fault.detail % open.size()];
    if (fault.kind == Fault::Kind::kCutBody) {
      network_.cut_next_body(id);
      return true;
    }
    world_.mark(Mark::kBreak);
    const Duration soon = std::chrono::microseconds(fault.detail % 1000);
    const Duration late = std::min<Duration>(fault.duration, seconds(9));
    const std::uint64_t who = fault.detail >> 16U;
    network_.break_now(id, who % 3 == 0 ? late : soon, who % 3 == 1 ? late : soon);
    return true;
  }

  const Scenario& scenario_;
  World world_;
  SecretFiles secrets_;
  Network network_;
  Checks checks_;
  net::Cluster cluster_;
  SimulatedDisk disk_;
  std::map<std::size_t, SimulatedHost> hosts_;  // by the rank of its leader
  std::vector<std::unique_ptr<Process>> all_;
  std::vector<Process*> current_;  // by node
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint64_t> delivered_;  // by kind of frame
  std::optional<SimulatedLauncher> launcher_;
  std::uint64_t next_step_ = 0;  // the first step without a delivered gradient
  std::vector<Process*> to_rest_;
  std::set<std::size_t> away_;  // nodes that are not restarted
  Outcome outcome_;
  bool run_is_over_ = false;  // a task has exited with 0
  Time over_at_{};            // when that happened
  bool terminated_ = false;
  bool has_begun_anew_ = false;
  std::size_t refusals_ = 0;  // of chiefs, for their flags
  bool is_other_ = false;     // the chief has the other configuration
  Duration excuse_{};         // time in which a process may have been missing
};

}  // namespace

Outcome simulate(const Scenario& scenario, bool trace, std::vector<std::string>* log) {
  return SimulatedCluster(scenario, trace, log).run();
}

}  // namespace disttf::sim
