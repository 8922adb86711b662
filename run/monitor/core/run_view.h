// The view of a run: the aggregate of its records (run/monitor/core/record.h). The page, the
// terminal and programs read json(); docs/records.md has its form. A view stays small however long
// the run is: it keeps at most kMostPoints evenly spaced points per series, and the newest events.
//
// Values; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::roles {

// Values by step. A full series drops every second point.
class Series {
 public:
  static constexpr std::size_t kMostPoints = 2000;

  void add(std::uint64_t step, double time, double value);
  // Inserts a late value in the order of steps, unless its step exists.
  void put(std::uint64_t step, double time, double value);
  // Removes steps that a resumed run repeats.
  void drop_from(std::uint64_t step);
  [[nodiscard]] bool empty() const noexcept { return samples_.empty(); }
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  struct Sample {
    std::uint64_t step = 0;
    double time = 0;
    double value = 0;
  };
  void thin();

  std::vector<Sample> samples_;
  std::uint64_t stride_ = 1;  // one out of so many values is kept
  std::uint64_t skipped_ = 0;
};

class RunView {
 public:
  static constexpr std::size_t kMostEvents = 500;
  static constexpr std::size_t kMostCheckpoints = 100;
  static constexpr std::size_t kMostTasks = 10'000;
  static constexpr std::size_t kMostPictures = 100;
  static constexpr std::size_t kMostClasses = 256;
  static constexpr std::size_t kMostSeries = 128;

  using Json = nlohmann::ordered_json;

  // Takes one record, without its line end. Ignores malformed records and unknown kinds. False:
  // nothing has changed.
  bool take(std::string_view line);
  // The number of records taken.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  // One line, without its end.
  [[nodiscard]] std::string json() const;

  // "worker:3 is 41 % slower: backward"; empty: no task is slow, or there are no measures.
  [[nodiscard]] std::string slowest() const;

 private:
  void take_run(const Json& record);
  void take_step(const Json& record);
  void take_evaluation(const Json& record);
  void take_confusion(const Json& record);
  void take_task(const Json& record);
  void take_picture(const Json& record);
  void add(const char* series, const Json& record, const Json& value);
  // Adds a user's program's `numbers` to series named `prefix` and their name.
  void add_numbers(const std::string& prefix, const Json& record, const Json& numbers);
  [[nodiscard]] Json tasks_json() const;

  std::uint64_t id_ = 0;
  Json run_ = Json::object();
  Json now_ = Json::object();
  std::map<std::string, Series, std::less<>> series_;
  std::map<std::string, Json, std::less<>> tasks_;
  Json critical_path_;
  std::deque<Json> checkpoints_;
  std::deque<Json> events_;
  std::uint64_t confusion_step_ = 0;
  std::vector<Json> confusion_;                                     // by class
  std::map<std::string, std::vector<Json>, std::less<>> pictures_;  // by set
  Json trace_;                                                      // the newest timeline
  Json result_;
};

}  // namespace disttf::roles
