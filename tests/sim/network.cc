#include "tests/sim/network.h"

#include <algorithm>
#include <cstring>

#include "net/wire/messages.h"
#include "tests/sim/process.h"

namespace disttf::sim {
namespace {

enum Happening : std::uint32_t { kDeliver = 100, kLearn, kTaken, kTurnedAway };

// Numbers the latencies of the handshake, which has no frames.
constexpr std::uint64_t kOfHandshake = std::uint64_t{1} << 40U;

std::size_t other(std::size_t end) { return 1 - end; }

}  // namespace

std::uint64_t sum_of(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kLanes = 8;  // several, so that additions do not wait for each other
  constexpr std::size_t kBlock = kLanes * sizeof(std::uint64_t);
  std::array<std::uint64_t, kLanes> lanes = {1, 2, 3, 4, 5, 6, 7, 8};
  std::size_t at = 0;
  for (; at + kBlock <= bytes.size(); at += kBlock) {
    std::array<std::uint64_t, kLanes> words{};
    std::memcpy(words.data(), bytes.data() + at, kBlock);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = (lanes[lane] ^ words[lane]) * 0x9E3779B97F4A7C15U;
      lanes[lane] ^= lanes[lane] >> 29U;
    }
  }
  std::uint64_t sum = bytes.size();
  for (; at < bytes.size(); ++at) {
    sum = (sum ^ std::to_integer<std::uint64_t>(bytes[at])) * 0x100000001B3U;
  }
  for (const std::uint64_t lane : lanes) {
    sum = (sum ^ lane) * 0xBF58476D1CE4E5B9U;
    sum ^= sum >> 31U;
  }
  return sum | 1U;
}

std::string_view name_of(net::FrameKind kind) noexcept {
  static constexpr std::array<std::string_view, 45> kNames = {"?",
                                                              "HELLO",
                                                              "WELCOME",
                                                              "REFUSED",
                                                              "PUBLISH",
                                                              "GET_CONFIG",
                                                              "CONFIG",
                                                              "RESTORE",
                                                              "PULL",
                                                              "PUSH_PULL",
                                                              "PARAMETERS",
                                                              "HEARTBEAT",
                                                              "GOODBYE",
                                                              "SHUTDOWN",
                                                              "ACK",
                                                              "STATUS",
                                                              "STATUS_REPLY",
                                                              "FENCED",
                                                              "GET_SNAPSHOT_SHARD",
                                                              "SNAPSHOT_SHARD",
                                                              "PUSH",
                                                              "WORK",
                                                              "FIND_SNAPSHOT_SHARD",
                                                              "WRITE_SNAPSHOT_SHARD",
                                                              "WRITTEN",
                                                              "NOT_WRITTEN",
                                                              "SHARE",
                                                              "SHARED",
                                                              "VIEW",
                                                              "REPORT",
                                                              "FILL",
                                                              "UPDATE",
                                                              "COMPLETE",
                                                              "COMPUTE",
                                                              "RESULT",
                                                              "RUN_TASK",
                                                              "TASK_ENDED",
                                                              "BEST",
                                                              "METRICS",
                                                              "GET_METRICS",
                                                              "METRICS_REPLY",
                                                              "TRACE",
                                                              "WATCH",
                                                              "CONCLUDE",
                                                              "PEER_DISCOVERY"};
  const auto number = static_cast<std::size_t>(kind);
  return number < kNames.size() ? kNames[number] : kNames[0];
}

ConnectionId Network::dial(Process& from, std::size_t to_node, const net::Hello& hello) {
  const ConnectionId id = connections_.size();
  connections_.push_back(std::make_unique<Connection>());
  Connection& made = at(id);
  made.nodes = {from.node(), to_node};
  made.ends = {&from, nullptr};
  made.hello = hello;
  if (secrets_ != nullptr) {
    made.handshake = Handshake::kBegun;
    made.offered = from.keyring(*secrets_).offered().fingerprint();
  }
  remember(from.node(), id);
  if (to_node != from.node()) {
    remember(to_node, id);
  }
  const auto bytes = std::make_shared<Bytes>(net::encode(hello));
  fly(id, kDialer,
      {.frame = {.header = net::HelloFrame{}.to_header(), .body = *bytes, .owner = bytes}});
  return id;
}

// Drops closed connections when the list is full.
void Network::remember(std::size_t node, ConnectionId id) {
  of_node_.resize(std::max(of_node_.size(), node + 1));
  std::vector<ConnectionId>& all = of_node_[node];
  if (all.size() == all.capacity()) {
    std::erase_if(all, [this](ConnectionId each) {
      const Connection& old = *connections_[each];
      return (old.accepted || old.broken) && old.ends[kDialer] == nullptr &&
             old.ends[kListener] == nullptr;
    });
    all.reserve(std::max<std::size_t>(16, 2 * all.size()));
  }
  all.push_back(id);
}

void Network::send(ConnectionId id, const Process& from, const net::FrameHeader& header,
                   Bytes body) {
  Frame frame{.header = header};
  if (!body.empty()) {
    const auto bytes = std::make_shared<Bytes>(std::move(body));
    frame.body = *bytes;
    frame.owner = bytes;
  }
  send(id, from, std::move(frame));
}

void Network::send(ConnectionId id, const Process& from, Frame frame) {
  Connection& through = at(id);
  frame.header.body_size = std::max(frame.body.size(), frame.in_place.bytes.size());
  for (const std::size_t end : {kDialer, kListener}) {
    if (through.ends[end] == &from) {
      if (through.broken) {  // the system notifies the sender
        world_.schedule(world_.now() + latency(id, ++through.sent[end]), *this, kLearn, id, end);
        return;
      }
      fly(id, end, {.frame = std::move(frame)});
      return;
    }
  }
}

void Network::fly(ConnectionId id, std::size_t end, Flying flying) {
  Connection& through = at(id);
  const std::size_t from = through.nodes[end];
  const std::size_t to = through.nodes[other(end)];
  Time arrives =
      std::max(world_.now() + latency(id, 2 * ++through.sent[end] + end), through.last[end]);
  arrives = std::max(arrives, clogged_until(from, to));
  through.last[end] = arrives;
  through.flying[end].push_back(std::move(flying));
  world_.schedule(arrives, *this, kDeliver, id, end);
}

// Most latencies are about the mean, some much longer.
Duration Network::latency(ConnectionId id, std::uint64_t number) const {
  const std::uint64_t bits = world_.draw(Draw::kLatency, id, number);
  const std::uint64_t mean_ns = options_.mean_latency_us * 1000;
  std::uint64_t ns = mean_ns / 2 + (bits >> 32U) * mean_ns / (std::uint64_t{1} << 32U);
  if (options_.slow_one_in != 0 && (bits & 0xFFFFU) % options_.slow_one_in == 0) {
    ns *= 50;
  }
  return std::chrono::nanoseconds(ns);
}

Time Network::clogged_until(std::size_t from, std::size_t to) const {
  const auto found = clogs_.find({from, to});
  return found == clogs_.end() ? Time::min() : found->second;
}

void Network::clog(std::size_t from, std::size_t to, Time until) {
  Time& end = clogs_.try_emplace({from, to}, Time::min()).first->second;
  end = std::max(end, until);
}

bool Network::is_open(ConnectionId id, const Process& from) const {
  const Connection& through = *connections_[id];
  return through.ends[kDialer] == &from || through.ends[kListener] == &from;
}

void Network::close(ConnectionId id, const Process& from, bool finish) {
  Connection& through = at(id);
  for (const std::size_t end : {kDialer, kListener}) {
    if (through.ends[end] != &from) {
      continue;
    }
    through.ends[end] = nullptr;
    if (through.broken) {
      return;
    }
    const std::uint64_t bits = world_.draw(Draw::kSplit, id, through.sent[end]);
    if (!finish && options_.reset_one_in != 0 && bits % options_.reset_one_in == 0 &&
        !through.half_read) {
      through.flying[end].clear();
    }
    if ((bits >> 32U) % 2 == 0) {  // the other end notices the close before it reads the memory
      std::erase_if(through.flying[end], [](const Flying& each) { return each.frame.is_left; });
    }
    // The operating system has a copy of what was sent.
    for (Flying& each : through.flying[end]) {
      if (std::exchange(each.frame.sum, 0) != 0) {
        const auto copy = std::make_shared<Bytes>(each.frame.body.begin(), each.frame.body.end());
        each.frame.body = *copy;
        each.frame.owner = copy;
      }
    }
    fly(id, end, {.frame = {}, .closes = true});
    return;
  }
}

void Network::forget(const Process& process, bool silently) {
  if (process.node() >= of_node_.size()) {
    return;
  }
  for (const ConnectionId id : of_node_[process.node()]) {
    Connection& through = at(id);
    for (const std::size_t end : {kDialer, kListener}) {
      if (through.ends[end] != &process) {
        continue;
      }
      if (silently) {
        through.ends[end] = nullptr;
        through.broken = true;
        through.flying[end].clear();
      } else {
        close(id, process, /*finish=*/true);
      }
    }
  }
}

std::vector<ConnectionId> Network::open_between(std::size_t node, std::size_t other_node) const {
  std::vector<ConnectionId> found;
  if (node >= of_node_.size()) {
    return found;
  }
  for (const ConnectionId id : of_node_[node]) {
    const Connection& each = *connections_[id];
    if (!each.broken && each.ends[kDialer] != nullptr &&
        (each.nodes == std::array{node, other_node} ||
         each.nodes == std::array{other_node, node})) {
      found.push_back(id);
    }
  }
  return found;
}

void Network::break_now(ConnectionId id, Duration dialer_learns, Duration listener_learns) {
  Connection& through = at(id);
  if (through.broken) {
    return;
  }
  through.broken = true;
  world_.schedule(world_.now() + dialer_learns, *this, kLearn, id, kDialer);
  world_.schedule(world_.now() + listener_learns, *this, kLearn, id, kListener);
  if (through.half_read && through.ends[kListener] != nullptr) {
    const Frame frame = through.flying[kDialer].front().frame;
    through.ends[kListener]->on_body(id, frame, frame.body.size() / 2);
  }
  through.flying[kDialer].clear();
  through.flying[kListener].clear();
}

void Network::on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  Connection& through = at(a);
  Process* const to = what == kDeliver ? through.ends[other(b)] : through.ends[b];
  if (to != nullptr && to->is_frozen()) {
    to->defer(*this, what, a, b);
    return;
  }
  switch (what) {
    case kLearn:
      return learn(a, b);
    case kTaken:
      return be_taken(a);
    case kTurnedAway:
      return be_turned_away(a);
    default:
      return deliver(a, b);
  }
}

// The operating system of that end notices that the connection is closed.
void Network::learn(ConnectionId id, std::size_t end) {
  Process* const process = std::exchange(at(id).ends[end], nullptr);
  if (process != nullptr) {
    process->on_closed(id);
  }
}

void Network::deliver(ConnectionId id, std::size_t end) {
  Connection& through = at(id);
  std::vector<Flying>& flying = through.flying[end];
  if (flying.empty()) {  // lost meanwhile
    return;
  }
  if (!through.accepted) {
    deliver_first(id, end);
    return;
  }
  if (flying.front().closes) {
    flying.clear();
    learn(id, other(end));
    through.broken = through.broken || through.ends[end] == nullptr;
    return;
  }
  hand_over(id, end);
}

// Delivers the first message of the handshake or, if there is none, HELLO. The dialer may have
// closed before.
void Network::deliver_first(ConnectionId id, std::size_t end) {
  Connection& through = at(id);
  std::vector<Flying>& flying = through.flying[end];
  // The dialer has closed; be_taken() handles that.
  if (through.handshake == Handshake::kAnswered) {
    return;
  }
  Process* const listener = directory_.process_at(through.nodes[kListener]);
  if (listener == nullptr || flying.front().closes) {
    flying.clear();
    through.broken = true;
    if (listener == nullptr) {
      world_.schedule(world_.now() + latency(id, 0), *this, kLearn, id, kDialer);
    }
    return;
  }
  if (listener->is_frozen()) {
    listener->defer(*this, kDeliver, id, end);
    return;
  }
  if (through.handshake == Handshake::kBegun) {
    shake_hands(id, *listener);
    return;
  }
  if (secrets_ != nullptr && through.answered_by != listener) {  // that process is gone
    flying.clear();
    through.broken = true;
    world_.schedule(world_.now() + latency(id, 0), *this, kLearn, id, kDialer);
    return;
  }
  flying.erase(flying.begin());
  through.accepted = true;
  through.ends[kListener] = listener;
  listener->accept(id, through.hello);
}

// The listener's answer is no frame, so a fault that breaks the connection may strike it, too.
void Network::shake_hands(ConnectionId id, Process& listener) {
  Connection& through = at(id);
  through.handshake = Handshake::kAnswered;
  through.answered_by = &listener;
  const bool takes = listener.keyring(*secrets_).find(through.offered).has_value();
  const Time arrives = std::max(world_.now() + latency(id, kOfHandshake),
                                clogged_until(through.nodes[kListener], through.nodes[kDialer]));
  world_.schedule(arrives, *this, takes ? kTaken : kTurnedAway, id, kDialer);
}

// The listener has accepted the secret: the dialer may send HELLO.
void Network::be_taken(ConnectionId id) {
  Connection& through = at(id);
  std::vector<Flying>& flying = through.flying[kDialer];
  if (through.broken || through.ends[kDialer] == nullptr) {  // it has closed meanwhile
    flying.clear();
    through.broken = true;
    return;
  }
  through.handshake = Handshake::kDone;
  through.ends[kDialer]->keyring(*secrets_).agreed(net::peer_of(through.hello));
  const Time arrives =
      std::max({world_.now() + latency(id, kOfHandshake + 1), through.last[kDialer],
                clogged_until(through.nodes[kDialer], through.nodes[kListener])});
  through.last[kDialer] = arrives;
  world_.schedule(arrives, *this, kDeliver, id, kDialer);
}

// The listener has no such secret. As net::Secrets does, this refuses the dialer for good unless
// the secret may be changing.
void Network::be_turned_away(ConnectionId id) {
  Connection& through = at(id);
  Process* const dialer = through.ends[kDialer];
  through.flying[kDialer].clear();
  if (through.broken || dialer == nullptr) {
    return;
  }
  through.broken = true;
  if (dialer->keyring(*secrets_).may_be_changing(through.offered, net::peer_of(through.hello))) {
    world_.mark(Mark::kSecretChanges);
  } else {
    const auto body = std::make_shared<Bytes>(net::encode(net::Refusal{
        .exit_code = net::kExitMisconfigured, .sentence = "the peer has another secret"}));
    net::FrameHeader header = net::RefusedFrame{0}.to_header();
    header.body_size = body->size();
    dialer->on_header(id, {.header = header, .body = *body, .owner = body});
  }
  learn(id, kDialer);
}

void Network::hand_over(ConnectionId id, std::size_t end) {
  Connection& through = at(id);
  Process* const to = through.ends[other(end)];
  if (to == nullptr) {
    through.flying[end].erase(through.flying[end].begin());
    return;
  }
  Process* const from = through.ends[end];
  const bool is_rest = end == kDialer && through.half_read;
  if (from != nullptr && !is_rest) {
    const net::FrameHeader header = through.flying[end].front().frame.header;
    if (!directory_.about_to_deliver(header, *from, *to)) {
      return;  // a fault has taken it away
    }
  }
  if (through.flying[end].empty() || through.ends[other(end)] != to) {
    return;  // likewise
  }
  if (to->is_frozen()) {  // frozen by the fault that waited for this frame
    to->defer(*this, kDeliver, id, end);
    return;
  }
  if (end == kListener || through.flying[end].front().frame.body.empty()) {
    const Frame frame = std::move(through.flying[end].front().frame);
    through.flying[end].erase(through.flying[end].begin());
    if (world_.traces()) {
      world_.trace(to->title() + " <- " + (from != nullptr ? from->title() : "(gone)") + " #" +
                   std::to_string(id) + " " + std::string(name_of(frame.header.kind)) +
                   " request " + std::to_string(frame.header.request_id) + " step " +
                   std::to_string(frame.header.step) + " generation " +
                   std::to_string(net::number_of(frame.header.generation)));
    }
    if (frame.sum != 0 && sum_of(frame.body) != frame.sum) {
      world_.violate("what a frame borrows changed while it was on its way (invariant 14): " +
                     std::string(name_of(frame.header.kind)) + " to " + to->name());
    }
    to->on_header(id, frame);
    return;
  }
  const std::uint64_t bits = world_.draw(Draw::kSplit, id, through.sent[end] + 1000000);
  if (!is_rest) {
    const Frame frame = through.flying[end].front().frame;
    if (world_.traces()) {
      world_.trace(to->title() + " <- " + (from != nullptr ? from->title() : "(gone)") + " #" +
                   std::to_string(id) + " " + std::string(name_of(frame.header.kind)) +
                   " request " + std::to_string(frame.header.request_id) + " step " +
                   std::to_string(frame.header.step) + " sequence " +
                   std::to_string(frame.header.sequence) + " generation " +
                   std::to_string(net::number_of(frame.header.generation)) + ", its body to come");
    }
    through.half_read = true;
    to->on_header(id, frame);
    const bool cuts = std::exchange(through.cuts, false);
    if (cuts || (options_.split_one_in != 0 && bits % options_.split_one_in == 0)) {
      world_.mark(Mark::kHeaderAndBodyApart);
      if (cuts) {
        world_.mark(Mark::kCutBody);
        break_now(id, latency(id, 1), latency(id, 3));
        through.half_read = false;
        return;
      }
      // Sometimes the body arrives so much later that the state may have changed meanwhile.
      const Duration pause = (bits >> 8U) % 16 == 0
                                 ? std::chrono::milliseconds((bits >> 12U) % 4096)
                                 : latency(id, bits >> 20U);
      through.last[end] = std::max(through.last[end], world_.now() + pause);
      world_.schedule(world_.now() + pause, *this, kDeliver, id, end);
      return;
    }
    if (through.flying[end].empty() || through.ends[other(end)] != to || through.broken) {
      return;
    }
  }
  through.half_read = false;
  const Frame frame = std::move(through.flying[end].front().frame);
  through.flying[end].erase(through.flying[end].begin());
  to->on_body(id, frame, frame.body.size());
}

}  // namespace disttf::sim
