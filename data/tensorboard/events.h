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
#include <span>
#include <string>
#include <string_view>

#include "data/protobuf.h"
#include "data/tensorboard/histogram.h"

namespace disttf::data {

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
// `graph`: a GraphDef (data/tensorboard/graph.h).
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
  // Adds hyperparameters, whose content is entirely in the metadata (data/tensorboard/hparams.h).
  void add_hparams(std::string_view tag, const ProtobufMessage& plugin_data);

  [[nodiscard]] bool is_empty() const noexcept { return summary_.bytes().empty(); }
  [[nodiscard]] std::string event(const EventTime& time) const;

 private:
  void add(std::string_view tag, std::string_view plugin, std::uint64_t data_class,
           const ProtobufMessage& tensor, std::string_view content = {});

  ProtobufMessage summary_;
};

}  // namespace disttf::data
