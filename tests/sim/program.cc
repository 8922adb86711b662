#include "tests/sim/program.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

namespace disttf::sim {

using roles::ProgramKind;
using roles::ProgramMessage;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

// What a program that fails exits with.
constexpr int kProgramError = 1;

}  // namespace

std::uint32_t row_of(std::uint64_t step, std::uint64_t slot) {
  return static_cast<std::uint32_t>((step * 31 + slot) % kProgramRows);
}

Bytes bytes_of(const ProgramMessage& message, std::string_view body) {
  const auto header = roles::encode(message, body.size());
  Bytes bytes(header.size() + body.size());
  const auto text = std::as_bytes(std::span(body));
  std::ranges::copy(text, std::ranges::copy(header, bytes.begin()).out);
  return bytes;
}

SimulatedProgram::SimulatedProgram(World& world, Machine& machine, const Work& work,
                                   roles::ProgramId id, bool is_spare, std::uint64_t stream,
                                   std::string name)
    : world_(world),
      machine_(machine),
      work_(work),
      id_(id),
      is_spare_(is_spare),
      stream_(stream),
      name_(std::move(name)) {}

Duration SimulatedProgram::about(Duration usual) {
  const auto us = static_cast<std::uint64_t>(usual / microseconds(1));
  return microseconds(us / 2 + draw() % (us + 1));
}

void SimulatedProgram::violate(const std::string& what) {
  world_.violate(name_ + " " + what + " (invariant 23)");
}

void SimulatedProgram::start() {
  world_.schedule(world_.now() + about(milliseconds(work_.options.import_ms)), *this, kImported);
}

void SimulatedProgram::wake() {
  if (is_alive()) {
    world_.schedule(world_.now() + microseconds(3 + draw() % 20), *this, kReads);
  }
}

void SimulatedProgram::freeze(Time until) { stuck_until_ = std::max(stuck_until_, until); }

void SimulatedProgram::signal(int number) {
  if (!is_alive() || (number == SIGABRT && work_.options.ignores_abort)) {
    return;
  }
  end_with({.signal = number});
}

void SimulatedProgram::on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  if (!is_alive() || machine_.defers(*this, what, a, b)) {
    return;
  }
  if (what != kKilled && world_.now() < stuck_until_) {
    if (stuck_until_ != Time::max()) {
      world_.schedule(stuck_until_, *this, what, a, b);
    }
    return;
  }
  switch (what) {
    case kImported:
      introduce();
      break;
    case kReads:
      read();
      break;
    case kMade:
      finish();
      break;
    case kSaved:
      end();
      break;
    case kKilled:
      if (machine_.may_die(*this)) {
        world_.mark(Mark::kProgramKilled);
        signal(SIGKILL);
      }
      break;
    default:
      break;
  }
}

// Tells its variables.
void SimulatedProgram::introduce() {
  const bool is_other = machine_.takes_wrong(ProgramWrong::kOtherLayout);
  stage_ = Stage::kLaidOut;
  send({.kind = ProgramKind::kHello},
       R"({"protocol": 1, "client": "simulated", "evaluates": true})");
  send({.kind = ProgramKind::kVariable},
       R"({"name": "w", "shape": [)" + std::to_string(work_.size - (is_other ? 16 : 0)) + "]}");
  send({.kind = ProgramKind::kLayout, .count = 1});
  read();
}

void SimulatedProgram::read() {
  // While it computes, it does not read. What waits then must not be a request.
  if (stage_ == Stage::kComputing) {
    for (const ProgramSocket::Packet& packet : socket_->to_program) {
      std::string why;
      const auto found = roles::decode(packet.bytes, why);
      if (found && (found->message.kind == ProgramKind::kCompute ||
                    found->message.kind == ProgramKind::kEvaluate)) {
        violate("is asked twice at once");
      }
    }
    return;
  }
  while (!socket_->to_program.empty() && is_alive() && stage_ != Stage::kComputing &&
         stage_ != Stage::kImporting) {
    const ProgramSocket::Packet packet = std::move(socket_->to_program.front());
    socket_->to_program.pop_front();
    take(packet);
  }
  if (socket_->task_has_closed && socket_->to_program.empty() && is_alive() &&
      stage_ != Stage::kEnding && stage_ != Stage::kComputing && stage_ != Stage::kImporting) {
    exit(kProgramError);  // the task has ended
  }
}

void SimulatedProgram::take(const ProgramSocket::Packet& packet) {
  std::string why;
  const auto found = roles::decode(packet.bytes, why);
  if (!found) {
    violate("was sent " + why);
    return;
  }
  switch (found->message.kind) {
    case ProgramKind::kWelcome:
      memory_ = packet.memory;
      stage_ = Stage::kIdle;
      break;
    case ProgramKind::kGiveInitial:
    case ProgramKind::kCompute:
    case ProgramKind::kEvaluate:
      begin(*found);
      break;
    case ProgramKind::kRows:
      if (stage_ != Stage::kAsksRows || found->message.step != request_.step ||
          found->message.slot != request_.slot) {
        violate("was sent ROWS of step " + std::to_string(found->message.step));
      }
      check_row(found->body);
      work();
      break;
    case ProgramKind::kEnd:
      stage_ = Stage::kEnding;
      asked_ = memory_ ? memory_->asked : 0;
      world_.schedule(world_.now() + about(milliseconds(work_.options.save_ms)), *this, kSaved);
      break;
    case ProgramKind::kRefused:
      exit(static_cast<int>(found->message.number));
      break;
    default:
      violate("was sent " + name_of(found->message.kind));
  }
}

void SimulatedProgram::check_row(std::span<const std::byte> body) {
  std::uint32_t row = 0;
  if (body.size() == sizeof(row)) {
    std::memcpy(&row, body.data(), sizeof(row));
  }
  if (body.size() != sizeof(row) || row != row_of(request_.step, request_.slot)) {
    violate("was sent the rows of another batch");
  }
}

void SimulatedProgram::begin(const roles::ProgramPacket& packet) {
  if (stage_ != Stage::kIdle) {
    violate("is sent " + name_of(packet.message.kind) + " before it is ready");
    return;
  }
  if (machine_.takes_wrong(ProgramWrong::kExits)) {
    exit(static_cast<int>(draw() % 4));
    return;
  }
  request_ = packet.message;
  if (request_.kind != ProgramKind::kCompute || !work_.options.asks_rows) {
    work();
  } else if (!packet.body.empty()) {
    check_row(packet.body);
    work();
  } else {
    stage_ = Stage::kAsksRows;
    send({.kind = ProgramKind::kAskRows,
          .step = request_.step,
          .slot = request_.slot,
          .count = kProgramRows});
  }
}

void SimulatedProgram::work() {
  stage_ = Stage::kComputing;
  parameters_ = memory_->parameters;
  asked_ = memory_->asked;
  if (request_.kind != ProgramKind::kEvaluate) {
    std::ranges::fill(memory_->gradient, kHalfComputed);
    memory_->made = 0;
  }
  Duration duration = about(microseconds(work_.compute_us));
  if (work_.slow_one_in != 0 && draw() % work_.slow_one_in == 0) {
    duration += std::chrono::seconds(20);
  }
  world_.schedule(world_.now() + duration, *this, kMade);
  if (moment_ == ProgramMoment::kWhileComputing) {
    moment_ = ProgramMoment::kNever;
    world_.schedule(world_.now() + duration / 2, *this, kKilled);
  }
}

void SimulatedProgram::finish() {
  if (memory_->asked != asked_) {
    violate("is overtaken: its parameters have changed before it has answered");
  }
  if (request_.kind == ProgramKind::kEvaluate) {
    const math::Evaluation found = evaluate(parameters_);
    std::array<char, 100> text{};
    std::snprintf(text.data(), text.size(), R"({"loss": %.17g, "accuracy": %.17g})", found.loss,
                  found.accuracy());
    answer({.kind = ProgramKind::kEvaluation, .step = request_.step}, text.data());
  } else if (request_.kind == ProgramKind::kGiveInitial) {
    std::ranges::fill(memory_->gradient, 0.0F);
    if (work_.is_exact) {
      initialize(memory_->gradient);
    }
    // The parameters of a program's own model are then those of a later step.
    if (has_computed_) {
      violate("is asked for initial values after a gradient");
    }
    answer({.kind = ProgramKind::kInitial});
  } else {
    has_computed_ = true;
    work_.checks.fill_gradient(parameters_, request_.step, request_.slot, memory_->components,
                               memory_->gradient, request_.seed);
    answer({.kind = ProgramKind::kGradient, .step = request_.step, .slot = request_.slot});
  }
}

void SimulatedProgram::answer(const ProgramMessage& message, std::string_view body) {
  stage_ = Stage::kIdle;
  if (machine_.takes_wrong(ProgramWrong::kFails)) {
    send({.kind = ProgramKind::kFailed}, "train.py:42: ValueError: simulated");
    exit(kProgramError);
    return;
  }
  memory_->made = asked_;
  ProgramMessage sent = message;
  if (message.kind == ProgramKind::kGradient && machine_.takes_wrong(ProgramWrong::kOtherStep)) {
    ++sent.step;
    memory_->made = 0;
  }
  send(sent, body);
  if (std::exchange(moment_, ProgramMoment::kNever) == ProgramMoment::kWithAnswer &&
      machine_.may_die(*this)) {
    world_.mark(Mark::kProgramKilled);
    signal(SIGKILL);
    return;
  }
  read();
}

// It has saved what it wants.
void SimulatedProgram::end() {
  if (memory_ && memory_->asked != asked_) {
    violate("is overtaken: its parameters have changed after END");
  }
  world_.mark(Mark::kProgramSaved);
  exit(roles::kDone);
}

void SimulatedProgram::send(const ProgramMessage& message, std::string_view body) {
  if (socket_->task_has_closed) {
    return;
  }
  socket_->to_task.push_back({.bytes = bytes_of(message, body)});
  machine_.has_written(*socket_);
}

void SimulatedProgram::exit(int code) { end_with({.exit_code = code}); }

void SimulatedProgram::end_with(const roles::Ending& ending) {
  if (world_.logs()) {
    world_.log(name_ + " " + to_string(ending));
  }
  ending_ = ending;
  moment_ = ProgramMoment::kNever;
  parameters_ = {};
  memory_.reset();
  socket_->program_has_closed = true;
  socket_->to_program.clear();
  machine_.has_written(*socket_);
  machine_.has_died(*this);
}

}  // namespace disttf::sim
