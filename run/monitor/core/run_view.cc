#include "run/monitor/core/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/json/json_text.h"
#include "run/monitor/core/record.h"
#include "run/monitor/core/run_chart.h"

namespace disttf::roles {
namespace {

using data::member_of;
using data::member_text;
using OrderedJson = RunView::Json;

std::uint64_t whole(const OrderedJson& record, const char* name) {
  const OrderedJson& value = member_of(record, name);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

template <typename Container>
void keep(Container& kept, const OrderedJson& record, std::size_t most) {
  kept.push_back(record);
  if (kept.size() > most) {
    kept.erase(kept.begin());
  }
}

}  // namespace

// ------------------------------------------------------------------------------------------ series

void Series::add(std::uint64_t step, double time, double value) {
  // The run was rolled back: the later points are void.
  if (!samples_.empty() && samples_.back().step >= step) {
    drop_from(step);
  }
  if (skipped_ + 1 < stride_) {
    ++skipped_;
    return;
  }
  skipped_ = 0;
  samples_.push_back({step, time, value});
  if (samples_.size() >= kMostPoints) {
    thin();
  }
}

void Series::put(std::uint64_t step, double time, double value) {
  const auto at = std::ranges::lower_bound(samples_, step, {}, &Sample::step);
  if (at == samples_.end()) {
    add(step, time, value);
  } else if (at->step != step) {
    samples_.insert(at, {step, time, value});
    if (samples_.size() >= kMostPoints) {
      thin();
    }
  }
}

void Series::drop_from(std::uint64_t step) {
  samples_.erase(std::ranges::lower_bound(samples_, step, {}, &Sample::step), samples_.end());
}

void Series::thin() {
  const std::size_t half = samples_.size() / 2;
  for (std::size_t each = 0; each < half; ++each) {
    // Every second point goes, and from now on only every stride-th one comes, so that the points
    // stay evenly spaced.
    samples_[each] = samples_[2 * each];
  }
  samples_.resize(half);
  stride_ *= 2;
}

nlohmann::ordered_json Series::json() const {
  const auto column = [this](auto field) {
    OrderedJson values = OrderedJson::array();
    for (const Sample& sample : samples_) {
      values.push_back(sample.*field);
    }
    return values;
  };
  return {{"steps", column(&Sample::step)},
          {"times", column(&Sample::time)},
          {"values", column(&Sample::value)}};
}

// -------------------------------------------------------------------------------------------- view

bool RunView::take(std::string_view line) {
  if (!may_be_record(line)) {
    return false;
  }
  const OrderedJson record = data::parse_ordered_json(line);
  if (!record.is_object() || !member_of(record, "time").is_number()) {
    return false;
  }
  const std::string kind = member_text(record, "kind");
  if (kind == "run") {
    take_run(record);
  } else if (kind == "step") {
    take_step(record);
  } else if (kind == "evaluation") {
    take_evaluation(record);
  } else if (kind == "confusion") {
    take_confusion(record);
  } else if (kind == "task" || kind == "metrics") {
    take_task(record);
  } else if (kind == "frontier") {
    critical_path_ = record;
  } else if (kind == "checkpoint") {
    keep(checkpoints_, record, kMostCheckpoints);
  } else if (kind == "event") {
    keep(events_, record, kMostEvents);
  } else if (kind == "picture") {
    take_picture(record);
  } else if (kind == "trace") {
    trace_ = record;
  } else if (kind == "result") {
    result_ = record;
    run_["state"] = "finished";
  } else if (kind == "state") {
    run_["state"] = member_text(record, "state");
  } else {
    return false;
  }
  // Only records that changed the view count: a reader that has this id needs nothing before it.
  ++id_;
  return true;
}

void RunView::take_run(const OrderedJson& record) {
  // A restarted chief sends this record again; the run began with the first one.
  const OrderedJson began = run_.value("began", member_of(record, "time"));
  // A run with a result continues with more steps.
  const std::string state =
      result_.is_null() ? run_.value("state", std::string("training")) : "training";
  run_ = record;
  run_.erase("kind");
  run_.erase("time");
  run_["began"] = began;
  run_["state"] = state;
  for (auto& [name, series] : series_) {
    // Steps after the restored one are made again.
    series.drop_from(whole(record, "step") + 1);
  }
  result_ = nullptr;
}

// Adds a value to a series. A record that names a task comes from an evaluator, which may be late.
void RunView::add(const char* series, const OrderedJson& record, const OrderedJson& value) {
  if (!value.is_number()) {
    return;
  }
  const std::uint64_t step = whole(record, "step");
  const auto time = member_of(record, "time").get<double>();
  // A late value must be put at its step; the chief's values only append, which is cheaper.
  member_of(record, "task").is_string() ? series_[series].put(step, time, value.get<double>())
                                        : series_[series].add(step, time, value.get<double>());
}

void RunView::add_numbers(const std::string& prefix, const OrderedJson& record,
                          const OrderedJson& numbers) {
  if (!numbers.is_object()) {
    return;
  }
  for (const auto& [name, value] : numbers.items()) {
    const std::string series = prefix + name;
    const bool is_built_in = std::ranges::find(series_names(), series) != series_names().end();
    // Bounded, since a program chooses the names.
    if (!is_built_in && (series_.size() < kMostSeries || series_.contains(series))) {
      add(series.c_str(), record, value);
    }
  }
}

void RunView::take_step(const OrderedJson& record) {
  for (const char* const name : {"loss", "learning_rate", "images_per_second"}) {
    add(name, record, member_of(record, name));
  }
  add_numbers("", record, member_of(record, "numbers"));
  now_ = record;
  now_.erase("kind");
}

void RunView::take_evaluation(const OrderedJson& record) {
  for (const char* const set : {"validation", "test"}) {
    const OrderedJson& found = member_of(record, set);
    if (found.is_object()) {
      for (const char* const what : {"loss", "accuracy", "absolute_error"}) {
        add(fmt::format("{}_{}", set, what).c_str(), record, member_of(found, what));
      }
      add_numbers(fmt::format("{}_", set), record, member_of(found, "numbers"));
    }
  }
}

void RunView::take_confusion(const OrderedJson& record) {
  const std::uint64_t number = whole(record, "class");
  // Bounded, since a peer chooses the number.
  if (number >= kMostClasses || !member_of(record, "counts").is_array()) {
    return;
  }
  if (whole(record, "step") != confusion_step_) {
    // Rows of another step belong to a new matrix.
    confusion_.clear();
    confusion_step_ = whole(record, "step");
  }
  // Rows that are missing stay null.
  confusion_.resize(std::max<std::size_t>(confusion_.size(), number + 1));
  confusion_[number] = member_of(record, "counts");
}

// Keeps the newest record of the task, from any source.
void RunView::take_task(const OrderedJson& record) {
  const std::string name = member_text(record, "task");
  // A bound on what a peer's records can occupy; known tasks are always updated.
  if (name.empty() || (tasks_.size() >= kMostTasks && !tasks_.contains(name))) {
    return;
  }
  OrderedJson& task = tasks_[name];
  if (task.is_null()) {
    task = OrderedJson::object();
  }
  for (const auto& [key, value] : record.items()) {
    if (key != "kind") {
      // Field by field, since a task's state and its metrics come in records of different kinds.
      task[key] = value;
    }
  }
}

void RunView::take_picture(const OrderedJson& record) {
  const std::string set = member_text(record, "set");
  const std::uint64_t index = whole(record, "index");
  // Bounded, since a peer chooses set and index.
  if ((set != "wrong" && set != "filters") || index >= kMostPictures) {
    return;
  }
  std::vector<OrderedJson>& pictures = pictures_[set];
  if (index == 0) {
    pictures.clear();  // a new set of pictures
  }
  pictures.resize(std::max<std::size_t>(pictures.size(), index + 1));
  pictures[index] = record;
}

OrderedJson RunView::tasks_json() const {
  const std::string slow =
      critical_path_.is_object() && member_of(critical_path_, "slowest").is_object()
          ? member_text(member_of(critical_path_, "slowest"), "task")
          : std::string();
  OrderedJson tasks = OrderedJson::array();
  for (const auto& [name, task] : tasks_) {
    OrderedJson each = task;
    const OrderedJson& stages = member_of(task, "stages");
    if (stages.is_object() && stages.contains("wait")) {
      double computes = 0;
      for (const auto& [stage, seconds] : stages.items()) {
        // "overlapped" runs beside computing, so its time is not added.
        if (stage != "wait" && stage != "overlapped" && seconds.is_number()) {
          computes += seconds.get<double>();
        }
      }
      const double waits = stages["wait"].is_number() ? stages["wait"].get<double>() : 0;
      // Short waits have other causes than the slowest task.
      const bool for_slow = !slow.empty() && slow != name && waits > computes / 10;
      each["wait_share"] = waits + computes > 0 ? waits / (waits + computes) : 0;
      each["doing"] = for_slow ? "waits for " + slow : waits > computes ? "waits" : "computes";
    }
    tasks.push_back(std::move(each));
  }
  return tasks;
}

std::string RunView::json() const {
  OrderedJson json = {{"run", run_}, {"now", now_}};
  json["series"] = OrderedJson::object();
  for (const auto& [name, series] : series_) {
    json["series"][name] = series.json();
  }
  json["tasks"] = tasks_json();
  json["frontier"] = critical_path_;
  json["checkpoints"] = checkpoints_;
  json["events"] = events_;
  json["confusion"] = {
      {"step", confusion_step_}, {"classes", member_of(run_, "classes")}, {"counts", confusion_}};
  json["pictures"] = pictures_;
  json["trace"] = trace_;
  json["result"] = result_;
  json["id"] = id_;
  return data::json_text(json);
}

std::string RunView::slowest() const {
  if (!critical_path_.is_object() || !member_of(critical_path_, "slowest").is_object()) {
    return {};
  }
  const OrderedJson& slowest = member_of(critical_path_, "slowest");
  const OrderedJson& slower = member_of(slowest, "slower");
  return fmt::format("{} is {:.0f} % slower{}: {}", member_text(slowest, "task"),
                     slower.is_number() ? 100 * slower.get<double>() : 0.0,
                     member_text(slowest, "than") == "its fastest" ? kThanItsFastest : "",
                     member_text(slowest, "stage"));
}

}  // namespace disttf::roles
