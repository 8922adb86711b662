#include "tests/sim/world.h"

#include <algorithm>
#include <cstdio>

#include "math/random.h"

namespace disttf::sim {
namespace {

// Cheaper than random_bits(): every event needs one.
std::uint64_t scrambled(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

}  // namespace

std::string_view name_of(Mark mark) noexcept {
  static constexpr std::array kNames = std::to_array<std::string_view>({"kill",
                                                                        "vanish",
                                                                        "freeze",
                                                                        "term",
                                                                        "break",
                                                                        "clog",
                                                                        "cut in a body",
                                                                        "header and body apart",
                                                                        "restore",
                                                                        "set-back",
                                                                        "fence",
                                                                        "previous",
                                                                        "reconnect",
                                                                        "replaced process refused",
                                                                        "ps replaced while silent",
                                                                        "lost peers",
                                                                        "dropped",
                                                                        "work scheduled",
                                                                        "stays away",
                                                                        "snapshot collected",
                                                                        "restored from a snapshot",
                                                                        "late trainer told",
                                                                        "chief lost at the end",
                                                                        "promotion",
                                                                        "pair",
                                                                        "fill",
                                                                        "refused",
                                                                        "checkpoint saved",
                                                                        "shards committed",
                                                                        "restored from the disk",
                                                                        "killed at the disk",
                                                                        "power cut",
                                                                        "disk failed",
                                                                        "rot",
                                                                        "launched again",
                                                                        "launch gives up",
                                                                        "newer incarnation taken",
                                                                        "ended early",
                                                                        "early stopping set again",
                                                                        "snapshot scored",
                                                                        "torn snapshot",
                                                                        "result scored",
                                                                        "gradient read in place",
                                                                        "micro-batch read in place",
                                                                        "update read in place",
                                                                        "made what was put off",
                                                                        "update given by memory",
                                                                        "rest taken from memory",
                                                                        "host's sum pushed",
                                                                        "pushed without the leader",
                                                                        "secret changed",
                                                                        "turned away for now",
                                                                        "begun anew",
                                                                        "another configuration",
                                                                        "directory unmounted",
                                                                        "store away",
                                                                        "checkpoint scored",
                                                                        "checkpoint gone as read",
                                                                        "writer awaited",
                                                                        "program killed",
                                                                        "program frozen",
                                                                        "program hung",
                                                                        "program not started",
                                                                        "spare used",
                                                                        "program asked again",
                                                                        "program wrong",
                                                                        "program saved",
                                                                        "run failed by program",
                                                                        "shard made on a thread",
                                                                        "left without a wake",
                                                                        "acknowledged in memory"});
  static_assert(kNames.size() == kMarks);
  return kNames[static_cast<std::size_t>(mark)];
}

// A stream may be an incarnation. The truncated value keeps the lower bits, which identify
// processes as well.
std::uint64_t World::draw(Draw what, std::uint64_t stream, std::uint64_t index) const {
  return math::random_bits(seed_, static_cast<std::uint32_t>(what), stream % math::kStreamLimit,
                           index);
}

void World::schedule(Time at, Actor& actor, std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t number = scheduled_++;
  heap_.push_back({.at = std::max(at, now_),
                   .tie = scrambled(seed_ + number * 0x9E3779B97F4A7C15U),
                   .actor = &actor,
                   .what = what,
                   .a = a,
                   .b = b});
  std::ranges::push_heap(heap_, is_later);
}

bool World::step() {
  if (heap_.empty()) {
    return false;
  }
  std::ranges::pop_heap(heap_, is_later);
  const Event event = heap_.back();
  heap_.pop_back();
  now_ = event.at;
  ++events_;
  stir(static_cast<std::uint64_t>(event.at.time_since_epoch().count()));
  stir(event.what ^ (event.a << 8U) ^ (event.b << 40U));
  event.actor->on_event(event.what, event.a, event.b);
  return true;
}

void World::log(const std::string& line) const {
  trace(line);
  if (log_ != nullptr) {
    log_->push_back(line);
  }
}

void World::violate(std::string sentence) {
  if (violation_.empty()) {
    violation_ = std::move(sentence);
    if (trace_) {
      trace("VIOLATION: " + violation_);
    }
  }
}

void World::trace(const std::string& line) const {
  if (trace_) {
    const std::chrono::duration<double> since = now_ - kBeginning;
    std::printf("%12.6f  %s\n", since.count(), line.c_str());
  }
}

}  // namespace disttf::sim
