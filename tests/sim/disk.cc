#include "tests/sim/disk.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "storage/checkpoint/core/checkpoint_index.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "tests/sim/network.h"

namespace disttf::sim {
namespace {

using data::test::PowerCut;
using std::chrono::seconds;

constexpr const char* kTrainDir = "/train";
// The file system's date when virtual time begins.
constexpr seconds kDate{1'700'000'000};

// Returns the checksum of that range of the part.
std::uint64_t sum_of_part(const roles::ShardView& view, const math::Range& range) {
  const std::size_t begin = range.begin - view.range.begin;
  std::uint64_t sum = sum_of(std::as_bytes(view.parameters.subspan(begin, range.size())));
  for (const roles::ShardView::Tensor& tensor : view.optimizer) {
    sum = (sum * 0x9E3779B97F4A7C15U) ^
          sum_of(std::as_bytes(tensor.values.subspan(begin, range.size())));
  }
  return sum;
}

}  // namespace

roles::ShardView view_of(const roles::TrainingState& state) {
  roles::ShardView view{.range = {.begin = 0, .end = state.parameters.size()},
                        .parameters = state.parameters.span(),
                        .optimizer = {}};
  for (const roles::TrainingState::Tensor& tensor : state.optimizer) {
    view.optimizer.push_back({.name = tensor.name, .values = tensor.values.span()});
  }
  return view;
}

SimulatedDisk::SimulatedDisk(World& world, const roles::RunConfig& config, std::size_t ps)
    : world_(world),
      ps_(ps),
      config_json_(roles::to_json(config)),
      layout_(math::layout_of(config.model)),
      store_(files_, kTrainDir) {}

void SimulatedDisk::set_time() {
  const auto passed = std::chrono::duration_cast<seconds>(world_.now() - kBeginning);
  files_.set_now((kDate + passed + clock_step_).count());
}

roles::CheckpointStore SimulatedDisk::open() { return {files_, kTrainDir}; }

void SimulatedDisk::use(const std::function<void()>& what) {
  set_time();
  std::exception_ptr thrown;
  try {
    what();
  } catch (const PowerCut&) {
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!files_.has_power()) {  // without power the process is dead, so its exception does not matter
    const bool silently = std::exchange(kill_, std::nullopt).value_or(false);
    if (silently) {
      lose_power();
    } else {
      world_.mark(Mark::kKilledAtDisk);
      files_.power_on();
      check();
    }
    throw KilledAtDisk{.silently = silently};
  }
  if (thrown) {
    world_.mark(Mark::kDiskFailed);
    std::rethrow_exception(thrown);
  }
}

void SimulatedDisk::is_written(std::uint64_t step, const roles::ShardView& part) {
  written_[{step, part.range.begin, part.range.end}].insert(sum_of_part(part, part.range));
}

bool SimulatedDisk::was_written(std::uint64_t step, const roles::ShardView& all,
                                const math::Range& range) const {
  const auto found = written_.find({step, range.begin, range.end});
  return found != written_.end() && found->second.contains(sum_of_part(all, range));
}

void SimulatedDisk::was_saved(std::uint64_t step) {
  world_.mark(Mark::kCheckpointSaved);
  saved_ = std::max(saved_, step);
}

void SimulatedDisk::shard_was_reported(const roles::SaveId& id, const std::string& file) {
  const std::vector<data::test::DiskState::Node>& nodes = files_.state().nodes;
  const auto child = [&nodes](std::size_t parent, const data::test::DiskState::Names& names,
                              const std::string& name) -> std::size_t {
    const auto found = names.find(name);
    return nodes[parent].is_directory && found != names.end() ? found->second : 0;
  };
  // The name of a save's directory need not be durable: it is renamed when the save is committed.
  const std::size_t root = child(0, nodes[0].names, std::string(kTrainDir).substr(1));
  const std::size_t save = child(root, nodes[root].names, roles::partial_name(id));
  const std::size_t shard = child(save, nodes[save].durable_names, file);
  if (shard == 0 || !nodes[shard].is_synced) {
    world_.violate(file + " of step " + std::to_string(id.step) +
                   " was reported as written, and a power cut could take it (invariant 19)");
  }
}

std::vector<roles::CheckpointName> SimulatedDisk::names() {
  return roles::checkpoints_in(files_, store_.path());
}

roles::CheckpointReader SimulatedDisk::open(const roles::CheckpointName& name) {
  return {files_, store_.path() / roles::to_string(name)};
}

void SimulatedDisk::was_read(const std::string& who, const roles::TrainingState& state) {
  if (!was_saved(state)) {
    world_.violate(who + " has read step " + std::to_string(state.step) +
                   ", which is no checkpoint that was saved (invariant 19)");
  }
}

void SimulatedDisk::was_refused(const std::string& who, const roles::CheckpointName& name) {
  try {
    static_cast<void>(open(name).read());
  } catch (const std::exception&) {
    return;
  }
  world_.violate(who + " has refused " + roles::to_string(name) + ", which is whole");
}

bool SimulatedDisk::was_saved(const roles::TrainingState& state) const {
  const roles::ShardView all = view_of(state);
  bool is_whole = true;
  for (std::size_t index = 0; index < ps_; ++index) {
    is_whole =
        is_whole && was_written(state.step, all, math::shard_range(layout_.size(), index, ps_));
  }
  return is_whole || was_written(state.step, all, all.range);
}

std::optional<roles::TrainingState> SimulatedDisk::newest() {
  set_time();
  auto loaded = store_.load_newest(
      layout_, [this](const std::string& warning) { world_.log("warning: " + warning); });
  check(loaded);
  if (!loaded) {
    return std::nullopt;
  }
  world_.mark(Mark::kRestoredFromDisk);
  return std::move(loaded->state);
}

void SimulatedDisk::check() {
  if (is_away_) {
    return;
  }
  check(store_.load_newest(layout_, [](const std::string& /*warning*/) {}));
}

void SimulatedDisk::check(const std::optional<roles::LoadedCheckpoint>& loaded) {
  const std::uint64_t step = loaded ? loaded->state.step : 0;
  if (step < saved_) {
    world_.violate("step " + std::to_string(saved_) +
                   " was saved, and the newest that can be read is of step " +
                   std::to_string(step) + " (invariant 19)");
    return;
  }
  if (!loaded) {
    return;
  }
  if (!was_saved(loaded->state)) {
    world_.violate("the checkpoint of step " + std::to_string(step) +
                   " is none that was saved (invariant 19)");
  }
}

void SimulatedDisk::kill_at(std::size_t operation, bool silently) {
  kill_ = silently;
  files_.cut_power_at(operation);
}

void SimulatedDisk::fail_at(std::size_t operation, std::errc error, std::size_t times) {
  files_.fail_at(operation, error, times);
}

void SimulatedDisk::lose_power() {
  world_.mark(Mark::kPowerCut);
  const std::uint64_t cut = ++cuts_;
  std::uint64_t choices = 0;
  // Some power cuts lose all or nothing of what was not synced.
  const std::uint64_t bias = world_.below(4, Draw::kDisk, cut, choices++);
  files_.power_on([&](std::size_t ways) -> std::size_t {
    const std::uint64_t drawn = world_.below(ways, Draw::kDisk, cut, choices++);
    return bias == 0 ? 0 : bias == 1 ? std::min<std::size_t>(1, ways - 1) : drawn;
  });
  check();
}

bool SimulatedDisk::unmount() {
  if (unmounted_) {
    return false;
  }
  world_.mark(Mark::kUnmounted);
  unmounted_ = files_.mount({});
  saved_below_ = std::exchange(saved_, 0);
  return true;
}

void SimulatedDisk::mount() {
  if (unmounted_) {
    static_cast<void>(files_.mount(*std::exchange(unmounted_, std::nullopt)));
    saved_ = saved_below_;
    check();
  }
}

bool SimulatedDisk::go_away() {
  if (is_away_) {
    return false;
  }
  world_.mark(Mark::kStoreAway);
  is_away_ = true;
  files_.set_away(true);
  return true;
}

void SimulatedDisk::come_back() {
  is_away_ = false;
  files_.set_away(false);
  check();
}

bool SimulatedDisk::rot(std::uint64_t which) {
  if (is_away_) {
    return false;
  }
  std::vector<roles::CheckpointName> whole;
  for (const roles::CheckpointName& name : roles::checkpoints_in(files_, store_.path())) {
    try {
      static_cast<void>(
          roles::CheckpointReader(files_, store_.path() / roles::to_string(name)).read());
      whole.push_back(name);
    } catch (const std::exception&) {
      continue;  // damaged already
    }
  }
  if (whole.size() < 2) {
    return false;
  }
  world_.mark(Mark::kRot);
  const roles::CheckpointName victim = whole[which % whole.size()];
  const auto directory = store_.path() / roles::to_string(victim);
  std::error_code error;
  std::vector<std::string> names = files_.names_in(directory, error);
  std::ranges::sort(names);
  files_.rot(directory / names.at(which / whole.size() % names.size()));
  // A checkpoint that could not be made durable is intact, too, but was not reported as saved.
  std::uint64_t left = 0;
  for (const roles::CheckpointName& name : whole) {
    if (name != victim && name.step <= saved_) {
      left = std::max(left, name.step);
    }
  }
  saved_ = std::min(saved_, left);
  check();
  return true;
}

}  // namespace disttf::sim
