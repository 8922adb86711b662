#include "run/example_shape.h"

#include <stdexcept>

namespace disttf::roles {

std::optional<std::string> other_examples(const RunConfig& config, std::string_view saved_json) {
  math::Shape saved;
  try {
    saved = run_config_from_json(saved_json).model.input;
  } catch (const std::invalid_argument&) {
    return std::nullopt;  // of another release
  }
  // The run goes on here: load_newest() compares the tensors as well.
  if (saved == config.model.input) {
    return std::nullopt;
  }
  return "its model takes examples of " + math::to_string(saved) + ", and those of this run are " +
         math::to_string(config.model.input) +
         "; give the data of its run or another --train_dir (a model from elsewhere gets its shape "
         "from disttf import --input and --input_layout)";
}

}  // namespace disttf::roles
