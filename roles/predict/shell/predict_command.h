// `disttf predict`: what a trained model says of examples. Answers go to standard output, nothing
// is changed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "roles/download/dataset_source.h"
#include "roles/predict/core/input_range.h"

namespace disttf::roles {

struct PredictOptions {
  std::filesystem::path model;  // as read_model() has it
  // Files of examples (core/example_reader.h), folders of images, "-" for standard input.
  std::vector<std::string> inputs;
  std::optional<DataOptions> data;  // the test part of a data set, and no inputs then
  std::filesystem::path labels;     // an IDX file of labels of the one input; empty: none
  std::size_t top = 1;
  std::size_t threads = 1;
  bool json = false;
  InputRange input_range = InputRange::kByte;  // of the numbers of an image
};

// kDone. Where the examples' labels are known, the confusion matrix and the accuracy follow the
// answers; with `json` as one object more. Throws Failure: as read_model() and open_dataset() do,
// kBadData where a file of examples is not what the model takes, kUsage where there is none.
[[nodiscard]] int run_predict(const PredictOptions& options);

}  // namespace disttf::roles
