// Encodes the events that TensorBoard reads: protocol buffers of the message Event, each of which
// becomes a record of an event file (data/tensorboard/event_file.h).
//
//   wall_time 1, seconds since the epoch; step 2; and one of file_version 3, graph_def 4, summary
//   5, session_log 7; source_metadata 10 of the first event of a file
//
// The metadata of a summary value selects the TensorBoard plugin that shows it. Readers use the
// metadata of the first value of a tag that they see, and any file may be the first one read, so
// every value carries them.
//
// Pure values and functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/protobuf.h"

namespace disttf::data {

// Histograms for TensorBoard: the number of values in each of several intervals of equal width.

// The count of values in [left, right); the last bucket includes its right end.
struct HistogramBucket {
  double left = 0;
  double right = 0;
  double count = 0;
};

// The same number as TensorBoard's own writers use.
inline constexpr std::size_t kHistogramBuckets = 30;

// Distributes the finite values over kHistogramBuckets, from the least to the greatest. If all are
// equal, the last bucket holds them and every bucket has zero width. Returns no buckets if there
// are no finite values.
[[nodiscard]] std::vector<HistogramBucket> histogram(std::span<const float> values);

struct EventTime {
  double wall_time = 0;    // seconds since the epoch
  std::uint64_t step = 0;  // below 2^63
};

// Returns the first event of a file. With an older version TensorBoard would discard events that
// are out of order.
[[nodiscard]] std::string file_version_event(double wall_time);
// Marks the start of a session at `time.step`, its first step: earlier events with that step or a
// later one become invalid.
[[nodiscard]] std::string session_start_event(const EventTime& time);
// `graph`: a GraphDef (data/tensorboard/events.h).
[[nodiscard]] std::string graph_event(const EventTime& time, std::string_view graph);

// The values of one step. Each tag at most once: TensorBoard may keep only the last of several at
// one step.
class SummaryEvent {
 public:
  // Adds a float32 value.
  void add_scalar(std::string_view tag, double value);
  void add_histogram(std::string_view tag, std::span<const HistogramBucket> buckets);
  // Adds PNG files, all of one size.
  void add_images(std::string_view tag, std::size_t width, std::size_t height,
                  std::span<const std::string> pngs);
  void add_text(std::string_view tag, std::string_view markdown);
  // Adds hyperparameters, whose content is entirely in the metadata (data/tensorboard/events.h).
  void add_hparams(std::string_view tag, const ProtobufMessage& plugin_data);

  [[nodiscard]] bool is_empty() const noexcept { return summary_.bytes().empty(); }
  [[nodiscard]] std::string event(const EventTime& time) const;

 private:
  void add(std::string_view tag, std::string_view plugin, std::uint64_t data_class,
           const ProtobufMessage& tensor, std::string_view content = {});

  ProtobufMessage summary_;
};

// A graph of operations in TensorBoard's form: a TensorFlow GraphDef.
inline constexpr std::int64_t kAnySize = -1;

struct GraphNode {
  std::string name;                 // "hid/MatMul": the part before a slash is drawn as a box
  std::string op;                   // "MatMul"
  std::vector<std::string> inputs;  // names of nodes
  std::string device;               // "/job:ps/task:0"
  std::vector<std::int64_t> shape;  // of the output; kAnySize: the batch size
  std::map<std::string, std::string> attributes{};
};

[[nodiscard]] std::string graph_def(std::span<const GraphNode> nodes);

// The entries of a run in TensorBoard's hyperparameter table: its initial settings, the metrics it
// is judged by, and how it ended. They are the metadata of three tags (SummaryEvent).
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

// Encodes bytes as a PNG image.

// Returns the PNG of `pixels`: [height, width, channels], 8 bits each; 1 channel is grey, 3 are
// red, green, blue. Throws std::bad_alloc. REQUIRES: height > 0, width > 0; pixels.size() is their
// product.
[[nodiscard]] std::string encode_png(std::span<const std::uint8_t> pixels, std::size_t height,
                                     std::size_t width, std::size_t channels);

}  // namespace disttf::data
