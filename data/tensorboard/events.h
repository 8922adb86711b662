// The events that TensorBoard reads, as bytes: protocol buffers of the message Event, each of which
// becomes a record of an event file (data/tensorboard/event_file.h).
//
//   wall_time 1, seconds since the epoch; step 2; and one of file_version 3, graph_def 4, summary
//   5, session_log 7; source_metadata 10 of the first event of a file
//
// What is shown, and by which of TensorBoard's plugins, the metadata of a summary's value say. They
// count in the first value of a tag that a reader meets, so every value has them: any file may be
// the first that is read.
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

// What a file begins with. Of an older version TensorBoard would throw away what is out of order.
[[nodiscard]] std::string file_version_event(double wall_time);
// `time.step`: the first one that is written from here on; what was written of it and later ones
// before holds no more.
[[nodiscard]] std::string session_start_event(const EventTime& time);
// `graph`: a GraphDef (data/tensorboard/graph.h).
[[nodiscard]] std::string graph_event(const EventTime& time, std::string_view graph);

// Values of one step. Each tag at most once: of several at one step TensorBoard may keep the last.
class SummaryEvent {
 public:
  // Behind which a tag, a float32.
  void add_scalar(std::string_view tag, double value);
  void add_histogram(std::string_view tag, std::span<const HistogramBucket> buckets);
  // PNG files, all of one size.
  void add_images(std::string_view tag, std::size_t width, std::size_t height,
                  std::span<const std::string> pngs);
  void add_text(std::string_view tag, std::string_view markdown);
  // All of it is in the metadata: data/tensorboard/hparams.h.
  void add_hparams(std::string_view tag, const ProtobufMessage& plugin_data);

  [[nodiscard]] bool is_empty() const noexcept { return summary_.bytes().empty(); }
  [[nodiscard]] std::string event(const EventTime& time) const;

 private:
  void add(std::string_view tag, std::string_view plugin, std::uint64_t data_class,
           const ProtobufMessage& tensor, std::string_view content = {});

  ProtobufMessage summary_;
};

}  // namespace disttf::data
