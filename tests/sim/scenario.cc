#include "tests/sim/scenario.h"

#include <algorithm>
#include <array>

#include "math/model.h"
#include "tests/sim/other_configuration.h"
#include "tests/sim/program_faults.h"

namespace disttf::sim {
namespace {

using net::FrameKind;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// Draws a sequence of numbers from one seed.
class Dice {
 public:
  Dice(std::uint64_t seed, Draw what) : world_(seed, false), what_(what) {}
  std::uint64_t below(std::uint64_t limit) { return world_.below(limit, what_, 0, index_++); }
  bool one_in(std::uint64_t times) { return below(times) == 0; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }

 private:
  const World world_;
  const Draw what_;
  std::uint64_t index_ = 0;
};

// As many classes as a cache line has floats, so that the vector has no padding, which files omit.
constexpr std::size_t kClasses = 16;

// Sets a softmax model with so many parameters, a multiple of kClasses.
void set_size(Scenario& scenario, std::size_t floats) {
  scenario.config.model.kind = math::ModelKind::kSoftmax;
  scenario.config.model.classes = kClasses;
  scenario.config.model.input = {.channels =
                                     std::max<std::size_t>(1, (floats - kClasses) / kClasses)};
  scenario.size = math::layout_of(scenario.config.model).size();
}

// If the vector is long enough, its end becomes running statistics: those of batch norm after a
// dense layer, with scale and shift. The vector's size stays.
void keep_running_statistics(Scenario& scenario) {
  constexpr std::size_t kOthers = 5 * kClasses;  // and the dense layer's bias
  if (scenario.size < kOthers + kClasses) {
    return;
  }
  roles::RunConfig& config = scenario.config;
  config.model.input = {.channels = (scenario.size - kOthers) / kClasses};
  config.model.layers = {
      {.type = "dense", .name = {}, .fields = {{"units", static_cast<double>(kClasses)}}},
      {.type = "batch_norm", .name = {}, .fields = {{"momentum", 0.875}}}};
  config.batch_size = 2;  // the smallest allowed
}

Scenario plain(std::uint64_t seed) {
  Scenario scenario;
  scenario.seed = seed;
  roles::RunConfig& config = scenario.config;
  config.dataset = "MNIST";
  config.data_checksum = "0";
  config.isa = math::Isa::kGeneric;
  config.batch_size = 1;
  config.seed = 1;
  return scenario;
}

void draw_mode(Scenario& scenario, Dice& dice) {
  roles::RunConfig& config = scenario.config;
  config.trainers = scenario.trainers;
  config.rate_decay = dice.one_in(2) ? math::RateDecay::kLinear : math::RateDecay::kNone;
  // Of 12 seeds 5 are fully synchronous, 2 elastic, 2 with backup workers and 3 asynchronous.
  const std::uint64_t mode = dice.below(12);
  config.optimizer.learning_rate = 0.05F;
  constexpr std::array kKinds = {math::OptimizerKind::kSgd, math::OptimizerKind::kMomentum,
                                 math::OptimizerKind::kAdagrad, math::OptimizerKind::kAdam};
  config.optimizer.kind = kKinds[dice.below(kKinds.size())];
  const std::size_t short_page = 32 + 16 * dice.below(20);
  const std::size_t exact_size = (scenario.ps - 1) * math::kShardAlignmentFloats + short_page;
  const bool replicas = scenario.ps > 1 && dice.one_in(2);
  if (mode < 5) {  // fully synchronous
    config.ps_replicas = replicas ? 2 : 1;
    set_size(scenario, exact_size);
    return;
  }
  if (mode < 7) {  // elastic
    config.micro_batches = dice.between(1, 2 * scenario.trainers);
    config.min_workers = dice.between(1, scenario.trainers);
    set_size(scenario, exact_size);
    return;
  }
  // In the other modes each push has a component of its own.
  config.rate_decay = math::RateDecay::kNone;
  config.optimizer = {.kind = math::OptimizerKind::kSgd, .learning_rate = 1.0F};
  config.ps_replicas = replicas ? 2 : 1;
  set_size(scenario, scenario.ps * math::kShardAlignmentFloats);
  if (mode < 9 && scenario.trainers > 1) {
    config.replicas_to_aggregate = dice.between(1, scenario.trainers - 1);
    return;
  }
  config.sync_replicas = false;
  if (dice.one_in(2)) {
    config.max_staleness = dice.below(4);
  }
}

Duration draw_duration(Dice& dice) {
  const std::uint64_t kind = dice.below(20);
  if (kind < 13) {
    return milliseconds(dice.between(1, 1500));
  }
  if (kind < 18) {
    return milliseconds(dice.between(1500, 15000));
  }
  return milliseconds(dice.between(15000, 90000));
}

// Kinds of frames whose delivery may trigger a fault, and how many there are: 0 means one per step.
struct Moment {
  FrameKind kind;
  std::uint64_t most;
};
constexpr std::array<Moment, 19> kMoments = {{{FrameKind::kPushPull, 0},
                                              {FrameKind::kParameters, 0},
                                              {FrameKind::kUpdate, 0},
                                              {FrameKind::kAck, 0},
                                              {FrameKind::kPublish, 6},
                                              {FrameKind::kRestore, 6},
                                              {FrameKind::kPull, 12},
                                              {FrameKind::kGetConfig, 6},
                                              {FrameKind::kConfig, 6},
                                              {FrameKind::kGoodbye, 12},
                                              {FrameKind::kShutdown, 6},
                                              {FrameKind::kWelcome, 60},
                                              {FrameKind::kFenced, 8},
                                              {FrameKind::kFill, 4},
                                              {FrameKind::kComplete, 4},
                                              {FrameKind::kView, 16},
                                              {FrameKind::kReport, 100},
                                              {FrameKind::kSnapshotShard, 10},
                                              {FrameKind::kPush, 0}}};

void draw_faults(Scenario& scenario, Dice& dice) {
  constexpr auto kKinds = static_cast<std::size_t>(Fault::Kind::kCutBody) + 1;
  std::array<std::uint64_t, kKinds> weights{};
  std::uint64_t all = 0;
  for (std::uint64_t& weight : weights) {
    weight = dice.one_in(2) ? dice.between(1, 8) : 0;  // some kinds are left out
    all += weight;
  }
  if (all == 0) {
    return;
  }
  const std::uint64_t steps = scenario.config.train_steps;
  const std::uint64_t length_us = steps * (scenario.pace.compute_us + 1000) + 2'000'000;
  const std::uint64_t most_long = dice.below(3);
  std::uint64_t long_ones = 0;
  const std::size_t nodes = scenario.ps + scenario.trainers;
  const std::uint64_t count = dice.one_in(12) ? 0 : dice.between(1, 24);
  const bool moments_alone = dice.one_in(3);
  for (std::uint64_t each = 0; each < count; ++each) {
    Fault fault;
    std::uint64_t place = dice.below(all);
    std::size_t kind = 0;
    while (place >= weights.at(kind)) {
      place -= weights.at(kind++);
    }
    fault.kind = static_cast<Fault::Kind>(kind);
    if (moments_alone || dice.one_in(2)) {
      const Moment moment = kMoments[dice.below(kMoments.size())];
      fault.on = moment.kind;
      fault.nth =
          1 + dice.below(moment.most != 0 ? moment.most : steps * scenario.trainers * scenario.ps);
      fault.to_sender = dice.one_in(2);
    }
    fault.at = microseconds(dice.below(length_us));
    fault.node = dice.below(nodes);
    fault.other = dice.below(nodes);
    fault.duration = draw_duration(dice);
    if (fault.duration > milliseconds(8000) && long_ones++ >= most_long) {
      fault.duration /= 20;
    }
    fault.detail = dice.below(std::uint64_t{1} << 32U);
    scenario.faults.push_back(fault);
  }
}

// Above the ids of groups.
constexpr std::uint64_t kEarlyStops = 100;

// Draws groups of related faults. The first one mostly strikes as a frame of a rare kind is about
// to be delivered. Soon others follow: at the same node (or the process that replaces it), the ps
// that hosts the same range, the chief, or any node. Independent faults seldom coincide like that.
void draw_groups(Scenario& scenario, Dice& dice) {
  using Kind = Fault::Kind;
  constexpr std::array kFirst = {Kind::kKill,  Kind::kKill,    Kind::kVanish,  Kind::kFreeze,
                                 Kind::kBreak, Kind::kReplace, Kind::kIsolate, Kind::kCutBody};
  constexpr std::array kThen = {Kind::kKill,  Kind::kKill,   Kind::kKill,    Kind::kVanish,
                                Kind::kBreak, Kind::kFreeze, Kind::kReplace, Kind::kIsolate};
  constexpr std::array kSeldom = {
      FrameKind::kParameters, FrameKind::kPushPull, FrameKind::kUpdate,  FrameKind::kAck,
      FrameKind::kRestore,    FrameKind::kPull,     FrameKind::kGoodbye, FrameKind::kShutdown,
      FrameKind::kView,       FrameKind::kReport,   FrameKind::kFill,    FrameKind::kComplete,
      FrameKind::kConclude,   FrameKind::kBest,     FrameKind::kPublish, FrameKind::kWelcome};
  constexpr std::array<std::uint64_t, 6> kWithinUs = {1,       1000,      20'000,
                                                      300'000, 3'000'000, 12'000'000};
  constexpr std::array kWhom = {Fault::Whom::kSame, Fault::Whom::kOtherHost, Fault::Whom::kChief,
                                Fault::Whom::kNamed};
  const std::size_t nodes = scenario.ps + scenario.trainers;
  const std::uint64_t steps = scenario.config.train_steps;
  const std::uint64_t length_us = steps * (scenario.pace.compute_us + 1000) + 2'000'000;
  const auto draw = [&](Kind kind) {
    Fault fault;
    fault.kind = kind;
    fault.node = dice.below(nodes);
    fault.other = dice.below(nodes);
    fault.duration = dice.one_in(3) ? milliseconds(dice.between(1500, 15'000))
                                    : milliseconds(dice.between(1, 1500));
    fault.detail = dice.below(std::uint64_t{1} << 32U);
    return fault;
  };
  for (std::uint64_t group = dice.between(1, 4); group > 0; --group) {
    Fault first = draw(kFirst[dice.below(kFirst.size())]);
    first.id = group;
    first.at = microseconds(dice.below(length_us));
    if (!dice.one_in(4)) {
      first.on = kSeldom[dice.below(kSeldom.size())];
      first.nth = dice.between(1, dice.one_in(2) ? 6 : 40);
      first.to_sender = dice.one_in(2);
    }
    scenario.faults.push_back(first);
    for (std::uint64_t more = dice.between(1, 3); more > 0; --more) {
      Fault next = draw(kThen[dice.below(kThen.size())]);
      next.follows = group;
      next.at = microseconds(dice.below(kWithinUs[dice.below(kWithinUs.size())]));
      next.whom = kWhom[dice.below(kWhom.size())];
      scenario.faults.push_back(next);
    }
  }
}

// Elastic: trainers are lost that have just been assigned the micro-batches of another lost
// trainer.
void draw_faults_of_dealing(Scenario& scenario) {
  Dice dice(scenario.seed, Draw::kDealing);
  if (!scenario.config.elastic() || !dice.one_in(2)) {
    return;
  }
  for (std::uint64_t count = dice.between(1, 4); count > 0; --count) {
    Fault fault;
    fault.kind = dice.one_in(4) ? Fault::Kind::kVanish : Fault::Kind::kKill;
    fault.on = dice.one_in(2) ? FrameKind::kWork : FrameKind::kParameters;
    fault.nth = dice.between(1, 30);
    fault.detail = dice.below(4);
    scenario.faults.push_back(fault);
  }
}

// Some runs stop early, and a process is lost at that moment.
void draw_early_stop(Scenario& scenario) {
  Dice dice(scenario.seed, Draw::kEarlyStop);
  roles::RunConfig& config = scenario.config;
  if (config.elastic() || !dice.one_in(3)) {
    return;
  }
  config.eval_every = dice.between(1, 5);
  config.patience = dice.one_in(3) ? 0 : dice.between(1, 4);
  config.target_accuracy = config.patience == 0 || dice.one_in(2) ? 0.9F : 0;
  constexpr std::array kKinds = {FrameKind::kBest,    FrameKind::kPull,    FrameKind::kParameters,
                                 FrameKind::kGoodbye, FrameKind::kRestore, FrameKind::kConclude};
  for (std::uint64_t count = dice.below(4); count > 0; --count) {
    Fault fault;
    fault.kind = dice.one_in(3) ? Fault::Kind::kVanish : Fault::Kind::kKill;
    fault.on = kKinds[dice.below(kKinds.size())];
    fault.nth = dice.between(1, 12);
    fault.to_sender = dice.one_in(2);
    fault.id = kEarlyStops + count;
    scenario.faults.push_back(fault);
    if (dice.one_in(2)) {  // the process that has recorded the end is lost as well
      Fault also;
      also.kind = dice.one_in(2) ? Fault::Kind::kVanish : Fault::Kind::kKill;
      also.follows = fault.id;
      also.at = microseconds(dice.one_in(2) ? 0 : dice.below(20'000));
      also.whom = dice.one_in(2) ? Fault::Whom::kChief : Fault::Whom::kNamed;
      also.node = dice.below(scenario.ps);
      scenario.faults.push_back(also);
    }
  }
}

// Adds an evaluator to the run, and faults that strike it. A simulated launch has none, since it
// only starts the run's own tasks.
void draw_evaluator(Scenario& scenario) {
  Dice dice(scenario.seed, Draw::kEvaluator);
  scenario.has_evaluator = !scenario.launch && dice.one_in(2);
  if (!scenario.has_evaluator) {
    return;
  }
  scenario.evaluated_every = dice.one_in(2) ? milliseconds(0) : milliseconds(dice.below(3000));
  constexpr std::array kKinds = {Fault::Kind::kKill,  Fault::Kind::kVanish, Fault::Kind::kFreeze,
                                 Fault::Kind::kBreak, Fault::Kind::kClog,   Fault::Kind::kReplace};
  const std::size_t node = scenario.ps + scenario.trainers;
  const std::uint64_t steps = scenario.config.train_steps;
  const std::uint64_t length_us = steps * (scenario.pace.compute_us + 1000) + 2'000'000;
  for (std::uint64_t count = dice.one_in(3) ? 0 : dice.between(1, 6); count > 0; --count) {
    Fault fault;
    fault.kind = kKinds[dice.below(kKinds.size())];
    if (dice.one_in(2)) {
      fault.on = dice.one_in(2) ? FrameKind::kWatch : FrameKind::kSnapshotShard;
      fault.nth = dice.between(1, 20);
    }
    fault.at = microseconds(dice.below(length_us));
    fault.node = node;
    fault.other = dice.below(scenario.ps);
    fault.duration = draw_duration(dice);
    fault.detail = dice.below(std::uint64_t{1} << 32U);
    fault.is_named = true;
    scenario.faults.push_back(fault);
  }
}

// The --train_dir is moved or unmounted, or the store does not answer, and it returns later. An
// evaluator may read checkpoints there instead of from the ps.
void draw_directory(Scenario& scenario) {
  if (!scenario.has_disk) {
    return;
  }
  Dice dice(scenario.seed, Draw::kDirectory);
  scenario.evaluates_directory = scenario.has_evaluator && dice.one_in(2);
  const std::uint64_t steps = scenario.config.train_steps;
  const std::uint64_t length_us = steps * (scenario.pace.compute_us + 1000) + 1'000'000;
  for (std::uint64_t count = dice.one_in(4) ? dice.between(1, 3) : 0; count > 0; --count) {
    Fault fault;
    fault.kind = dice.one_in(2) ? Fault::Kind::kUnmount : Fault::Kind::kStoreAway;
    fault.at = microseconds(dice.below(length_us));
    fault.duration = draw_duration(dice);
    scenario.faults.push_back(fault);
  }
}

// Draws how checkpoints are saved, and faults of the disk.
void draw_disk(Scenario& scenario, Dice& dice) {
  roles::CheckpointOptions& checkpoint = scenario.checkpoint;
  checkpoint.save_secs = std::chrono::seconds(dice.one_in(2) ? dice.between(1, 10) : 0);
  checkpoint.max_to_keep = dice.below(4);
  checkpoint.sharded = dice.one_in(3);
  const std::uint64_t steps = scenario.config.train_steps;
  const std::uint64_t length_us = steps * (scenario.pace.compute_us + 1000) + 1'000'000;
  // A run that loses everything in memory continues from the disk.
  for (std::uint64_t count = dice.one_in(2) ? dice.between(1, 3) : 0; count > 0; --count) {
    const bool and_the_chief = dice.one_in(2);
    const Duration at = microseconds(dice.below(length_us));
    const bool silently = dice.one_in(2);
    for (std::size_t node = 0; node < scenario.ps + (and_the_chief ? 1 : 0); ++node) {
      scenario.faults.push_back(
          {.kind = silently ? Fault::Kind::kVanish : Fault::Kind::kKill, .at = at, .node = node});
    }
  }
  constexpr std::array kKinds = {Fault::Kind::kKillAtDisk, Fault::Kind::kKillAtDisk,
                                 Fault::Kind::kDiskFails, Fault::Kind::kRot,
                                 Fault::Kind::kClockSteps};
  const std::uint64_t left_out = dice.below(2 * kKinds.size());  // one kind may be left out
  for (std::uint64_t count = dice.one_in(3) ? 0 : dice.between(1, 8); count > 0; --count) {
    const std::uint64_t kind = dice.below(kKinds.size());
    const Duration at = microseconds(dice.below(length_us));
    const std::uint64_t detail = dice.below(std::uint64_t{1} << 32U);
    if (kind != left_out) {
      scenario.faults.push_back({.kind = kKinds[kind], .at = at, .detail = detail});
    }
  }
}

// Some changes are so quick that a process offered the old secret answers when no process has it
// any more.
void draw_secret(Scenario& scenario) {
  Dice dice(scenario.seed, Draw::kSecret);
  scenario.has_secret = dice.one_in(2);
  if (!scenario.has_secret) {
    return;
  }
  constexpr std::array<std::uint64_t, 4> kWithin = {1, 1000, 100'000, 3'000'000};
  const std::uint64_t steps = scenario.config.train_steps;
  const std::uint64_t length_us = steps * (scenario.pace.compute_us + 1000) + 1'000'000;
  Duration begin{};
  for (std::uint64_t count = dice.below(5); count > 0; --count) {
    begin += microseconds(dice.below(length_us));
    const auto within = microseconds(kWithin[dice.below(kWithin.size())]);
    scenario.secret_changes.push_back({.at = begin, .each_within = within});
    begin += kSecretSteps * within;
  }
}

}  // namespace

Scenario plain_scenario(std::uint64_t seed) {
  Scenario scenario = plain(seed);
  scenario.network.split_one_in = 0;
  scenario.network.reset_one_in = 0;
  scenario.checkpoint.save_secs = std::chrono::seconds(0);
  scenario.config.optimizer = {.kind = math::OptimizerKind::kMomentum, .learning_rate = 0.05F};
  scenario.config.rate_decay = math::RateDecay::kNone;
  scenario.slowest_restart_ms = 60;
  return scenario;
}

void complete(Scenario& scenario) {
  scenario.config.trainers = scenario.trainers;
  const std::size_t pages = scenario.ps * math::kShardAlignmentFloats;
  if (scenario.config.every_gradient_counts()) {
    set_size(scenario, pages - math::kShardAlignmentFloats + 64);
  } else {
    scenario.config.optimizer = {.kind = math::OptimizerKind::kSgd, .learning_rate = 1.0F};
    set_size(scenario, pages);
  }
}

Scenario scenario_of(std::uint64_t seed) {
  Dice dice(seed, Draw::kSwarm);
  Scenario scenario = plain(seed);
  scenario.ps = dice.between(1, 4);
  scenario.trainers = dice.between(1, 5);
  // Most runs are short, so that what happens at their beginning and end is tested more often.
  constexpr std::array<std::uint64_t, 4> kMostSteps = {4, 16, 30, 120};
  scenario.config.train_steps = dice.between(1, kMostSteps[dice.below(kMostSteps.size())]);
  draw_mode(scenario, dice);
  if (!scenario.config.every_gradient_counts()) {  // at most as many steps as there are components
    scenario.config.train_steps =
        std::min<std::uint64_t>(scenario.config.train_steps, 400 / scenario.trainers);
  }
  constexpr std::array<std::uint64_t, 4> kPaces = {200, 2000, 20000, 100000};
  scenario.pace.compute_us = kPaces[dice.below(kPaces.size())];
  scenario.pace.slow_one_in = dice.one_in(8) ? 200 : 0;
  scenario.checkpoint.save_steps = dice.one_in(2) ? dice.between(1, 10) : 0;
  scenario.pace.load_ms = dice.one_in(4) ? 1000 : dice.between(1, 20);
  constexpr std::array<std::uint64_t, 3> kLatencies = {30, 200, 2000};
  scenario.network.mean_latency_us = kLatencies[dice.below(kLatencies.size())];
  scenario.network.slow_one_in = dice.one_in(2) ? 0 : dice.between(20, 500);
  scenario.network.split_one_in = dice.one_in(4) ? 0 : dice.between(1, 8);
  scenario.network.reset_one_in = dice.one_in(4) ? 0 : dice.between(1, 8);
  scenario.checkpoint.save_secs = std::chrono::seconds(0);
  scenario.has_disk = dice.one_in(2);
  scenario.slowest_restart_ms = dice.one_in(2) ? 60 : 4000;
  // Each seed leaves out some kinds of faults. Otherwise the remaining ones would seldom happen
  // alone.
  Dice groups(seed, Draw::kGroup);
  const std::uint64_t swarm = groups.below(5);
  if (swarm != 0 && swarm != 1) {
    draw_groups(scenario, groups);
  }
  if (swarm != 2 && swarm != 3) {
    Dice faults(seed, Draw::kFault);
    draw_faults(scenario, faults);
  }
  draw_faults_of_dealing(scenario);
  if (scenario.has_disk) {
    Dice disk(seed, Draw::kDiskFault);
    draw_disk(scenario, disk);
  }
  scenario.clocks_differ = Dice(seed, Draw::kClock).one_in(3);
  if (scenario.config.every_gradient_counts() && Dice(seed, Draw::kAverage).one_in(4)) {
    scenario.config.optimizer.average_decay = 0.75F;
  }
  if (scenario.config.every_gradient_counts() && Dice(seed, Draw::kRunning).one_in(3)) {
    keep_running_statistics(scenario);
  }
  draw_early_stop(scenario);
  if (Dice launch(seed, Draw::kLaunch); launch.one_in(4)) {
    const bool is_short = launch.one_in(4);  // a small restart budget
    scenario.launch = {.max_restarts = is_short ? launch.below(6) : 1000};
  }
  draw_evaluator(scenario);
  draw_directory(scenario);
  if (Dice sharing(seed, Draw::kSharing); sharing.one_in(2)) {
    scenario.pace.gradients_in_memory =
        scenario.config.elastic() ? sharing.between(1, scenario.config.micro_batches) : 1;
  }
  draw_secret(scenario);
  Dice hosts(seed, Draw::kHosts);
  if (scenario.config.every_gradient_counts() && !scenario.config.elastic() &&
      scenario.pace.gradients_in_memory == 0 && hosts.one_in(2)) {
    scenario.trainers_per_host = hosts.between(2, 5);
    scenario.summed_ranges = hosts.one_in(3) ? hosts.between(1, 15) : ~std::uint64_t{0};
  }
  draw_other_configuration(scenario);
  draw_program(scenario);
  return scenario;
}

Scenario large_scenario(std::uint64_t seed, std::size_t trainers, std::size_t ps,
                        std::uint64_t steps) {
  Dice dice(seed, Draw::kSwarm);
  Scenario scenario = plain(seed);
  scenario.ps = ps;
  scenario.trainers = trainers;
  scenario.config.trainers = trainers;
  scenario.config.train_steps = steps;
  scenario.config.optimizer = {.kind = math::OptimizerKind::kMomentum, .learning_rate = 0.05F};
  set_size(scenario, (ps - 1) * math::kShardAlignmentFloats + 64);
  scenario.pace.compute_us = 20000;
  scenario.checkpoint.save_steps = 10;
  scenario.checkpoint.save_secs = std::chrono::seconds(0);
  // About one body a step arrives in two parts. With more, some body would delay every step for
  // everyone, and millions of events would be heartbeats.
  scenario.network.split_one_in = trainers * ps;
  Dice faults(seed, Draw::kFault);
  draw_faults(scenario, faults);
  return scenario;
}

}  // namespace disttf::sim
