// Measures the hand-over between a task and a user's own program (docs/program_protocol.md): the
// time of a step beyond the program's computing, with the parameters copied to it and the gradient
// copied from it. The floor is the same exchange of bare packets.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/echo_peer.h"
#include "math/aligned.h"
#include "net/memory/program_channel.h"
#include "run/process/stop_signal.h"
#include "run/program/program_link.h"
#include "run/program/program_message.h"

namespace disttf::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;
using roles::ProgramKind;
using roles::ProgramMessage;

// What the program computes in a step; a gradient of a small model takes as long.
constexpr Microseconds kComputing{300};

void compute() {
  for (const auto end = Clock::now() + kComputing; Clock::now() < end;) {
  }
}

void send(int socket, const ProgramMessage& message, const std::string& body = {}) {
  if (net::send_packet(socket, roles::encode(message, body.size()),
                       std::as_bytes(std::span(body)))) {
    _exit(1);
  }
}

// The program: answers each COMPUTE after kComputing.
void answer(int socket, std::size_t floats) {
  send(socket, {.kind = ProgramKind::kHello}, R"({"protocol": 1})");
  send(socket, {.kind = ProgramKind::kVariable},
       R"({"name": "w", "shape": [)" + std::to_string(floats) + "]}");
  send(socket, {.kind = ProgramKind::kLayout, .count = 1});
  std::vector<std::byte> packet(roles::kProgramHeaderBytes + roles::kMaxProgramBody);
  std::vector<net::Descriptor> descriptors;
  while (const std::size_t size = net::receive_packet(socket, packet, descriptors).size) {
    std::string why;
    const auto got = roles::decode(std::span(packet).first(size), why);
    if (got && got->message.kind == ProgramKind::kCompute) {
      compute();
      send(socket, {.kind = ProgramKind::kGradient, .step = got->message.step, .value = 1.0});
    }
  }
}

// Returns the median time of a step beyond kComputing.
template <typename Step>
double measure(std::size_t steps, Step step) {
  std::vector<double> times;
  for (std::size_t each = 0; each < steps; ++each) {
    const auto begin = Clock::now();
    step(each);
    times.push_back(Microseconds(Clock::now() - begin - kComputing).count());
  }
  return median(std::move(times));
}

// The floor: a packet to another process, which computes and sends one back.
double bare(std::size_t steps) {
  net::PacketPair pair = net::make_packet_pair();
  const Peer peer(in_child([&] {
    std::array<std::byte, roles::kProgramHeaderBytes> packet{};
    std::vector<net::Descriptor> none;
    while (net::receive_packet(pair.second.number(), packet, none).size != 0) {
      compute();
      static_cast<void>(net::send_packet(pair.second.number(), packet, {}));
    }
  }));
  std::array<std::byte, roles::kProgramHeaderBytes> packet{};
  std::vector<net::Descriptor> none;
  return measure(steps, [&](std::size_t /*step*/) {
    static_cast<void>(net::send_packet(pair.first.number(), packet, {}));
    if (net::receive_packet(pair.first.number(), packet, none).size == 0) {
      throw std::runtime_error("the peer of program/bare has ended");
    }
  });
}

double hand_over(std::size_t steps, std::size_t floats, const roles::StopSignal& stop) {
  net::PacketPair program = net::make_packet_pair();
  net::PacketPair supervisor = net::make_packet_pair();
  const Peer peer(in_child([&] { answer(program.second.number(), floats); }));
  const std::array<int, 1> socket = {program.first.number()};
  static_cast<void>(net::send_packet(supervisor.first.number(),
                                     roles::encode({.kind = ProgramKind::kStarted, .step = 1}, 0),
                                     {}, socket));
  roles::ProgramLink link(supervisor.second.release(), stop, std::chrono::seconds(60));
  link.await_layout();
  link.welcome("{}", math::layout_of({.variables = link.variables()}).size(), 1, {});
  const math::AlignedVector parameters(floats);
  math::AlignedVector gradient(floats);
  return measure(steps, [&](std::size_t step) {
    std::copy_n(parameters.data(), floats, link.parameters().data());
    static_cast<void>(link.ask({.kind = ProgramKind::kCompute, .step = step}));
    std::copy_n(link.gradient().data(), floats, gradient.data());
  });
}

}  // namespace

void run_program(const JobOptions& options, Reporter& reporter) {
  constexpr std::size_t kSteps = 2000;
  // One float, and the model 784-100-10.
  for (const std::size_t floats : {std::size_t{16}, std::size_t{79'616}}) {
    const std::string name = "program/hand_over/" + std::to_string(floats);
    if (!options.wants(name)) {
      continue;
    }
    const roles::StopSignal stop;
    const std::size_t steps = options.quick ? 5 : kSteps;
    std::vector<double> ours;
    std::vector<double> floors;
    for (int each = 0; each < options.repetitions; ++each) {
      floors.push_back(bare(steps));
      ours.push_back(hand_over(steps, floats, stop));
    }
    const std::string floor = "program/bare/" + std::to_string(floats);
    reporter.add({.name = floor,
                  .median = median(floors),
                  .slowest = *std::ranges::max_element(floors),
                  .unit = "us",
                  .floor = {},
                  .ratio = {},
                  .extras = {}});
    reporter.add({.name = name,
                  .median = median(ours),
                  .slowest = *std::ranges::max_element(ours),
                  .unit = "us",
                  .floor = floor,
                  .ratio = {},
                  .extras = {}});
  }
}

}  // namespace disttf::bench
