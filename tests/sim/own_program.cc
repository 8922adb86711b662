#include "tests/sim/own_program.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "run/outcome.h"

namespace disttf::sim {

using roles::ProgramKind;
using roles::ProgramMessage;
using std::chrono::microseconds;

namespace {

// The run fails if so many programs are killed in succession without a step.
constexpr int kFewDeaths = roles::kMostProgramDeaths - 1;

}  // namespace

OwnProgram::OwnProgram(World& world, const SimulatedProgram::Work& work, Process& task,
                       OnEnd on_end)
    : world_(world),
      work_(work),
      task_(task),
      on_end_(std::move(on_end)),
      core_({.has_spare = work.options.has_spare}) {}

std::uint64_t OwnProgram::draw() {
  return world_.draw(Draw::kProgram, task_.task().incarnation, drawn_++);
}

// The latency of a signal, of a wake-up, and of the notice that a process has ended.
void OwnProgram::soon(Happening what, std::uint64_t a) {
  world_.schedule(world_.now() + microseconds(3 + draw() % 60), *this, what, a);
}

void OwnProgram::start() {
  core_.begin();
  act();
}

// ------------------------------------------------------------------------ what the cluster does

void OwnProgram::task_ended(const roles::Ending& ending, const std::string& sentence) {
  if (!is_alive_ || task_ending_) {
    return;
  }
  task_ending_ = ending;
  if (last_line_.empty()) {
    last_line_ = sentence;
  }
  to_task_.clear();
  for (const Running& each : programs_) {
    if (each.is_handed_over) {
      each.program->socket()->task_has_closed = true;
      each.program->wake();
    }
  }
  soon(kReap);
}

void OwnProgram::kill() {
  is_alive_ = false;
  for (const Running& each : programs_) {
    each.program->signal(SIGKILL);
  }
}

void OwnProgram::stop() {
  core_.stop(SIGTERM, world_.now());
  act();
}

void OwnProgram::freeze_with_task(bool all) {
  Running* const computing = active();
  freezes_with_task_ = all && (computing == nullptr || survives(*computing));
}

bool OwnProgram::defers(Actor& actor, std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  if (!freezes_with_task_ || !task_.is_alive() || !task_.is_frozen()) {
    return false;
  }
  task_.defer(actor, what, a, b);
  return true;
}

// --------------------------------------------------------------------------------------- faults

OwnProgram::Running* OwnProgram::find(roles::ProgramId id) {
  const auto found = std::ranges::find_if(
      programs_, [id](const Running& each) { return each.program->id() == id; });
  return found == programs_.end() ? nullptr : &*found;
}

OwnProgram::Running* OwnProgram::active() {
  const auto found = std::ranges::find_if(programs_, [](const Running& each) {
    return each.is_handed_over && each.program->is_alive();
  });
  return found == programs_.end() ? nullptr : &*found;
}

OwnProgram::Running* OwnProgram::spare() {
  const auto found = std::ranges::find_if(programs_, [](const Running& each) {
    return !each.is_handed_over && each.program->is_alive();
  });
  return found == programs_.end() ? nullptr : &*found;
}

// Whether its death, which is to come, counts.
bool OwnProgram::is_doomed(const Running& running) const {
  return !running.is_reaped && !running.has_made_step &&
         (!running.program->is_alive() || running.program->is_endangered());
}

int OwnProgram::doomed_but(const SimulatedProgram* struck) const {
  return static_cast<int>(std::ranges::count_if(programs_, [&](const Running& each) {
    return each.program.get() != struck && is_doomed(each);
  }));
}

bool OwnProgram::survives(const Running& struck) {
  return deaths_ + doomed_but(struck.program.get()) + (struck.has_made_step ? 0 : 1) <= kFewDeaths;
}

bool OwnProgram::may_die(const SimulatedProgram& program) {
  Running* const running = find(program.id());
  return running != nullptr && survives(*running);
}

bool OwnProgram::kill_program(std::uint64_t detail) {
  const auto strike = [this](Running* running) {
    if (running == nullptr || !survives(*running)) {
      return false;
    }
    world_.mark(Mark::kProgramKilled);
    running->program->signal(SIGKILL);
    return true;
  };
  Running* const computing = active();
  if (computing != nullptr && detail % 8 >= 4 && survives(*computing)) {
    computing->program->kill_at(detail % 2 == 0 ? ProgramMoment::kWhileComputing
                                                : ProgramMoment::kWithAnswer);
    return true;
  }
  switch (detail % 4) {
    case 0:
      return strike(spare());
    case 1: {
      const bool has_struck = strike(active());
      return strike(spare()) || has_struck;
    }
    default:
      return strike(computing);
  }
}

bool OwnProgram::freeze_program(Duration duration, std::uint64_t detail) {
  Running* const computing = detail % 8 == 0 ? spare() : active();
  if (computing == nullptr || !survives(*computing)) {
    return false;
  }
  world_.mark(Mark::kProgramFrozen);
  // For ever only while the task waits for an answer: that it hangs is noticed then.
  const bool hangs =
      computing->is_handed_over && computing->program->is_computing() && detail % 3 == 0;
  computing->program->freeze(hangs ? Time::max() : world_.now() + duration);
  return true;
}

bool OwnProgram::go_wrong(ProgramWrong wrong) {
  Running* const computing = active();
  if (computing == nullptr || wrong_ != ProgramWrong::kNothing || has_gone_wrong_) {
    return false;
  }
  if (wrong == ProgramWrong::kOtherLayout) {
    if (!computing->has_made_step) {  // the task may not have learned the first layout
      return false;
    }
    computing->program->signal(SIGKILL);
    if (Running* const other = spare(); other != nullptr && survives(*other)) {
      other->program->signal(SIGKILL);
    }
  }
  wrong_ = wrong;
  return true;
}

bool OwnProgram::takes_wrong(ProgramWrong wrong) {
  if (wrong_ != wrong || is_released_) {
    return false;
  }
  wrong_ = ProgramWrong::kNothing;
  has_gone_wrong_ = true;
  world_.mark(Mark::kProgramWrong);
  return true;
}

// ------------------------------------------------------------------------------------- the task

void OwnProgram::send_to_supervisor(const ProgramMessage& message) {
  if (is_alive_) {
    to_supervisor_.push_back(bytes_of(message));
    soon(kMessage);
  }
}

void OwnProgram::wake_program(const ProgramSocket& socket) {
  for (const Running& each : programs_) {
    if (each.program->socket().get() == &socket) {
      each.program->wake();
    }
  }
}

void OwnProgram::gradient_is_taken(const ProgramSocket& socket) {
  for (Running& each : programs_) {
    // The supervisor does not count a step of a program whose end it has noticed.
    if (each.program->socket().get() == &socket && !each.is_reaped) {
      each.has_made_step = true;
      deaths_ = 0;
    }
  }
}

void OwnProgram::has_written(const ProgramSocket& socket) {
  const bool is_read = std::ranges::any_of(programs_, [&](const Running& each) {
    return each.is_handed_over && each.program->socket().get() == &socket;
  });
  if (is_read && !task_ending_) {
    soon(kWakeTask);
  }
}

void OwnProgram::has_died(SimulatedProgram& /*program*/) {
  if (is_alive_) {
    soon(kReap);
  }
}

void OwnProgram::tell_task(const ProgramMessage& message, std::shared_ptr<ProgramSocket> socket) {
  if (!task_ending_) {
    to_task_.push_back({.bytes = bytes_of(message), .socket = std::move(socket)});
    soon(kWakeTask);
  }
}

void OwnProgram::signal_task(int signal) {
  if (task_ending_) {
    return;
  }
  if (signal == SIGKILL) {
    task_.kill(/*silently=*/false);
    task_ended({.signal = signal}, "killed by its supervisor");
    return;
  }
  task_.thaw();  // a stopped process receives the signal only when it continues
  task_.terminate();
}

// --------------------------------------------------------------------------------------- events

void OwnProgram::read_messages() {
  while (!to_supervisor_.empty()) {
    const Bytes bytes = std::move(to_supervisor_.front());
    to_supervisor_.pop_front();
    std::string why;
    const auto packet = roles::decode(bytes, why);
    if (!packet) {
      world_.violate(task_.name() + " has sent its supervisor " + why);
      return;
    }
    is_released_ = is_released_ || packet->message.kind == ProgramKind::kRelease;
    if (packet->message.kind == ProgramKind::kRestart) {
      world_.mark(Mark::kProgramHung);
    }
    core_.message(packet->message, world_.now());
  }
}

void OwnProgram::reap() {
  read_messages();
  act();
  if (task_ending_ && !std::exchange(is_task_reaped_, true)) {
    core_.task_ended(*task_ending_, world_.now());
    act();
  }
  for (std::size_t each = 0; each < programs_.size(); ++each) {
    Running& running = programs_[each];
    const std::optional<roles::Ending> ending = running.program->ending();
    if (!ending || std::exchange(running.is_reaped, true)) {
      continue;
    }
    was_lost_at_end_ = was_lost_at_end_ || (is_released_ && ending->signal != 0);
    deaths_ += ending->signal != 0 && !running.has_made_step ? 1 : 0;
    core_.program_ended(running.program->id(), *ending, world_.now());
  }
  act();
}

void OwnProgram::on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  if (!is_alive_ || defers(*this, what, a, b)) {
    return;
  }
  switch (what) {
    case kMessage:
      read_messages();
      break;
    case kReap:
      reap();
      break;
    case kWakeTask:
      if (task_.is_alive() && !task_.is_frozen() && wake_task_) {
        wake_task_();
      } else if (task_.is_alive() && task_.is_frozen()) {
        task_.defer(*this, what, a, b);
      }
      return;
    case kSignalTask:
      signal_task(static_cast<int>(a));
      break;
    default:
      if (world_.now() >= armed_) {
        armed_ = Time{};
      }
      core_.time(world_.now());
  }
  act();
}

// -------------------------------------------------------------------------------------- effects

void OwnProgram::act() {
  core_.effects().drain([this](const auto& effect) { carry_out(effect); });
  const Time next = core_.deadline();
  if (is_alive_ && next != Time::max() && (armed_ <= world_.now() || next < armed_)) {
    armed_ = std::max(next, world_.now());
    world_.schedule(next, *this, kTime);
  }
}

// The cluster starts it.
void OwnProgram::carry_out(const roles::StartOwnTask& /*effect*/) {}

void OwnProgram::carry_out(const roles::StartOwnProgram& effect) {
  const std::uint64_t one_in = work_.options.start_fails_one_in;
  if (one_in != 0 && draw() % one_in == 0) {
    world_.mark(Mark::kProgramNotStarted);
    core_.could_not_start(effect.id, "no process can be created", world_.now());
    return;
  }
  const std::uint64_t stream = task_.task().incarnation + effect.id;
  const std::string name = "the program of " + task_.title() + " (" + std::to_string(effect.id) +
                           (effect.is_spare ? ", a spare)" : ")");
  world_.log(name + " starts");
  programs_.push_back({.program = std::make_unique<SimulatedProgram>(
                           world_, *this, work_, effect.id, effect.is_spare, stream, name)});
  programs_.back().program->start();
  core_.program_started(effect.id);
}

void OwnProgram::carry_out(const roles::HandOverProgram& effect) {
  Running* const running = find(effect.id);
  // A spare that was killed together with the program before it.
  if (running == nullptr || running->is_reaped) {
    return;
  }
  const SimulatedProgram& program = *running->program;
  if (std::exchange(running->is_handed_over, true)) {
    world_.violate(program.name() + " is handed over twice (invariant 23)");
  }
  const bool are_two = std::ranges::any_of(programs_, [running](const Running& each) {
    return &each != running && each.is_handed_over && each.program->is_alive();
  });
  if (are_two) {
    world_.violate(program.name() + " is handed over while another one lives (invariant 23)");
  }
  if (program.is_spare()) {
    world_.mark(Mark::kSpareUsed);
  }
  tell_task({.kind = ProgramKind::kStarted, .step = effect.number}, program.socket());
}

void OwnProgram::carry_out(const roles::TellTask& effect) { tell_task(effect.message, nullptr); }

void OwnProgram::carry_out(const roles::SignalOwnTask& effect) {
  soon(kSignalTask, static_cast<std::uint64_t>(effect.signal));
}

void OwnProgram::carry_out(const roles::SignalOwnProgram& effect) {
  if (const Running* const running = find(effect.id)) {
    running->program->signal(effect.signal);
  }
}

void OwnProgram::carry_out(const roles::SayLine& effect) {
  world_.log("the supervisor of " + task_.title() + ": " + effect.text);
  if (effect.is_error) {
    last_line_ = effect.text;
  }
}

void OwnProgram::carry_out(const roles::SupervisorEnded& effect) {
  is_alive_ = false;
  const bool lives =
      std::ranges::any_of(programs_, [](const Running& each) { return each.program->is_alive(); });
  if (lives || !task_ending_) {
    world_.violate("the supervisor of " + task_.name() + " ends before " +
                   (lives ? "its program" : "its task") + " (invariant 23)");
  }
  on_end_(effect.signal != 0 ? kKilled : effect.exit_code, last_line_);
}

}  // namespace disttf::sim
