#include "run/monitor/shell/record_feed.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/monitor/core/record_line.h"
#include "run/monitor/core/run_chart.h"
#include "run/outcome.h"
#include "run/process/log.h"

namespace disttf::roles {

void RecordFeed::take(std::string_view line) {
  if (view_.take(line) && listener_) {
    listener_(view_.id(), line);
  }
}

namespace {

using OrderedJson = nlohmann::ordered_json;

}  // namespace

RecordedRun::RecordedRun(std::string path) : path_(std::move(path)), files_(path_) {
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) {
    throw Failure(kError, net::quoted(path_) + ": there is no such file or directory");
  }
  const RecordReading reading = read(BadLines::kRefuse);
  if (reading.records == 0) {
    throw Failure(kError, net::quoted(path_) +
                              " contains no records of a run; expected a --train_dir, a file of "
                              "records, or a --metrics_file");
  }
  if (reading.long_lines != 0) {
    log_warning(net::quoted(path_) + ": " + std::to_string(reading.long_lines) +
                " lines are too long for a record and were skipped");
  }
  if (reading.old_files != 0) {
    log_warning(net::quoted(path_) + ": too many files of records; the oldest " +
                std::to_string(reading.old_files) + " were skipped");
  }
}

RecordReading RecordedRun::read(BadLines bad_lines) {
  return files_.read(bad_lines, [this](const OrderedJson& record) {
    OrderedJson known = record;
    // Its times count from the start of the process.
    if (text_of_field(record, "source") == kMetricsFile) {
      set_time(known);
    }
    feed_.take(data::json_text(known));
  });
}

void RecordedRun::read_on() {
  try {
    // The file is being written, so a bad line ends nothing here; the first read is strict.
    const RecordReading reading = read(BadLines::kSkip);
    if (reading.bad_lines + reading.long_lines != 0) {
      warn("has new lines that are not records; they are skipped");
    }
  } catch (const std::system_error& error) {
    warn(std::string("cannot be read any more: ") + error.what());
  }
}

void RecordedRun::warn(const std::string& sentence) {
  // Once, since the files are read every second.
  if (!std::exchange(has_warned_, true)) {
    log_warning(net::quoted(path_) + " " + sentence);
  }
}

void RecordedRun::set_time(OrderedJson& record) {
  const double seconds = number_of(record, "time").value_or(0);
  // A smaller time than before: the run was restarted, and its file counts from 0 again.
  begun_ += seconds < last_ ? last_ : 0;
  last_ = seconds;
  record["time"] = begun_ + seconds;
}

}  // namespace disttf::roles
