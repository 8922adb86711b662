// The feed of a run made of records: of a process, or of files.
//
// Used by the one thread that serves the page.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "run/monitor/core/run_view.h"
#include "run/monitor/shell/run_page.h"
#include "run/monitor/shell/telemetry_files.h"

namespace disttf::roles {

class RecordFeed : public RunFeed {
 public:
  // Takes a record, without its line's end. Ignores malformed ones.
  void take(std::string_view line);

  [[nodiscard]] std::string view() const override { return view_.json(); }
  [[nodiscard]] std::uint64_t newest() const override { return view_.id(); }
  // "worker:3 is 41 % slower: backward"; empty: no task is slow, or there are no measures.
  [[nodiscard]] std::string slowest() const { return view_.slowest(); }
  void subscribe(Listener listener) override { listener_ = std::move(listener); }

 private:
  RunView view_;
  Listener listener_;
};

// The records of a finished or running run, as a feed for displays.
//
// Not thread-safe.
class RecordedRun {
 public:
  // `path`: as for RecordFiles. Reads all present records. Throws Failure (kError) if there are
  // none, std::invalid_argument if one is malformed, and std::system_error.
  explicit RecordedRun(std::string path);

  // Reads new records. Malformed records and read errors only cause a warning, once, so that the
  // display continues.
  void read_on();

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
