#include "data/tensorboard/events.h"

#include <array>
#include <initializer_list>
#include <vector>

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

}  // namespace disttf::data
