// What TensorBoard's table of hyperparameters shows of a run: the settings it began with, which
// figures it is judged by, and how it ended. They travel as metadata of three tags (SummaryEvent).
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

// A figure: the tag of a scalar of the same directory.
struct HyperMetric {
  std::string tag;
  std::string display_name;
  bool is_training = false;  // else of the validation set, or the test's
};

// Which columns the table has.
[[nodiscard]] ProtobufMessage experiment(double wall_time,
                                         std::span<const HyperParameter> parameters,
                                         std::span<const HyperMetric> metrics);
[[nodiscard]] ProtobufMessage session_start(double wall_time,
                                            std::span<const HyperParameter> parameters);
[[nodiscard]] ProtobufMessage session_end(double wall_time, bool is_success);

}  // namespace disttf::data
