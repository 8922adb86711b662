#include "tests/sim/process.h"

#include <algorithm>

#include "run/task.h"

namespace disttf::sim {

std::uint64_t incarnation_of(const World& world, Duration ahead, std::uint64_t stream,
                             std::uint64_t index) {
  const Duration since_1970 = std::chrono::hours(500'000) + (world.now() - kBeginning) + ahead;
  return roles::make_incarnation(std::chrono::duration_cast<std::chrono::milliseconds>(since_1970),
                                 world.draw(Draw::kIncarnation, stream, index));
}

Time Process::now() const noexcept {
  const Duration passed = world_.now() - kBeginning;
  return clock_ == 1'000'000 ? world_.now() : kBeginning + passed * clock_ / 1'000'000;
}

void Process::schedule(Time at, std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  Time then = at;
  if (clock_ != 1'000'000) {  // the first time at which its own clock shows `at`
    const Duration passed = at - kBeginning;
    then = kBeginning + (passed * 1'000'000 + Duration(clock_ - 1)) / clock_;
  }
  world_.schedule(then, *this, what, a, b);
}

void Process::kill(bool silently) {
  if (alive_) {
    alive_ = false;
    frozen_ = false;
    network_.forget(*this, silently);
    deferred_.clear();
    bury();
  }
}

void Process::freeze(Time until) {
  if (!alive_) {
    return;
  }
  frozen_ = true;
  frozen_until_ = std::max(frozen_until_, until);
  world_.schedule(frozen_until_, *this, kContinue);
}

void Process::thaw() {
  if (frozen_) {
    frozen_until_ = world_.now();
    on_event(kContinue, 0, 0);
  }
}

net::Keyring& Process::keyring(SecretFiles& files) {
  const std::size_t changes = files.changes(node_);
  if (!keyring_) {
    keyring_.emplace(files.read(node_));
  } else if (secrets_read_ != changes) {
    keyring_->set(files.read(node_));
  }
  secrets_read_ = changes;
  return *keyring_;
}

void Process::accept(ConnectionId id, const net::Hello& /*hello*/) {
  network_.close(id, *this, /*finish=*/true);
}

void Process::on_body(ConnectionId /*id*/, const Frame& /*frame*/, std::size_t /*bytes*/) {}

void Process::exit(int code, const std::string& sentence) {
  if (alive_) {
    note("exits with " + std::to_string(code) + ": " + sentence);
    alive_ = false;
    network_.forget(*this, /*silently=*/false);
    on_end_(*this, code, sentence);
  }
}

void Process::perish(bool silently) {
  if (alive_) {
    note(silently ? "its machine is lost" : "is killed");
    alive_ = false;
    network_.forget(*this, silently);
    on_end_(*this, kKilled, "killed");
  }
}

void Process::on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  if (!alive_) {
    return;
  }
  if (what == kContinue) {
    if (frozen_ && world_.now() >= frozen_until_) {
      frozen_ = false;
      note("runs again");
      const std::vector<Deferred> deferred = std::move(deferred_);
      deferred_.clear();
      for (const Deferred& each : deferred) {
        world_.schedule(world_.now(), *each.actor, each.what, each.a, each.b);
      }
    }
    return;
  }
  if (frozen_) {
    defer(*this, what, a, b);
    return;
  }
  happen(what, a, b);
}

// --------------------------------------------------------------------------------------- fibers

void FiberProcess::Wait::await_suspend(std::coroutine_handle<> waiting) const {
  fiber.waiting = waiting;
  fiber.until = until;
  fiber.is_deaf = is_deaf;
  const bool is_armed = fiber.armed != Time{} && fiber.armed <= until;
  if (!is_armed && until != Time::max()) {
    fiber.armed = std::max(until, process.now());
    process.schedule(until, kTimer, fiber.index);
  }
}

FiberProcess::Fiber& FiberProcess::spawn(std::function<Routine<void>(Fiber&)> make) {
  makers_.push_back(std::move(make));
  fibers_.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *fibers_.back();
  fiber.index = fibers_.size() - 1;
  fiber.root = makers_.back()(fiber);
  fiber.waiting = fiber.root.handle();
  fiber.is_deaf = true;
  fiber.until = now();
  fiber.armed = now();
  schedule(now(), kTimer, fiber.index);
  return fiber;
}

void FiberProcess::resume(Fiber& fiber) {
  const std::coroutine_handle<> waiting = std::exchange(fiber.waiting, {});
  if (!waiting) {
    return;
  }
  waiting.resume();
  if (fiber.root.has_ended() && is_alive()) {
    try {
      fiber.root.rethrow();
    } catch (const roles::Failure& failure) {
      exit(failure.exit_code(), failure.what());
    }
  }
}

void FiberProcess::wake(Fiber& fiber) {
  if (fiber.waiting && !fiber.is_deaf) {
    fiber.until = now();
    fiber.armed = now();
    schedule(now(), kTimer, fiber.index);
  }
}

void FiberProcess::happen(std::uint32_t what, std::uint64_t a, std::uint64_t /*b*/) {
  if (what != kTimer) {
    return;
  }
  Fiber& fiber = *fibers_[a];
  if (fiber.armed <= now()) {
    fiber.armed = {};
  }
  if (!fiber.waiting) {
    return;
  }
  if (now() >= fiber.until) {
    resume(fiber);
  } else if (fiber.armed == Time{} && fiber.until != Time::max()) {  // it has begun another wait
    fiber.armed = fiber.until;
    schedule(fiber.until, kTimer, fiber.index);
  }
}

FiberProcess::Channel* FiberProcess::channel_of(ConnectionId id) const noexcept {
  for (const auto& [each, channel] : channels_) {
    if (each == id) {
      return channel;
    }
  }
  return nullptr;
}

void FiberProcess::forget(ConnectionId id) noexcept {
  std::erase_if(channels_, [id](const auto& each) { return each.first == id; });
}

void FiberProcess::open(Channel& channel, Fiber& reader, std::size_t node,
                        const net::Hello& hello) {
  close(channel);
  channel.inbox.clear();
  channel.next = 0;
  channel.id = network_.dial(*this, node, hello);
  channel.reader = &reader;
  channel.is_open = true;
  channels_.emplace_back(channel.id, &channel);
}

void FiberProcess::close(Channel& channel) {
  if (channel.is_open) {
    network_.close(channel.id, *this, /*finish=*/false);
    forget(channel.id);
    channel.is_open = false;
    channel.inbox.clear();
    channel.next = 0;
  }
}

Frame FiberProcess::take(Channel& channel) {
  Frame frame = std::move(channel.inbox[channel.next++]);
  if (channel.next == channel.inbox.size()) {
    channel.inbox.clear();
    channel.next = 0;
  }
  return frame;
}

void FiberProcess::on_header(ConnectionId id, const Frame& frame) {
  Channel* const found = channel_of(id);
  if (found == nullptr) {
    return;
  }
  Channel& channel = *found;
  channel.inbox.push_back(frame);
  if (!channel.reader->is_deaf) {
    resume(*channel.reader);
  }
  // What is not read at once waits in this process's operating system as a copy, since the sender
  // may continue.
  for (std::size_t each = channel.next; each < channel.inbox.size(); ++each) {
    Frame& waiting = channel.inbox[each];
    if (std::exchange(waiting.sum, 0) != 0) {
      const auto copy = std::make_shared<Bytes>(waiting.body.begin(), waiting.body.end());
      waiting.body = *copy;
      waiting.owner = copy;
    }
  }
}

void FiberProcess::on_closed(ConnectionId id) {
  Channel* const found = channel_of(id);
  if (found == nullptr) {
    return;
  }
  Channel& channel = *found;
  forget(id);
  channel.is_open = false;
  if (!channel.reader->is_deaf) {
    resume(*channel.reader);
  }
}

void FiberProcess::bury() {
  fibers_.clear();
  makers_.clear();
  channels_.clear();
}

}  // namespace disttf::sim
