#include "run/monitor/core/critical_path.h"

#include <algorithm>
#include <numeric>

namespace disttf::roles {
namespace {

using enum CriticalPathStage;

// A task that has sent nothing for so many rounds is not waited for.
constexpr std::size_t kMostSilent = 4;
// A smaller share of a step is not reported.
constexpr double kLeastShare = 0.05;

constexpr std::size_t at(CriticalPathStage stage) { return static_cast<std::size_t>(stage); }

template <typename Sample>
void keep_newest(std::deque<Sample>& kept, std::span<const Sample> samples) {
  for (const Sample& sample : samples) {
    while (!kept.empty() && kept.back().step >= sample.step) {
      kept.pop_back();  // the run was rolled back: later steps are void
    }
    kept.push_back(sample);
    if (kept.size() > CriticalPathFinder::kWindow) {
      kept.pop_front();
    }
  }
}

template <typename Sample>
const Sample* find(const std::deque<Sample>& kept, std::uint64_t step) {
  // keep_newest() keeps the samples sorted by step.
  const auto found = std::ranges::lower_bound(kept, step, {}, &Sample::step);
  return found != kept.end() && found->step == step ? &*found : nullptr;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The median over all elements of `all` except one.
template <typename Value, typename Of>
double median_of_others(const std::vector<Value>& all, std::size_t but, Of of) {
  std::vector<double> values;
  for (std::size_t each = 0; each < all.size(); ++each) {
    if (each != but) {
      values.push_back(of(all[each]));
    }
  }
  return median(std::move(values));
}

std::array<double, kCriticalPathStages> stages_of(const TrainerSample& sample) {
  std::array<double, kCriticalPathStages> seconds{};
  seconds[at(kPull)] = static_cast<double>(sample.of(Stage::kPull));
  seconds[at(kLoad)] = static_cast<double>(sample.of(Stage::kLoad));
  seconds[at(kForward)] = static_cast<double>(sample.of(Stage::kForward));
  seconds[at(kBackward)] = static_cast<double>(sample.of(Stage::kBackward));
  seconds[at(kPush)] = static_cast<double>(sample.of(Stage::kPush));
  return seconds;
}

// The part of each transfer that may be due to the ps: that of the fastest transfer, and as much
// again for each gradient read before it. A single trainer shares nothing.
std::vector<double> shared_of(const std::vector<double>& ways) {
  std::vector<double> shared(ways.size(), 0.0);
  if (ways.size() < 2) {
    return shared;
  }
  std::vector<std::size_t> order(ways.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&ways](std::size_t each) { return ways[each]; });
  const double shortest = ways[order.front()];
  double before = 0;
  for (const std::size_t each : order) {
    // A ps reads one gradient after the other, so a later one waits for those before it.
    before = shared[each] = std::min(ways[each], before + shortest);
  }
  return shared;
}

}  // namespace

double CriticalPathFinder::Taken::total() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

CriticalPathFinder::CriticalPathFinder(std::size_t trainers, std::size_t ps, bool is_sync)
    : is_sync_(is_sync), trainers_(trainers), ps_(ps) {}

void CriticalPathFinder::record_trainer(std::size_t rank, std::span<const TrainerSample> samples) {
  keep_newest(trainers_[rank].samples, samples);
  if (!samples.empty()) {
    trainers_[rank].silent = 0;
  }
}

void CriticalPathFinder::record_ps(std::size_t index, std::span<const RangeSample> samples) {
  keep_newest(ps_[index].samples, samples);
}

// Steps are made again with the same numbers: samples of both tries must not be combined.
void CriticalPathFinder::roll_back() {
  for (Trainer& trainer : trainers_) {
    trainer.samples.clear();
  }
  for (Ps& ps : ps_) {
    ps.samples.clear();
  }
}

bool CriticalPathFinder::is_here(const Trainer& trainer) const {
  return !trainer.samples.empty() && trainer.silent < kMostSilent;
}

// The measures of a step by each trainer and each ps.
std::optional<CriticalPathFinder::ReportedStep> CriticalPathFinder::told_of(
    std::uint64_t number) const {
  ReportedStep told;
  std::vector<LastPs> last_ps;
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    // A trainer that has gone would keep every step incomplete.
    if (!is_here(trainers_[rank])) {
      continue;
    }
    const TrainerSample* const sample = find(trainers_[rank].samples, number);
    if (sample == nullptr) {
      return std::nullopt;
    }
    told.trainers.push_back({.rank = rank, .seconds = stages_of(*sample)});
    told.overlapped.push_back(static_cast<double>(sample->of(Stage::kOverlapped)));
    last_ps.push_back(sample->last_ps);
  }
  for (std::size_t index = 0; index < ps_.size(); ++index) {
    const RangeSample* const sample = find(ps_[index].samples, number);
    if (sample == nullptr) {
      return std::nullopt;
    }
    std::vector<double> ways;
    for (std::size_t each = 0; each < told.trainers.size(); ++each) {
      const Taken& taken = told.trainers[each];
      // Negative for a gradient that has not arrived.
      const double arrived = taken.rank < sample->arrived.size()
                                 ? static_cast<double>(sample->arrived[taken.rank])
                                 : -1;
      const double awaited =
          last_ps[each].index == index ? 0 : static_cast<double>(last_ps[each].seconds);
      // What remains is the transfer: without the time of computing, and of waiting for another
      // parameter server.
      ways.push_back(std::max(0.0, arrived - taken.total() - awaited));
    }
    told.ways.push_back(std::move(ways));
    told.apply.push_back(static_cast<double>(sample->apply));
  }
  return told.trainers.empty() ? std::nullopt : std::optional(std::move(told));
}

// Attributes the part of a gradient's transfer that its trainer did not see: first the part that
// all trainers of that ps had in common, then the trainer's own. Of the latter, the time in which
// the trainer may have been loading when the parameters came counts as loading.
CriticalPathFinder::Step CriticalPathFinder::shared_out(ReportedStep told) {
  Step step{.trainers = std::move(told.trainers), .receive = {}, .apply = std::move(told.apply)};
  std::vector<double> own(step.trainers.size(), 0.0);
  for (const std::vector<double>& ways : told.ways) {
    const std::vector<double> shared = shared_of(ways);
    std::size_t last = 0;  // the last trainer to arrive
    for (std::size_t each = 0; each < ways.size(); ++each) {
      own[each] = std::max(own[each], ways[each] - shared[each]);
      if (step.trainers[each].total() + ways[each] > step.trainers[last].total() + ways[last]) {
        last = each;
      }
    }
    // The step ends with the last gradient, so only its share delays the step.
    step.receive.push_back(shared[last]);
  }
  for (std::size_t each = 0; each < step.trainers.size(); ++each) {
    const double loading = std::min(own[each], told.overlapped[each]);
    step.trainers[each].seconds[at(kLoad)] += loading;
    step.trainers[each].seconds[at(kPush)] += own[each] - loading;
  }
  return step;
}

CriticalPathFinder::ReportedStep CriticalPathFinder::mean_of(std::span<const ReportedStep> steps) {
  // All steps have the same trainers in the same order: those that are here now.
  ReportedStep mean = steps.front();
  const auto each_value = [](ReportedStep& told, auto&& apply) {
    for (std::size_t each = 0; each < told.trainers.size(); ++each) {
      for (std::size_t stage = 0; stage < kCriticalPathStages; ++stage) {
        apply(told.trainers[each].seconds[stage],
              [=](const ReportedStep& other) { return other.trainers[each].seconds[stage]; });
      }
      apply(told.overlapped[each],
            [=](const ReportedStep& other) { return other.overlapped[each]; });
    }
    for (std::size_t ps = 0; ps < told.apply.size(); ++ps) {
      for (std::size_t each = 0; each < told.trainers.size(); ++each) {
        apply(told.ways[ps][each], [=](const ReportedStep& other) { return other.ways[ps][each]; });
      }
      apply(told.apply[ps], [=](const ReportedStep& other) { return other.apply[ps]; });
    }
  };
  each_value(mean, [steps](double& value, auto&& of) {
    value = 0;
    for (const ReportedStep& step : steps) {
      value += of(step) / static_cast<double>(steps.size());
    }
  });
  return mean;
}

std::vector<CriticalPathFinder::ReportedStep> CriticalPathFinder::steps_of_all(
    std::uint64_t& newest) const {
  std::vector<ReportedStep> steps;
  const auto first =
      std::ranges::find_if(trainers_, [this](const Trainer& each) { return is_here(each); });
  if (first == trainers_.end()) {
    return steps;
  }
  // Any present trainer will do: a step counts only if all of them report it.
  for (const TrainerSample& sample : first->samples) {
    if (std::optional<ReportedStep> told = told_of(sample.step)) {
      steps.push_back(std::move(*told));
      newest = sample.step;
    }
  }
  return steps;
}

// Asynchronous: one step made of each task's means.
std::vector<CriticalPathFinder::ReportedStep> CriticalPathFinder::mean_step(
    std::uint64_t& newest) const {
  ReportedStep told;
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    const Trainer& trainer = trainers_[rank];
    if (!is_here(trainer)) {
      continue;
    }
    Taken taken{.rank = rank};
    for (const TrainerSample& sample : trainer.samples) {
      const auto seconds = stages_of(sample);
      for (std::size_t stage = 0; stage < kCriticalPathStages; ++stage) {
        taken.seconds[stage] += seconds[stage] / static_cast<double>(trainer.samples.size());
      }
      newest = std::max(newest, sample.step);
    }
    told.trainers.push_back(taken);
    told.overlapped.push_back(0);
  }
  for (const Ps& ps : ps_) {
    double apply = 0;
    for (const RangeSample& sample : ps.samples) {
      apply += static_cast<double>(sample.apply) / static_cast<double>(ps.samples.size());
    }
    // Steps of different tasks do not correspond, so the transfers are unknown.
    told.ways.emplace_back(told.trainers.size(), 0.0);
    told.apply.push_back(apply);
  }
  return told.trainers.empty() ? std::vector<ReportedStep>() : std::vector<ReportedStep>{told};
}

void CriticalPathFinder::add_shares(const Step& step, CriticalPath& critical_path) const {
  const auto add = [&](CriticalPathStage stage, bool is_ps, std::size_t index, double seconds) {
    const auto found =
        std::ranges::find_if(critical_path.shares, [&](const CriticalPath::Share& share) {
          return share.stage == stage && share.is_ps == is_ps && share.index == index;
        });
    if (seconds <= 0) {
      return;
    }
    if (found != critical_path.shares.end()) {
      found->seconds += seconds;
    } else {
      critical_path.shares.push_back(
          {.stage = stage, .is_ps = is_ps, .index = index, .seconds = seconds});
    }
    critical_path.step_seconds += seconds;
  };
  std::vector<double> sums(step.trainers.size(), 0.0);
  double front = 0;
  // The stages of all trainers in order: a stage contributes the time by which it moves the slowest
  // trainer's sum beyond the front. The contributions add up to the step.
  for (std::size_t stage = 0; stage < at(kReceive); ++stage) {
    for (std::size_t each = 0; each < sums.size(); ++each) {
      sums[each] += step.trainers[each].seconds[stage];
    }
    const auto furthest = std::ranges::max_element(sums);
    add(static_cast<CriticalPathStage>(stage), false,
        step.trainers[static_cast<std::size_t>(furthest - sums.begin())].rank, *furthest - front);
    // The front moves only forward: a stage that does not pass it contributes nothing.
    front = std::max(front, *furthest);
  }
  const auto add_ps = [&](CriticalPathStage stage, const std::vector<double>& seconds) {
    if (!seconds.empty()) {
      const auto most = std::ranges::max_element(seconds);
      add(stage, true, static_cast<std::size_t>(most - seconds.begin()), *most);
    }
  };
  add_ps(kReceive, step.receive);
  add_ps(kApply, step.apply);
}

std::optional<CriticalPath::Slowest> CriticalPathFinder::slowest_trainer(const Step& mean) const {
  // A single trainer has nothing to be compared with.
  if (mean.trainers.size() < 2) {
    return std::nullopt;
  }
  const auto most = std::ranges::max_element(mean.trainers, {}, &Taken::total);
  const auto index = static_cast<std::size_t>(most - mean.trainers.begin());
  const double others =
      median_of_others(mean.trainers, index, [](const Taken& taken) { return taken.total(); });
  // Compared with the median of the others: a second slow trainer would raise a mean.
  CriticalPath::Slowest slowest{.index = most->rank,
                                .slower = others > 0 ? most->total() / others - 1 : 0,
                                .seconds = most->total() - others};
  double largest = 0;
  for (std::size_t stage = 0; stage < kCriticalPathStages; ++stage) {
    const double excess =
        most->seconds[stage] - median_of_others(mean.trainers, index, [stage](const Taken& taken) {
          return taken.seconds[stage];
        });
    // The stage in which it exceeds the others most is the one to look at.
    if (excess > largest) {
      largest = excess;
      slowest.stage = static_cast<CriticalPathStage>(stage);
    }
  }
  return slowest;
}

// Compares each ps with the others; a single one with its own fastest steps.
std::optional<CriticalPath::Slowest> CriticalPathFinder::slowest_ps(const Step& mean,
                                                                    double step_seconds) {
  std::vector<double> taken;
  for (std::size_t each = 0; each < ps_.size(); ++each) {
    taken.push_back(mean.receive[each] + mean.apply[each]);
  }
  if (taken.empty() || step_seconds <= 0) {
    return std::nullopt;
  }
  const auto index = static_cast<std::size_t>(std::ranges::max_element(taken) - taken.begin());
  // The fastest time so far, for a single parameter server to be compared with.
  double& least = ps_[index].least;
  if (taken[index] > 0 && (least == 0 || taken[index] < least)) {
    least = taken[index];
  }
  const double usual =
      taken.size() > 1 ? median_of_others(taken, index, [](double value) { return value; }) : least;
  if (usual <= 0) {
    return std::nullopt;
  }
  const bool receives = mean.receive[index] > mean.apply[index];
  return CriticalPath::Slowest{.is_ps = true,
                               .index = index,
                               .stage = receives ? kReceive : kApply,
                               .slower = taken[index] / usual - 1,
                               .seconds = taken[index] - usual,
                               .is_alone = taken.size() == 1};
}

std::optional<CriticalPath::Slowest> CriticalPathFinder::slowest(const Step& mean,
                                                                 double step_seconds) {
  std::optional<CriticalPath::Slowest> slowest;
  for (const auto& candidate : {slowest_trainer(mean), slowest_ps(mean, step_seconds)}) {
    // Small differences are noise; small shares are not worth a message.
    if (candidate && candidate->slower >= kLeastSlower &&
        candidate->seconds >= kLeastShare * step_seconds &&
        (!slowest || candidate->seconds > slowest->seconds)) {
      slowest = candidate;
    }
  }
  return slowest;
}

std::optional<CriticalPath> CriticalPathFinder::take() {
  for (Trainer& trainer : trainers_) {
    // One round; record_trainer() resets it.
    ++trainer.silent;
  }
  CriticalPath critical_path;
  const std::vector<ReportedStep> steps =
      is_sync_ ? steps_of_all(critical_path.step) : mean_step(critical_path.step);
  if (steps.empty()) {
    return std::nullopt;
  }
  for (const ReportedStep& step : steps) {
    add_shares(shared_out(step), critical_path);
  }
  critical_path.steps = steps.size();
  const auto count = static_cast<double>(steps.size());
  critical_path.step_seconds /= count;
  for (CriticalPath::Share& share : critical_path.shares) {
    share.seconds /= count;
  }
  std::ranges::sort(critical_path.shares, std::ranges::greater(), &CriticalPath::Share::seconds);
  // From means, since the slowest task of a single step is chosen by noise.
  critical_path.slowest = slowest(shared_out(mean_of(steps)), critical_path.step_seconds);
  // Later rounds use only the newest samples.
  for (Trainer& trainer : trainers_) {
    if (trainer.samples.size() > kWindow / 2) {
      trainer.samples.erase(trainer.samples.begin(),
                            trainer.samples.end() - static_cast<std::ptrdiff_t>(kWindow / 2));
    }
  }
  return critical_path;
}

}  // namespace disttf::roles
