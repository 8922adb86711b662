#include "run/watch/snapshot_collector.h"

#include <poll.h>

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>

#include "math/model.h"
#include "net/wire/backoff.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/resource_limits.h"
#include "run/process/start_thread.h"

namespace disttf::roles {
namespace {

// How soon a request of the other thread is noticed.
constexpr std::chrono::milliseconds kTick{50};
// The interval of requests for a configuration that is not published yet.
constexpr std::chrono::milliseconds kAskAgain{250};
// A step that no run reaches, so only the result is an answer.
constexpr std::uint64_t kToTheEnd = std::numeric_limits<std::uint64_t>::max();

}  // namespace

SnapshotCollector::SnapshotCollector(const Task& task, StopSignal& stop, WhenGone when_gone)
    : task_(task),
      stop_(stop),
      when_gone_(when_gone),
      plan_(task.cluster.ps.size()),
      heard_(task.cluster.ps.size()),
      has_spoken_(task.cluster.ps.size()),
      has_last_(task.cluster.ps.size()),
      gone_since_(net::Clock::now()) {
  // All links exist before the thread starts, and are never moved.
  for (std::size_t ps = 0; ps < task.cluster.ps.size(); ++ps) {
    links_.emplace_back(task, ps, ends_);
  }
  thread_ = start_thread(stop_, [this] { work(); });
}

SnapshotCollector::~SnapshotCollector() {
  // The interrupt also ends a wait for a ps.
  ends_.interrupt();
  thread_.join();
}

// -------------------------------------------------------------------- on the thread of its owner

void SnapshotCollector::ask() {
  const std::scoped_lock lock(mutex_);
  // A snapshot that was not taken yet answers this request.
  is_wanted_ = !snapshot_;
}

std::optional<TrainedModel> SnapshotCollector::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(snapshot_, std::nullopt);
}

bool SnapshotCollector::is_over() {
  const std::scoped_lock lock(mutex_);
  return is_over_;
}

std::string SnapshotCollector::why_gone() {
  const std::scoped_lock lock(mutex_);
  return is_there_ ? std::string() : why_gone_;
}

std::optional<TrainedModel> SnapshotCollector::await_snapshot() {
  ask();
  std::unique_lock lock(mutex_);
  while (!snapshot_ && !is_over_) {
    // In ticks, since a signal does not wake this thread.
    changed_.wait_for(lock, kTick);
    stop_.throw_if_stopped();
  }
  return std::exchange(snapshot_, std::nullopt);
}

void SnapshotCollector::wait_until(net::Deadline time) {
  std::unique_lock lock(mutex_);
  while (!snapshot_ && !is_over_ && net::Clock::now() < time) {
    changed_.wait_for(lock, std::min<net::Clock::duration>(kTick, time - net::Clock::now()));
    stop_.throw_if_stopped();
  }
}

// ------------------------------------------------------------------------------------- the thread

bool SnapshotCollector::is_ending() { return ends_.interrupted(); }

bool SnapshotCollector::wants_snapshot() {
  const std::scoped_lock lock(mutex_);
  // Taken once: a request that fails is set again by leave_all().
  return std::exchange(is_wanted_, false);
}

void SnapshotCollector::over() {
  const std::scoped_lock lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
}

math::Range SnapshotCollector::range_of(std::size_t ps) const {
  return math::shard_range(parameters_.size(), ps, links_.size());
}

void SnapshotCollector::report_gone(std::string why) {
  const std::scoped_lock lock(mutex_);
  is_there_ = false;
  why_gone_ = std::move(why);
}

void SnapshotCollector::report_present() {
  const std::scoped_lock lock(mutex_);
  is_there_ = true;
}

void SnapshotCollector::throw_if_gone(std::chrono::seconds limit) const {
  // An observer that does not give up, such as a service, waits for the next run.
  if (when_gone_ == WhenGone::kGiveUp && net::Clock::now() - gone_since_ > limit) {
    throw Failure(kLostPeers, why_gone_ + ", for " + seconds_text(limit));
  }
}

void SnapshotCollector::work() {
  net::Backoff backoff{std::mt19937_64(random_number())};
  while (!is_ending() && !is_over()) {
    bool is_there = false;
    try {
      if (find_config() && reach_all()) {
        // One ps after the other is reached, then all are listened to, until one is lost.
        report_present();
        is_there = listen();
      }
      if (!is_there && !is_over()) {
        throw_if_gone(config_json_.empty() ? task_.timeouts.start : task_.timeouts.peer);
      }
    } catch (const Failure& failure) {
      // Before the first delivery only a lost peer may recover; afterwards any failure may be that
      // of a restarted run.
      const bool may_recover = failure.exit_code() == kLostPeers || has_delivered_;
      if (when_gone_ == WhenGone::kGiveUp || !may_recover) {
        throw;
      }
      is_there = false;
      begin_anew(failure.what());
    }
    if (is_there) {
      backoff.reset();
    } else {
      // Pauses grow until all ps have sent something again.
      ends_.wait_until(net::Clock::now() + backoff.next());
    }
  }
}

// Asks each ps in turn until one has the configuration: if a range has two hosts, its own ps may be
// lost, or may have been restarted and hold nothing yet.
bool SnapshotCollector::find_config() {
  if (!config_json_.empty()) {
    return true;
  }
  std::string why;  // of the first ps
  bool is_any_there = true;
  while (is_any_there && config_json_.empty() && !is_ending()) {
    is_any_there = false;
    why.clear();
    for (std::size_t ps = 0; ps < links_.size() && config_json_.empty(); ++ps) {
      const std::error_code error = ask_for_config(links_[ps]);
      is_any_there = is_any_there || !error;
      // The first error names the ps that a user should look at.
      if (error && why.empty()) {
        why = links_[ps].name() + " cannot be reached: " + error.message();
      }
    }
    if (is_any_there && config_json_.empty()) {
      report_gone("no chief has published what the run trains");
      throw_if_gone(task_.timeouts.start);
      ends_.wait_until(net::Clock::now() + kAskAgain);
    }
  }
  for (WatchLink& link : links_) {
    link.close();
  }
  if (!is_any_there) {
    report_gone(std::move(why));
  }
  return !config_json_.empty();
}

// The link stays open where the ps has none yet.
std::error_code SnapshotCollector::ask_for_config(WatchLink& link) {
  std::string json;
  // In whatever role: a backup has the configuration as well.
  std::error_code error =
      link.is_open() ? std::error_code() : link.connect(/*is_replicated=*/false);
  if (!error) {
    error = link.get_config(json);
  }
  if (error) {
    link.close();
  } else if (!json.empty()) {
    take_config(json);
  }
  return error;
}

void SnapshotCollector::take_config(const std::string& json) {
  try {
    config_ = run_config_from_json(json);
    validate(config_);
  } catch (const std::invalid_argument& error) {
    throw Failure(kError,
                  std::string("the chief published what this version cannot use: ") + error.what());
  }
  // At once, and not with the first snapshot, which may take hours.
  if (config_.model.is_program()) {
    throw Failure(
        kUsage, "the run trains a user's program, and this command computes only models of layers");
  }
  // Judged before memory is taken, so that the sentence says what is missing.
  require_memory(math::layout_of(config_.model).size() * sizeof(float), "this process",
                 "the parameters of the run");
  config_json_ = json;
  parameters_ = math::AlignedVector(math::layout_of(config_.model).size());
  gone_since_ = net::Clock::now();
}

bool SnapshotCollector::reach_all() {
  for (std::size_t ps = 0; ps < links_.size(); ++ps) {
    WatchLink& link = links_[ps];
    if (has_last_[ps] || link.is_open()) {
      continue;
    }
    std::string json;
    std::error_code error = link.connect(config_.ps_replicas > 1);
    if (!error) {
      error = link.get_config(json);
    }
    if (error) {
      return lose(ps, error.message());
    }
    // This ps holds no state yet: the run that it will join may be another one.
    if (json.empty() && link.welcome().state != net::ShardState::kFinished) {
      return lose(ps, "it holds nothing of a run");
    }
    if (!json.empty() && json != config_json_) {
      const std::string why = "another chief has restarted the run with another configuration";
      log_warning(why + "; reading it again");
      begin_anew(why);
      return false;
    }
    plan_.saw(link.welcome().step);
    heard_[ps] = net::Clock::now();
    has_spoken_[ps] = false;
  }
  // From the beginning each ps is asked for the result, so that the end is noticed at once.
  waits_for_end_ = true;
  return watch_all(kToTheEnd);
}

// Ps that have sent their shard of the result are not asked again.
bool SnapshotCollector::watch_all(std::uint64_t step) {
  for (std::size_t ps = 0; ps < links_.size(); ++ps) {
    if (has_last_[ps]) {
      continue;
    }
    if (const std::error_code error = links_[ps].watch(step)) {
      return lose(ps, error.message());
    }
  }
  return true;
}

// A requested snapshot stays requested. Always returns false.
bool SnapshotCollector::lose(std::size_t ps, const std::string& why) {
  std::string sentence = links_[ps].name() + " cannot be reached: " + why;
  if (when_gone_ == WhenGone::kGiveUp && why_gone_ != sentence) {
    log_info(sentence);
  }
  report_gone(std::move(sentence));
  leave_all();
  return false;
}

void SnapshotCollector::leave_all() {
  for (WatchLink& link : links_) {
    link.close();
  }
  plan_.lost();
  // The request was under way, and is made again once all ps are reached.
  if (!std::exchange(waits_for_end_, true)) {
    const std::scoped_lock lock(mutex_);
    is_wanted_ = true;
  }
}

// The next run there may be another one.
void SnapshotCollector::begin_anew(const std::string& why) {
  report_gone(why);
  leave_all();
  config_json_.clear();
  plan_ = SnapshotPlan(links_.size());
  has_last_.assign(links_.size(), false);
}

// Runs until a ps is lost, or nothing more is to arrive. Returns true if all ps have sent something
// meanwhile, so that the next loss counts as a new one.
bool SnapshotCollector::listen() {
  bool have_spoken = false;
  std::vector<pollfd> fds(links_.size() + 1);  // the last one is the interrupt
  for (;;) {
    if (waits_for_end_ && wants_snapshot()) {
      waits_for_end_ = false;
      if (!watch_all(plan_.begin())) {
        return have_spoken;
      }
    }
    for (std::size_t ps = 0; ps < links_.size(); ++ps) {
      fds[ps] = {.fd = has_last_[ps] ? -1 : links_[ps].fd(), .events = POLLIN, .revents = 0};
    }
    // The error does not matter: what has arrived is read, and timeouts are checked, in any case.
    static_cast<void>(net::wait_for_any(fds, ends_, net::Clock::now() + kTick));
    if (is_ending()) {
      return have_spoken;
    }
    const auto now = net::Clock::now();
    for (std::size_t ps = 0; ps < links_.size(); ++ps) {
      // After a suspension of this process, arrived frames are read before a ps counts as lost.
      const bool has_timed_out =
          !has_last_[ps] && now - heard_[ps] > task_.timeouts.heartbeat_timeout;
      if (fds[ps].revents != 0 ? !receive(ps) : has_timed_out && !lose(ps, "no heartbeat")) {
        return have_spoken;
      }
    }
    have_spoken = have_spoken || all_have_spoken();
    if (have_spoken) {
      gone_since_ = now;
    }
    const SnapshotPlan::State state = plan_.state();
    if (state == SnapshotPlan::State::kResult) {
      deliver(/*is_result=*/true);
      return true;
    }
    if (!waits_for_end_ && state == SnapshotPlan::State::kWhole) {
      waits_for_end_ = true;  // each ps was asked for the result when it had answered
      deliver(/*is_result=*/false);
    } else if (!waits_for_end_ && state == SnapshotPlan::State::kTorn &&
               !watch_all(plan_.begin())) {
      return have_spoken;
    }
  }
}

bool SnapshotCollector::all_have_spoken() const {
  for (std::size_t ps = 0; ps < links_.size(); ++ps) {
    if (!has_last_[ps] && !has_spoken_[ps]) {
      return false;
    }
  }
  return true;
}

bool SnapshotCollector::receive(std::size_t ps) {
  const math::Range range = range_of(ps);
  std::optional<SnapshotPlan::Part> part;
  bool has_nothing = false;
  const std::error_code error = links_[ps].receive(
      range, parameters_.span().subspan(range.begin, range.size()), part, has_nothing);
  if (error) {
    return lose(ps, error.message());
  }
  heard_[ps] = net::Clock::now();
  has_spoken_[ps] = true;
  // This ps has ended without a result, so no result can become complete.
  if (has_nothing) {
    over();
    return false;
  }
  if (!part) {
    return true;
  }
  plan_.took(ps, *part);
  if (part->is_last) {
    // The ps has sent its last frame.
    has_last_[ps] = true;
    links_[ps].close();
    return true;
  }
  // The next request follows each answer, so that the end is noticed while others are waited for.
  const std::error_code failed = links_[ps].watch(kToTheEnd);
  return !failed || lose(ps, failed.message());
}

// A snapshot that was not taken is replaced by a newer one.
void SnapshotCollector::deliver(bool is_result) {
  TrainedModel snapshot;
  snapshot.config = config_;
  snapshot.step = plan_.step();
  snapshot.is_result = is_result;
  const std::size_t size = parameters_.size();
  // Handed over without a copy; the next snapshot gets new memory.
  snapshot.parameters = std::exchange(parameters_, math::AlignedVector(is_result ? 0 : size));
  if (is_result) {
    snapshot.weights_sha256 =
        weights_hash(math::layout_of(config_.model), snapshot.parameters.span());
  }
  has_delivered_ = true;
  // Only the hand-over needs the mutex; hashing and copying are done before.
  const std::scoped_lock lock(mutex_);
  snapshot_ = std::move(snapshot);
  is_over_ = is_result;
  changed_.notify_all();
}

}  // namespace disttf::roles
