#include "data/tensorboard/events.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <new>
#include <vector>

#include "data/protobuf.h"

namespace disttf::data {
namespace {

// DataClass
constexpr std::uint64_t kScalar = 1;
constexpr std::uint64_t kTensor = 2;
constexpr std::uint64_t kBlobs = 3;

// DataType
constexpr std::uint64_t kFloat = 1;
constexpr std::uint64_t kDouble = 2;
constexpr std::uint64_t kString = 7;

ProtobufMessage event_of(const EventTime& time) {
  ProtobufMessage event;
  event.add_double(1, time.wall_time);
  // 0 is the default of the format and is omitted.
  if (time.step != 0) {
    event.add_number(2, time.step);
  }
  return event;
}

// dtype 1, tensor_shape 2 {dim 2 {size 1}}; the caller adds the values.
ProtobufMessage tensor(std::uint64_t type, std::initializer_list<std::size_t> shape) {
  ProtobufMessage sizes;
  for (const std::size_t size : shape) {
    sizes.add_message(2, ProtobufMessage().add_number(1, size));
  }
  return ProtobufMessage().add_number(1, type).add_message(2, sizes);
}

}  // namespace

std::string file_version_event(double wall_time) {
  ProtobufMessage event;
  event.add_double(1, wall_time).add_bytes(3, "brain.Event:2");
  event.add_message(10, ProtobufMessage().add_bytes(1, "disttf"));
  return event.bytes();
}

std::string session_start_event(const EventTime& time) {
  constexpr std::uint64_t kStart = 1;
  return event_of(time).add_message(7, ProtobufMessage().add_number(1, kStart)).bytes();
}

std::string graph_event(const EventTime& time, std::string_view graph) {
  return event_of(time).add_bytes(4, graph).bytes();
}

// tag 1, tensor 8, metadata 9 {plugin_data 1 {plugin_name 1, content 2}, data_class 4}
void SummaryEvent::add(std::string_view tag, std::string_view plugin, std::uint64_t data_class,
                       const ProtobufMessage& tensor, std::string_view content) {
  ProtobufMessage plugin_data;
  plugin_data.add_bytes(1, plugin);
  if (!content.empty()) {
    plugin_data.add_bytes(2, content);
  }
  ProtobufMessage metadata;
  metadata.add_message(1, plugin_data).add_number(4, data_class);
  ProtobufMessage value;
  value.add_bytes(1, tag).add_message(8, tensor).add_message(9, metadata);
  summary_.add_message(1, value);
}

void SummaryEvent::add_scalar(std::string_view tag, double value) {
  // The scalars plugin expects float32.
  const std::array<float, 1> values = {static_cast<float>(value)};
  add(tag, "scalars", kScalar, tensor(kFloat, {}).add_floats(5, values));
}

void SummaryEvent::add_histogram(std::string_view tag, std::span<const HistogramBucket> buckets) {
  std::vector<double> values;
  for (const HistogramBucket& bucket : buckets) {
    values.insert(values.end(), {bucket.left, bucket.right, bucket.count});
  }
  add(tag, "histograms", kTensor, tensor(kDouble, {buckets.size(), 3}).add_doubles(6, values));
}

void SummaryEvent::add_images(std::string_view tag, std::size_t width, std::size_t height,
                              std::span<const std::string> pngs) {
  // The plugin expects width and height as the first two strings.
  ProtobufMessage images = tensor(kString, {pngs.size() + 2});
  images.add_bytes(8, std::to_string(width)).add_bytes(8, std::to_string(height));
  for (const std::string& png : pngs) {
    images.add_bytes(8, png);
  }
  add(tag, "images", kBlobs, images);
}

void SummaryEvent::add_text(std::string_view tag, std::string_view markdown) {
  add(tag, "text", kTensor, tensor(kString, {}).add_bytes(8, markdown));
}

void SummaryEvent::add_hparams(std::string_view tag, const ProtobufMessage& plugin_data) {
  add(tag, "hparams", kTensor, tensor(kFloat, {0}), plugin_data.bytes());
}

std::string SummaryEvent::event(const EventTime& time) const {
  return event_of(time).add_message(5, summary_).bytes();
}

std::vector<HistogramBucket> histogram(std::span<const float> values) {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  std::size_t finite = 0;
  for (const float value : values) {
    if (std::isfinite(value)) {
      least = std::min(least, static_cast<double>(value));
      greatest = std::max(greatest, static_cast<double>(value));
      ++finite;
    }
  }
  if (finite == 0) {
    return {};
  }
  std::vector<HistogramBucket> buckets(kHistogramBuckets);
  const double width = (greatest - least) / static_cast<double>(buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i].left = least + width * static_cast<double>(i);
    buckets[i].right =
        // Exactly the largest value, which the sum can miss by a rounding error.
        i + 1 == buckets.size() ? greatest : least + width * static_cast<double>(i + 1);
  }
  // All values are equal, and the division below would be 0 / 0.
  if (width == 0) {
    buckets.back().count = static_cast<double>(finite);
    return buckets;
  }
  for (const float value : values) {
    if (std::isfinite(value)) {
      const double place = (static_cast<double>(value) - least) / width;
      // The largest value itself belongs to the last bucket.
      buckets[std::min(static_cast<std::size_t>(place), buckets.size() - 1)].count += 1;
    }
  }
  return buckets;
}

namespace {

// AttrValue: s 2, text; or list 1 {shape 7 {dim 2 {size 1}}}.
ProtobufMessage shapes(std::span<const std::int64_t> shape) {
  ProtobufMessage sizes;
  for (const std::int64_t size : shape) {
    sizes.add_message(2, ProtobufMessage().add_number(1, static_cast<std::uint64_t>(size)));
  }
  return ProtobufMessage().add_message(1, ProtobufMessage().add_message(7, sizes));
}

// attr 5, a map: {key 1, value 2}
void add_attribute(ProtobufMessage& node, std::string_view name, const ProtobufMessage& value) {
  node.add_message(5, ProtobufMessage().add_bytes(1, name).add_message(2, value));
}

}  // namespace

// node 1 {name 1, op 2, input 3, device 4, attr 5}, versions 4 {producer 1}
std::string graph_def(std::span<const GraphNode> nodes) {
  constexpr std::uint64_t kProducer = 22;  // TensorFlow 1's version; readers accept any
  ProtobufMessage graph;
  for (const GraphNode& each : nodes) {
    ProtobufMessage node;
    node.add_bytes(1, each.name).add_bytes(2, each.op);
    for (const std::string& input : each.inputs) {
      node.add_bytes(3, input);
    }
    node.add_bytes(4, each.device);
    add_attribute(node, "_output_shapes", shapes(each.shape));
    for (const auto& [name, text] : each.attributes) {
      add_attribute(node, name, ProtobufMessage().add_bytes(2, text));
    }
    graph.add_message(1, node);
  }
  return graph.add_message(4, ProtobufMessage().add_number(1, kProducer)).bytes();
}

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

std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t height, std::size_t width,
                       std::size_t channels) {
  assert(pixels.size() == height * width * channels);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = file.size();
  // An image in memory can fail only for lack of memory.
  if (png_image_write_to_memory(&image, file.data(), &size, /*convert_to_8_bit=*/0, pixels.data(),
                                /*row_stride=*/0, nullptr) == 0) {
    throw std::bad_alloc();
  }
  file.resize(size);
  return file;
}

}  // namespace disttf::data
