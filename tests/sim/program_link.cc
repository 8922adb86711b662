#include "tests/sim/program_link.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "run/outcome.h"

namespace disttf::sim {

using roles::ProgramKind;
using roles::ProgramMessage;
using Body = roles::SendToProgram::Body;

namespace {

// A batch's row as the body of COMPUTE and ROWS.
std::string body_of_row(std::uint64_t step, std::uint64_t slot) {
  const std::uint32_t row = row_of(step, slot);
  std::string body(sizeof(row), '\0');
  std::memcpy(body.data(), &row, sizeof(row));
  return body;
}

}  // namespace

ProgramLink::ProgramLink(World& world, OwnProgram& own, const ProgramOptions& options,
                         std::string name, std::function<void()> wake)
    : world_(world), own_(own), name_(std::move(name)), session_(options.timeout) {
  own.on_readable([this, wake = std::move(wake)] {
    if (is_waiting) {
      wake();
    }
  });
}

void ProgramLink::welcome(std::string text, std::size_t size, Time now) {
  if (!memory_ || memory_->parameters.size() != size) {
    memory_ = std::make_shared<ProgramMemory>();
    memory_->parameters.resize(size);
    memory_->gradient.resize(size);
  }
  session_.welcome(std::move(text), now);
  perform();
}

void ProgramLink::ask(const roles::ProgramRequest& request, Time now) {
  memory_->asked = ++asked_;
  asked_kind_ = request.kind;
  session_.ask(request, now);
  perform();
}

void ProgramLink::end(std::uint64_t step) {
  memory_->asked = ++asked_;
  session_.end(step);
  perform();
}

const roles::ProgramAnswer& ProgramLink::answer() {
  if (asked_kind_ != ProgramKind::kEvaluate && memory_->made != asked_) {
    world_.violate(name_ + " uses a gradient of its program that is not what it asked for " +
                   "(invariant 23)");
  }
  if (asked_kind_ == ProgramKind::kCompute && program_) {
    own_.gradient_is_taken(*program_);
  }
  return *session_.answer();
}

bool ProgramLink::is_readable() const noexcept {
  return !own_.to_task().empty() ||
         (program_ && (!program_->to_task.empty() || program_->program_has_closed));
}

// The program first: its last words explain its end.
void ProgramLink::take_some(Time now) {
  if (program_) {
    take_from_program(now);
  }
  if (!own_.to_task().empty()) {
    take_from_supervisor(now);
  }
  session_.time(now);
  perform();
}

void ProgramLink::take_from_supervisor(Time now) {
  OwnProgram::FromSupervisor got = std::move(own_.to_task().front());
  own_.to_task().pop_front();
  std::string why;
  const auto packet = roles::decode(got.bytes, why);
  if (!packet) {
    world_.violate(name_ + " was sent by its supervisor " + why);
    return;
  }
  if (packet->message.kind == ProgramKind::kStarted && got.socket) {
    if (program_) {
      program_->task_has_closed = true;
      own_.wake_program(*program_);
    }
    program_ = std::move(got.socket);
    session_.started(packet->message.step, now);
  } else if (packet->message.kind == ProgramKind::kEnded) {
    session_.ended(packet->message.step, packet->message.count != 0);
  }
}

void ProgramLink::take_from_program(Time now) {
  if (program_->to_task.empty()) {
    if (program_->program_has_closed) {
      program_.reset();
      session_.closed({}, now);
    }
    return;
  }
  const ProgramSocket::Packet got = std::move(program_->to_task.front());
  program_->to_task.pop_front();
  std::string why;
  if (const auto packet = roles::decode(got.bytes, why)) {
    session_.packet(*packet, now);
  } else {
    session_.closed(why, now);
  }
}

void ProgramLink::perform() {
  session_.effects().drain([this](const auto& effect) { apply(effect); });
}

void ProgramLink::apply(const roles::SendToProgram& effect) {
  switch (effect.body) {
    case Body::kWelcome:
      send(effect.message, session_.welcome_text(), memory_);
      return;
    case Body::kRows:
      send(effect.message, body_of_row(effect.message.step, effect.message.slot));
      return;
    case Body::kText:
    case Body::kNone:
      send(effect.message, effect.text);
      return;
  }
}

void ProgramLink::apply(const roles::SendToSupervisor& effect) {
  own_.send_to_supervisor(effect.message);
}

void ProgramLink::apply(const roles::RowsAsked& effect) {
  send({.kind = ProgramKind::kRows, .step = effect.step, .slot = effect.slot, .count = 1},
       body_of_row(effect.step, effect.slot));
}

void ProgramLink::apply(const roles::ProgramNote& effect) {
  if (world_.logs()) {
    world_.log(name_ + ": " + effect.text);
  }
}

void ProgramLink::send(const ProgramMessage& message, std::string_view body,
                       std::shared_ptr<ProgramMemory> memory) {
  if (!program_) {
    return;
  }
  const bool asks = message.kind == ProgramKind::kCompute ||
                    message.kind == ProgramKind::kEvaluate ||
                    message.kind == ProgramKind::kGiveInitial;
  if (asks && std::exchange(sent_, asked_) == asked_) {
    world_.mark(Mark::kProgramAskedAgain);
  }
  // A program that has gone is asked again in its successor.
  if (program_->program_has_closed) {
    program_.reset();
    session_.closed({}, world_.now());
    return;
  }
  program_->to_program.push_back({.bytes = bytes_of(message, body), .memory = std::move(memory)});
  own_.wake_program(*program_);
}

}  // namespace disttf::sim
