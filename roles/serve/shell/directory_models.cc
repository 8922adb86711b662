#include "roles/serve/shell/served_models.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <functional>
#include <ranges>
#include <system_error>
#include <utility>

#include "data/posix_file_system.h"
#include "net/wire/text.h"
#include "roles/checkpoint/core/checkpoint_reader.h"
#include "roles/model/shell/model_files.h"
#include "roles/process/log.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using FilePath = std::filesystem::path;

// What changes when a file of the directory does: names, sizes and times of all of them.
std::uint64_t stamp_of(const FilePath& directory) {
  std::uint64_t stamp = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) != 0) {
      continue;
    }
    // A sum: entries come in any order.
    stamp += std::hash<std::string>()(fmt::format("{} {} {} {}", entry.path().filename().string(),
                                                  status.st_size, status.st_mtim.tv_sec,
                                                  status.st_mtim.tv_nsec));
  }
  return stamp;
}

// "00000123" is 123.
std::optional<std::uint64_t> version_in(const std::string& name) {
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  const bool is_one = error == std::errc() && end == name.data() + name.size();
  return is_one ? std::optional(version) : std::nullopt;
}

// Throws Failure where its weights are no numbers, or what it says of a row is none.
void try_out(LoadedModel& loaded) {
  const auto is_finite = [](float each) { return std::isfinite(each); };
  if (!std::ranges::all_of(loaded.model.parameters.span(), is_finite)) {
    throw Failure(kBadData, loaded.path.string() + ": some of its weights are not finite numbers");
  }
  for (const std::unique_ptr<math::Predictor>& each : loaded.predictors) {
    std::vector<float> outputs(each->outputs());
    const std::vector<float> zeros(each->inputs());
    each->predict_numbers(zeros, outputs);
    if (!std::ranges::all_of(outputs, is_finite)) {
      throw Failure(kBadData, loaded.path.string() +
                                  ": what it says of a row of zeros is not a "
                                  "number");
    }
  }
}

}  // namespace

std::shared_ptr<const LoadedModel> Shelf::of_version(std::uint64_t version) const {
  const auto found = std::ranges::find_if(
      models, [version](const auto& each) { return each->version == version; });
  return found == models.end() ? nullptr : *found;
}

ServedModels::ServedModels(FilePath directory, std::size_t keep, std::size_t threads,
                           std::size_t max_rows, ServeMeters& meters)
    : directory_(std::move(directory)),
      keep_(keep),
      threads_(threads),
      max_rows_(max_rows),
      meters_(meters) {}

std::shared_ptr<const Shelf> ServedModels::shelf() const {
  const std::scoped_lock lock(mutex_);
  return shelf_;
}

// The newest first, each version once.
std::vector<ServedModels::Candidate> ServedModels::candidates() const {
  data::PosixFileSystem disk;
  std::vector<Candidate> found;
  if (std::filesystem::exists(directory_ / kIndexName)) {
    return {{.path = directory_, .version = std::nullopt, .is_checkpoint = true}};
  }
  for (const CheckpointName& name : checkpoints_in(disk, directory_)) {
    if (found.empty() || found.back().version != name.step) {  // the highest edition comes first
      found.push_back(
          {.path = directory_ / to_string(name), .version = name.step, .is_checkpoint = true});
    }
  }
  bool is_empty = true;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    is_empty = false;
    const auto version = version_in(entry.path().filename().string());
    if (version && entry.is_directory()) {
      found.push_back({.path = entry.path(), .version = version, .is_checkpoint = false});
    }
  }
  if (found.empty() && !is_empty) {
    return {{.path = directory_, .version = std::nullopt, .is_checkpoint = false}};
  }
  std::ranges::sort(found, std::ranges::greater(), &Candidate::version);
  return found;
}

std::shared_ptr<const LoadedModel> ServedModels::loaded(const Candidate& candidate,
                                                        std::uint64_t stamp) const {
  const std::shared_ptr<const Shelf> now = shelf();
  for (const std::shared_ptr<const LoadedModel>& each : now->models) {
    if (each->path == candidate.path && each->files_stamp == stamp) {
      return each;
    }
  }
  return nullptr;
}

std::unique_ptr<LoadedModel> ServedModels::read(const Candidate& candidate) const {
  auto loaded = std::make_unique<LoadedModel>();
  loaded->path = candidate.path;
  loaded->model =
      candidate.is_checkpoint ? read_checkpoint_model(candidate.path) : read_model(candidate.path);
  loaded->version = candidate.version.value_or(loaded->model.step);
  for (std::size_t i = 0; i < threads_; ++i) {
    loaded->predictors.push_back(predictor_of(loaded->model, max_rows_));
  }
  try_out(*loaded);
  return loaded;
}

// nullptr: it is refused, now or before.
std::shared_ptr<const LoadedModel> ServedModels::load(const Candidate& candidate,
                                                      std::uint64_t stamp) {
  const auto known = std::ranges::find(refused_, candidate.path, &Refused::path);
  if (known != refused_.end() && known->files_stamp == stamp &&
      std::chrono::steady_clock::now() < known->again) {
    return nullptr;
  }
  try {
    std::unique_ptr<LoadedModel> loaded = read(candidate);
    loaded->files_stamp = stamp;
    meters_.loaded.add();
    std::erase_if(refused_, [&](const Refused& each) { return each.path == candidate.path; });
    return loaded;
  } catch (const Failure& failure) {
    // A directory without any model is no wrong one: the first may be on its way.
    if (candidate.path == directory_ && failure.exit_code() == kUsage) {
      if (std::exchange(awaited_, failure.what()) != failure.what()) {
        log_info(awaited_);
      }
      return nullptr;
    }
    refuse(candidate, stamp, failure.what(), /*may_pass=*/false);
  } catch (const DamagedCheckpoint& damaged) {
    refuse(candidate, stamp, damaged.what(), /*may_pass=*/false);
  } catch (const std::exception& error) {
    refuse(candidate, stamp, error.what(), /*may_pass=*/true);
  }
  return nullptr;
}

// `may_pass`: the files may be good, and their disk or this machine may not be.
void ServedModels::refuse(const Candidate& candidate, std::uint64_t stamp,
                          const std::string& sentence, bool may_pass) {
  using Time = std::chrono::steady_clock;
  constexpr std::chrono::seconds kAgain{10};
  meters_.refused.add();
  auto known = std::ranges::find(refused_, candidate.path, &Refused::path);
  if (known == refused_.end()) {
    known = refused_.insert(known, {.path = candidate.path, .again = {}, .status = {}});
  }
  if (known->status.sentence != sentence) {
    ++refusals_;
    log_warning("not served: " + sentence);
  }
  known->files_stamp = stamp;
  known->again = may_pass ? Time::now() + kAgain : Time::time_point::max();
  known->status = {
      .version = candidate.version.value_or(0), .is_available = false, .sentence = sentence};
}

void ServedModels::look() {
  if (!std::filesystem::is_directory(directory_)) {
    throw Failure(kUsage, net::quoted(directory_.string()) + " is not a directory");
  }
  const std::vector<Candidate> found = candidates();
  const std::uint64_t refusals_before = refusals_;
  const std::size_t forgotten = std::erase_if(refused_, [&found](const Refused& each) {
    return std::ranges::find(found, each.path, &Candidate::path) == found.end();
  });
  std::vector<std::shared_ptr<const LoadedModel>> models;
  bool is_other = forgotten > 0;
  for (const Candidate& each : found) {
    if (models.size() == keep_) {
      break;
    }
    // Before it is read: what changes meanwhile is seen the next time.
    const std::uint64_t stamp = stamp_of(each.path);
    std::shared_ptr<const LoadedModel> model = loaded(each, stamp);
    if (model == nullptr) {
      model = load(each, stamp);
      is_other = is_other || model != nullptr;
    }
    if (model != nullptr) {
      models.push_back(std::move(model));
    }
  }
  is_other = is_other || refusals_ != refusals_before;
  const std::shared_ptr<const Shelf> now = shelf();
  if (models.empty()) {
    models = now->models;  // what answers goes on where nothing else does
  }
  if (is_other || models.size() != now->models.size()) {
    publish(std::move(models));
  }
}

void ServedModels::publish(std::vector<std::shared_ptr<const LoadedModel>> models) {
  auto next = std::make_shared<Shelf>();
  next->models = std::move(models);
  for (const Refused& each : refused_) {
    next->refused.push_back(each.status);
  }
  const std::shared_ptr<const LoadedModel> newest = next->newest();
  const std::shared_ptr<const Shelf> before = shelf();
  if (newest != nullptr && newest != before->newest()) {
    meters_.version.set(static_cast<double>(newest->version));
    log_info(fmt::format(
        "Version {} answers now, {} of {}, weights {:.8}{}", newest->version,
        math::describe(newest->model.config.model), net::one_line(newest->model.config.dataset),
        newest->model.weights_sha256,
        before->models.empty() ? "" : fmt::format("; before, {} did", before->newest()->version)));
  }
  {
    const std::scoped_lock lock(mutex_);
    shelf_ = std::move(next);
  }
  number_.fetch_add(1, std::memory_order_release);
}

}  // namespace disttf::roles
