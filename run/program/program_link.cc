#include "run/program/program_link.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "net/memory/program_channel.h"
#include "run/outcome.h"
#include "run/process/log.h"

namespace disttf::roles {
namespace {

// After this long without a program that has told its variables, the log says what is waited for.
constexpr std::chrono::seconds kNoticedWait{30};
// The longest single wait. A suspension of this process is noticed at its end.
constexpr std::chrono::seconds kLongestWait{1};

ProgramSession::TimePoint now() { return ProgramSession::Clock::now(); }

}  // namespace

ProgramLink::ProgramLink(int supervisor, const StopSignal& stop, std::chrono::seconds timeout)
    : stop_(stop),
      supervisor_(supervisor),
      session_(timeout),
      packet_(kProgramHeaderBytes + kMaxProgramBody) {}

void ProgramLink::await_layout() {
  auto notice_at = now() + kNoticedWait;
  wait([&] {
    if (now() >= notice_at) {
      log_info("Waiting for the program to tell its variables, as its client does when it joins");
      notice_at = ProgramSession::TimePoint::max();
    }
    return session_.has_layout();
  });
}

void ProgramLink::welcome(std::string text, std::size_t size, std::size_t batch_size,
                          RowsOf rows_of) {
  try {
    // That of an earlier run has the same size, as the layout is the same.
    if (parameters_.floats().empty()) {
      parameters_ = net::ProgramMemory(size, net::ProgramMemory::Access::kRead);
      gradient_ = net::ProgramMemory(size, net::ProgramMemory::Access::kWrite);
    }
  } catch (const std::system_error& error) {
    throw Failure(kError, error.what());
  }
  batch_.resize(batch_size);
  rows_of_ = std::move(rows_of);
  session_.welcome(std::move(text), now());
  perform();
}

void ProgramLink::restart() {
  session_.restart();
  perform();
}

const ProgramAnswer& ProgramLink::ask(const ProgramRequest& request) {
  session_.ask(request, now());
  perform();
  wait([this] { return session_.answer().has_value(); });
  return *session_.answer();
}

void ProgramLink::end(std::uint64_t step) noexcept {
  try {
    // A program that was killed since its last answer does not receive it.
    for (net::FreezeWatch watch; wait_for_some(watch, now());) {
    }
    session_.end(step);
    perform();
    wait([this] { return session_.is_released() && unsent_.empty(); });
  } catch (const std::exception& error) {
    // The run has its result all the same.
    log_warning(std::string("The program was not told the end of the run: ") + error.what());
  }
}

void ProgramLink::refuse(int exit_code, const std::string& sentence) noexcept {
  try {
    session_.refuse(exit_code, sentence);
    perform();
  } catch (const std::exception&) {
    // It learns of the end by its socket.
  }
}

void ProgramLink::wait(const std::function<bool()>& is_done) {
  for (net::FreezeWatch watch; !is_done();) {
    wait_for_some(watch, std::min(session_.deadline(), now() + kLongestWait));
  }
}

// Returns whether anything came.
bool ProgramLink::wait_for_some(net::FreezeWatch& watch, net::Deadline until) {
  stop_.throw_if_stopped();
  // The last one is the interrupt's. Without a program poll() ignores the second one.
  std::array<pollfd, 3> polled = {
      pollfd{.fd = program_.number(),
             .events = static_cast<short>(unsent_.empty() ? POLLIN | POLLRDHUP : POLLOUT),
             .revents = 0},
      pollfd{.fd = supervisor_.number(), .events = POLLIN, .revents = 0}, pollfd{}};
  watch.expect(until);
  const std::error_code error = net::wait_for_any(polled, stop_.interrupt(), until);
  if (error && error != std::errc::timed_out && error != std::errc::operation_canceled) {
    throw Failure(kError, "cannot wait for the program: " + error.message());
  }
  stop_.throw_if_stopped();
  if (const auto missed = watch.missed(now()); missed.count() != 0) {
    session_.forgive(missed, watch.now());
  }
  // The program first: its last words explain its end.
  if (polled[0].revents != 0) {
    unsent_.empty() ? take_from_program((polled[0].revents & (POLLHUP | POLLRDHUP)) != 0)
                    : send_unsent();
  }
  if (polled[1].revents != 0) {
    take_from_supervisor();
  }
  session_.time(now());
  perform();
  return !error;
}

void ProgramLink::take_from_supervisor() {
  const net::PacketResult got = net::receive_packet(supervisor_.number(), packet_, descriptors_);
  std::string why;
  const auto packet =
      got.size == 0 ? std::nullopt : decode(std::span(packet_).first(got.size), why);
  if (!packet) {
    throw Failure(kLostPeers, "the process that supervises this task and its program has ended");
  }
  if (packet->message.kind == ProgramKind::kStarted && descriptors_.size() == 1) {
    program_ = std::move(descriptors_.front());
    unsent_.clear();
    programs_ = packet->message.step;
    session_.started(programs_, now());
  } else if (packet->message.kind == ProgramKind::kEnded) {
    session_.ended(packet->message.step, packet->message.count != 0);
  }
}

// `is_closed`: the program has closed its end, perhaps after packets that are still to be read.
void ProgramLink::take_from_program(bool is_closed) {
  const net::PacketResult got = net::receive_packet(program_.number(), packet_, descriptors_);
  std::string why;
  if (got.error == std::errc::message_size) {
    session_.closed("a packet of more than " + std::to_string(packet_.size()) + " bytes", now());
  } else if (got.error == std::errc::too_many_files_open) {
    session_.closed("a packet with more than " + std::to_string(net::kMostPacketDescriptors) +
                        " descriptors, allowed is none",
                    now());
  } else if (got.error || (got.size == 0 && is_closed)) {
    program_.reset();
    session_.closed({}, now());
  } else if (const auto packet = decode(std::span(packet_).first(got.size), why)) {
    session_.packet(*packet, now());
  } else {
    session_.closed(why, now());
  }
}

void ProgramLink::perform() {
  session_.effects().drain([this](const auto& effect) { this->apply(effect); });
}

void ProgramLink::apply(const SendToProgram& effect) {
  switch (effect.body) {
    case SendToProgram::Body::kWelcome: {
      const std::array<int, 2> memory = {parameters_.descriptor(), gradient_.descriptor()};
      send(effect.message, std::as_bytes(std::span(session_.welcome_text())), memory);
      return;
    }
    case SendToProgram::Body::kRows: {
      std::span<const std::byte> body;
      // Rows that do not fit are asked for.
      if (batch_.size() * sizeof(std::uint32_t) <= kMaxProgramBody) {
        rows_of_(effect.message.step, effect.message.slot, session_.rows(), batch_);
        body = std::as_bytes(std::span(batch_));
      }
      send(effect.message, body);
      return;
    }
    case SendToProgram::Body::kText:
      send(effect.message, std::as_bytes(std::span(effect.text)));
      return;
    case SendToProgram::Body::kNone:
      send(effect.message, {});
      return;
  }
}

void ProgramLink::apply(const SendToSupervisor& effect) const {
  // An end of the supervisor is noticed by the next wait.
  static_cast<void>(net::send_packet(supervisor_.number(), encode(effect.message, 0), {}));
}

void ProgramLink::apply(const RowsAsked& effect) {
  rows_of_(effect.step, effect.slot, effect.rows, batch_);
  constexpr std::size_t kMost = kMaxProgramBody / sizeof(std::uint32_t);
  for (std::size_t first = 0; first < batch_.size(); first += kMost) {
    const auto part = std::span(batch_).subspan(first, std::min(kMost, batch_.size() - first));
    send({.kind = ProgramKind::kRows,
          .number = static_cast<std::uint32_t>(first),
          .step = effect.step,
          .slot = effect.slot,
          .count = batch_.size()},
         std::as_bytes(part));
  }
}

void ProgramLink::apply(const ProgramNote& effect) {
  effect.is_warning ? log_warning(effect.text) : log_info(effect.text);
}

void ProgramLink::send(const ProgramMessage& message, std::span<const std::byte> body,
                       std::span<const int> descriptors) {
  if (!program_.is_open()) {
    return;
  }
  const auto header = encode(message, body.size());
  // A program that has gone is asked again in its successor. What it has sent before is still to be
  // read: it may be the reason.
  if (unsent_.empty() && net::send_packet(program_.number(), header, body, descriptors) !=
                             std::errc::resource_unavailable_try_again) {
    return;
  }
  // Not WELCOME, which has descriptors: it is a socket's first packet, for which there is room.
  std::vector<std::byte>& packet = unsent_.emplace_back(header.begin(), header.end());
  packet.insert(packet.end(), body.begin(), body.end());
}

// Sends what there is room for now.
void ProgramLink::send_unsent() {
  while (!unsent_.empty()) {
    const std::error_code error = net::send_packet(program_.number(), unsent_.front(), {});
    if (error == std::errc::resource_unavailable_try_again) {
      return;
    }
    unsent_.pop_front();  // also that to a program that has gone
  }
}

}  // namespace disttf::roles
