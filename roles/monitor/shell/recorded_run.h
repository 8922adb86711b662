// A run that has been written down, or still is: its records, as whoever shows it takes them.
//
// Not thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "roles/monitor/shell/record_feed.h"
#include "roles/monitor/shell/record_files.h"

namespace disttf::roles {

class RecordedRun {
 public:
  // `path`: what RecordFiles takes. All that is there is read. Throws Failure (kError) where there
  // is nothing, std::invalid_argument where something in it is wrong, and std::system_error.
  explicit RecordedRun(std::string path);

  // What has come since. What is wrong with that, or that it cannot be read, is a warning, the
  // first time: whoever looks at the run goes on.
  void read_on();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] RecordFeed& feed() noexcept { return feed_; }

 private:
  RecordReading read(BadLines bad_lines);
  void warn(const std::string& sentence);
  void set_time(nlohmann::ordered_json& record);

  std::string path_;
  RecordFiles files_;
  RecordFeed feed_;
  bool has_warned_ = false;
  // What a run that goes on from a checkpoint adds to its --metrics_file has a clock that begins at
  // 0 again. Here it goes on.
  double last_ = 0;
  double begun_ = 0;  // the newest process, after the first one
};

}  // namespace disttf::roles
