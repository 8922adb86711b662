// The records of a finished or running run, as a feed for displays.
//
// Not thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "run/monitor/shell/record_feed.h"
#include "run/monitor/shell/record_files.h"

namespace disttf::roles {

class RecordedRun {
 public:
  // `path`: as for RecordFiles. Reads all present records. Throws Failure (kError) if there are
  // none, std::invalid_argument if one is malformed, and std::system_error.
  explicit RecordedRun(std::string path);

  // Reads new records. Malformed records and read errors only cause a warning, once, so that the
  // display continues.
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
  // The clock of --metrics_file restarts at 0 when a run resumes from a checkpoint. Here it
  // continues.
  double last_ = 0;
  double begun_ = 0;  // start of the newest process after the first one
};

}  // namespace disttf::roles
