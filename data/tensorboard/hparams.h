// The entries of a run in TensorBoard's hyperparameter table: its initial settings, the metrics it
// is judged by, and how it ended. They are the metadata of three tags (SummaryEvent).
//
// Pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "data/protobuf.h"

namespace disttf::data {

inline constexpr std::string_view kExperimentTag = "_hparams_/experiment";
inline constexpr std::string_view kSessionStartTag = "_hparams_/session_start_info";
inline constexpr std::string_view kSessionEndTag = "_hparams_/session_end_info";

// One setting.
struct HyperParameter {
  std::string name;
  std::variant<bool, double, std::string> value;
};

// A metric: the tag of a scalar in the same directory.
struct HyperMetric {
  std::string tag;
  std::string display_name;
  bool is_training = false;  // otherwise of the validation or the test set
};

// Declares the columns of the table.
[[nodiscard]] ProtobufMessage experiment(double wall_time,
                                         std::span<const HyperParameter> parameters,
                                         std::span<const HyperMetric> metrics);
[[nodiscard]] ProtobufMessage session_start(double wall_time,
                                            std::span<const HyperParameter> parameters);
[[nodiscard]] ProtobufMessage session_end(double wall_time, bool is_success);

}  // namespace disttf::data
