#include "roles/trainer/shell/run_data.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "run/outcome.h"

namespace disttf::roles {

math::ImageSet image_set(const data::Dataset& dataset, const data::Split& split) {
  return {.images = split.images,
          .labels = split.labels,
          .numbers = split.numbers,
          .means = dataset.means,
          .scales = dataset.scales,
          .targets = split.targets,
          .target_mean = dataset.target_mean,
          .target_scale = dataset.target_scale};
}

ExampleKind kind_of_examples(const data::Dataset& dataset) {
  return {.shape = {.height = dataset.shape.height,
                    .width = dataset.shape.width,
                    .channels = dataset.shape.channels},
          .numbers = !dataset.train.numbers.empty(),
          .labels_are_numbers = !dataset.train.targets.empty(),
          .classes = std::max<std::size_t>(dataset.classes, 1)};
}

ExampleFacts facts_of(const data::Dataset& dataset) {
  // Every checkpoint contains them, so they are left out if they are longer than this.
  constexpr std::size_t kMostNameBytes = std::size_t{1} << 20U;
  const auto names = [](std::span<const std::string_view> from) {
    std::size_t bytes = 0;
    for (const std::string_view name : from) {
      bytes += name.size();
    }
    return bytes > kMostNameBytes ? std::vector<std::string>()
                                  : std::vector<std::string>(from.begin(), from.end());
  };
  return {.classes = names(dataset.class_names),
          .columns = names(dataset.column_names),
          .label = std::string(dataset.label_name),
          .means = {dataset.means.begin(), dataset.means.end()},
          .scales = {dataset.scales.begin(), dataset.scales.end()},
          .target_mean = dataset.target_mean,
          .target_scale = dataset.target_scale};
}

void check_data(const RunConfig& run, const data::Dataset& own, const DataOptions& options,
                std::string_view whose) {
  // First: a program's data is not that of any task.
  if (run.model.is_program()) {
    throw Failure(kUsage,
                  "--program: missing; the run trains a user's program, so each of its trainers is "
                  "started with --program -- COMMAND");
  }
  // The checksum decides: two data sets of one name may differ.
  if (own.name != run.dataset || own.checksum != run.data_checksum) {
    throw Failure(kBadData, std::string(options.own ? "--data" : "--dataset") + ": " +
                                std::string(whose) + " " + run.dataset + " (SHA-256 " +
                                run.data_checksum.substr(0, 12) + "), this task has " + own.name +
                                " (SHA-256 " + own.checksum.substr(0, 12) + ")");
  }
  try {
    validate_for(kind_of_examples(own), run);
  } catch (const std::invalid_argument& error) {
    throw Failure(kError,
                  std::string("the chief published what this version cannot use: ") + error.what());
  }
}

}  // namespace disttf::roles
