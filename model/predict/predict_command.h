// `disttf predict`: prints a trained model's answers to examples on standard output. Changes
// nothing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/predict/input_range.h"
#include "storage/download/dataset_source.h"

namespace disttf::roles {

struct PredictOptions {
  std::filesystem::path model;  // as for read_model()
  // Files of examples (core/example_reader.h), folders of images, "-" for standard input.
  std::vector<std::string> inputs;
  std::optional<DataOptions> data;  // predict its test part; then `inputs` is empty
  std::filesystem::path labels;     // IDX file of labels of the only input; empty: none
  std::size_t top = 1;
  std::size_t threads = 1;
  bool json = false;
  InputRange input_range = InputRange::kByte;  // of the numbers of an image
};

// Returns kDone. Where the labels are known, the confusion matrix and the accuracy follow the
// answers; with `json` as one more object. Throws Failure as read_model() and open_dataset() do,
// with kBadData where a file does not fit the model, and with kUsage where no example is found.
[[nodiscard]] int run_predict(const PredictOptions& options);

}  // namespace disttf::roles
