#include "roles/evaluator/best_checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "storage/checkpoint/core/checkpoint_store.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kCopiedAtOnce = std::size_t{1} << 16U;

}  // namespace

BestCheckpoint::BestCheckpoint(data::FileSystem& files, std::filesystem::path train_dir)
    : files_(&files), train_dir_(std::move(train_dir)), path_(train_dir_ / kBestDirectory) {}

void BestCheckpoint::clear() {
  // Only partial copies of an earlier process are removed; complete ones are judged again.
  std::error_code ignored;  // the directory does not exist yet
  for (const std::string& name : files_->names_in(path_, ignored)) {
    if (partial_name_from(name)) {
      data::remove_all(*files_, path_ / name);
    }
  }
}

std::vector<CheckpointName> BestCheckpoint::kept() const { return checkpoints_in(*files_, path_); }

std::optional<std::filesystem::path> BestCheckpoint::hold(const CheckpointName& name,
                                                          std::uint64_t attempt) {
  // At most one checkpoint is held: the one that is being evaluated.
  drop();
  const std::filesystem::path from = train_dir_ / to_string(name);
  std::error_code error;
  const std::vector<std::string> names = files_->names_in(from, error);
  // The run has removed it between listing and holding.
  if (error || names.empty()) {
    return std::nullopt;
  }
  data::create_directories(*files_, path_);
  id_ = {.step = name.step, .attempt = attempt};
  // A partial name: until it is published, no reader takes it for a checkpoint.
  held_ = path_ / partial_name(id_);
  data::create_directories(*files_, held_);
  for (const std::string& file : names) {
    error = take(from / file, held_ / file);
    if (error == std::errc::no_such_file_or_directory) {
      drop();
      return std::nullopt;  // it is being removed
    }
    if (error) {
      drop();
      throw std::system_error(error, "cannot keep " + (from / file).string());
    }
  }
  return held_;
}

std::error_code BestCheckpoint::take(const std::filesystem::path& from,
                                     const std::filesystem::path& to) {
  // A link costs no disk space, and the run cannot remove its file any more.
  const std::error_code error = files_->link(from, to);
  // A full disk is an error: a copy would not fit either.
  if (!error || error == std::errc::no_such_file_or_directory ||
      error == std::errc::no_space_on_device) {
    return error;
  }
  // The file system has no links, such as that of a store.
  try {
    copy(from, to);
  } catch (const std::system_error& failure) {
    return failure.code();
  }
  return {};
}

void BestCheckpoint::copy(const std::filesystem::path& from, const std::filesystem::path& to) {
  const auto source = files_->open(from);
  const auto target = files_->create(to);
  std::vector<std::byte> bytes(kCopiedAtOnce);
  for (std::uint64_t at = 0; at < source->size_bytes();) {
    const std::size_t count = source->read(at, bytes);
    if (count == 0) {
      break;  // the file has become shorter: its checksums show that
    }
    target->write({reinterpret_cast<const std::uint8_t*>(bytes.data()), count});
    at += count;
  }
  // In this order: the name must not appear before the content is durable.
  target->sync();
  target->take_name();
}

std::filesystem::path BestCheckpoint::keep() {
  // Synced first: a published checkpoint must survive a power cut.
  files_->sync_directory(held_);
  const CheckpointName name = publish_checkpoint(*files_, held_, path_, id_.step);
  // Published, so drop() must not remove it any more.
  held_.clear();
  // Last: until the new checkpoint is published, the older one must stay.
  keep_only(name);
  return path_ / to_string(name);
}

void BestCheckpoint::drop() noexcept {
  if (!held_.empty()) {
    data::remove_all(*files_, held_);
    held_.clear();
  }
}

void BestCheckpoint::keep_only(const CheckpointName& name) {
  for (const CheckpointName& each : kept()) {
    if (each != name) {
      remove_checkpoint(*files_, path_, each, id_.attempt);
    }
  }
}

std::string_view best_metric_name(BestMetric metric) noexcept {
  return kBestMetricNames[static_cast<std::size_t>(metric)];
}

std::optional<BestMetric> best_metric_from_name(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kBestMetricNames, name);
  return found == kBestMetricNames.end()
             ? std::nullopt
             : std::optional(static_cast<BestMetric>(found - kBestMetricNames.begin()));
}

std::optional<std::string> lacks_metric(BestMetric metric, const math::Evaluation& found) {
  const bool of_numbers = found.classes == 0;
  // Every kind of label has a loss; the other metrics belong to one kind.
  if (metric == BestMetric::kLoss || of_numbers == (metric != BestMetric::kAccuracy)) {
    return std::nullopt;
  }
  return "--keep_best: \"" + std::string(best_metric_name(metric)) +
         (of_numbers ? "\" is of classes, and the labels of this run are numbers: loss, "
                       "absolute_error or squared_error"
                     : "\" is of labels that are numbers, and those of this run are classes: "
                       "accuracy or loss");
}

double value_of(BestMetric metric, const math::Evaluation& found) noexcept {
  switch (metric) {
    case BestMetric::kAccuracy:
      return found.accuracy();
    case BestMetric::kLoss:
      return found.loss;
    case BestMetric::kAbsoluteError:
      return found.absolute_error;
    case BestMetric::kSquaredError:
      return found.squared_error;
  }
  return 0;
}

bool is_better(BestMetric metric, double value, double than) noexcept {
  if (std::isnan(value)) {
    return false;
  }
  return std::isnan(than) || (metric == BestMetric::kAccuracy ? value > than : value < than);
}

}  // namespace disttf::roles
