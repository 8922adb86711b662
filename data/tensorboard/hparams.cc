#include "data/tensorboard/hparams.h"

namespace disttf::data {
namespace {

// The DataType of a column, and the field of google.protobuf.Value that holds its values, by the
// variant's alternative: bool, double, text.
struct Kind {
  std::uint64_t type;
  std::uint32_t field;
};
constexpr Kind kKinds[] = {
    {.type = 2, .field = 4}, {.type = 3, .field = 2}, {.type = 1, .field = 3}};

const Kind& kind_of(const HyperParameter& parameter) { return kKinds[parameter.value.index()]; }

ProtobufMessage value_of(const HyperParameter& parameter) {
  const std::uint32_t field = kind_of(parameter).field;
  ProtobufMessage value;
  if (const auto* const flag = std::get_if<bool>(&parameter.value)) {
    value.add_number(field, *flag ? 1 : 0);
  } else if (const auto* const number = std::get_if<double>(&parameter.value)) {
    value.add_double(field, *number);
  } else {
    value.add_bytes(field, std::get<std::string>(parameter.value));
  }
  return value;
}

// HParamsPluginData: version 1, which is 0 and therefore omitted, and one of experiment 2,
// session_start_info 3, session_end_info 4.
ProtobufMessage plugin_data(std::uint32_t field, const ProtobufMessage& data) {
  return ProtobufMessage().add_message(field, data);
}

}  // namespace

// time_created_secs 3, hparam_infos 4 {name 1, type 4}, metric_infos 5 {name 1 {group 1, tag 2},
// display_name 3, dataset_type 5}
ProtobufMessage experiment(double wall_time, std::span<const HyperParameter> parameters,
                           std::span<const HyperMetric> metrics) {
  constexpr std::uint64_t kTraining = 1;
  constexpr std::uint64_t kValidation = 2;
  ProtobufMessage all;
  all.add_double(3, wall_time);
  for (const HyperParameter& parameter : parameters) {
    ProtobufMessage info;
    info.add_bytes(1, parameter.name).add_number(4, kind_of(parameter).type);
    all.add_message(4, info);
  }
  for (const HyperMetric& metric : metrics) {
    ProtobufMessage info;
    info.add_message(1, ProtobufMessage().add_bytes(2, metric.tag));
    info.add_bytes(3, metric.display_name);
    info.add_number(5, metric.is_training ? kTraining : kValidation);
    all.add_message(5, info);
  }
  return plugin_data(2, all);
}

// hparams 1, a map: {key 1, value 2}; start_time_secs 5
ProtobufMessage session_start(double wall_time, std::span<const HyperParameter> parameters) {
  ProtobufMessage start;
  for (const HyperParameter& parameter : parameters) {
    ProtobufMessage entry;
    entry.add_bytes(1, parameter.name).add_message(2, value_of(parameter));
    start.add_message(1, entry);
  }
  start.add_double(5, wall_time);
  return plugin_data(3, start);
}

ProtobufMessage session_end(double wall_time, bool is_success) {
  constexpr std::uint64_t kSuccess = 1;
  constexpr std::uint64_t kFailure = 2;
  ProtobufMessage end;
  end.add_number(1, is_success ? kSuccess : kFailure).add_double(2, wall_time);
  return plugin_data(4, end);
}

}  // namespace disttf::data
