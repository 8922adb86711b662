// The chief's output for TensorBoard: the files of two directories, each of which TensorBoard calls
// a run. `chief` has data about steps, `eval` the evaluations and the table of settings.
//
// Both loaders of TensorBoard are to show the same, after any kill and any resumed run:
//- Each process begins new files, and each file says from which step on it is valid (START). The
//  loader in Python then drops what it had of later steps, except at the first START.
//- The loader in Rust ignores START. For each tag it drops the values at and after a new value's
//  step; so the first step has its scalars whatever --summary_every is.
//- A tag has one value for each step.
//
// Not thread-safe: owned by the thread of Summaries. A disk error is logged once in a row, and its
// event is dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/tensorboard/event_file.h"
#include "data/tensorboard/events.h"
#include "math/aligned.h"
#include "math/evaluation.h"
#include "math/parameter_layout.h"
#include "roles/chief/shell/stored_events.h"
#include "run/run_config.h"

namespace disttf::roles {

// This process's file in a directory, or its files if the directory is in a store, and the events
// that are to be written first.
class EventStream {
 public:
  explicit EventStream(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Writes this event before any that is added later, even if the disk is full for a while.
  void owe(std::string event) { owed_.push_back(std::move(event)); }
  // Adds an event, or logs why it could not.
  void add(const std::string& event);
  // Writes the events passed to owe().
  void settle();
  // Nothing is added any more: has events that wait for a store written now, without waiting for
  // that.
  void finish();

 private:
  [[nodiscard]] std::error_code try_to(const std::string* event);
  [[nodiscard]] std::error_code append(const std::string& event);
  void tell(const std::error_code& error);

  std::filesystem::path directory_;
  // One of them is set from the first event on.
  std::optional<data::EventFile> file_;
  std::optional<StoredEvents> stored_;
  std::deque<std::string> owed_;
  bool has_failed_ = false;
};

// Returns the results of an evaluation as one event.
[[nodiscard]] std::string evaluation_event(const data::EventTime& time,
                                           const math::Evaluation& validation,
                                           const math::Evaluation& test);

// Of one step on the chief.
struct StepSummary {
  data::EventTime time;
  float loss = 0;  // of the chief's batch
  float learning_rate = 0;
  double images_per_second = 0;  // of all trainers, since the last such step; 0: unknown
  std::optional<double> staleness{};
  math::ToldNumbers numbers{};  // of a user's program
};

// Either may be empty; its histograms are then left out.
struct HistogramSummary {
  data::EventTime time;
  math::AlignedVector parameters;
  math::AlignedVector gradient;
};

struct EvaluationSummary {
  data::EventTime time;
  bool is_last = false;
  bool has_weights = true;  // histograms of them
  math::Evaluation validation;
  math::Evaluation test;
  math::AlignedVector parameters;  // may be empty
  math::AlignedVector gradient;    // may be empty
};

// Written at the end.
struct ProjectorSummary {
  std::size_t width = 0;
  std::vector<float> points;          // [points, width], of the first examples of the test set
  std::vector<std::uint16_t> judged;  // [points or more]
};

inline constexpr std::size_t kMostWrongImages = 25;

class SummaryWriter {
 public:
  // `config`, `layout` and `dataset` must outlive it. `ps`: the number of ps.
  SummaryWriter(const std::filesystem::path& directory, const RunConfig& config,
                const math::ParameterLayout& layout, const data::Dataset& dataset, std::size_t ps);
  ~SummaryWriter();  // finishes both directories; a store then has everything that it accepts
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  // Events from now on are of `time.step` or later. Earlier events of these steps, by any process,
  // become invalid.
  void begin(const data::EventTime& time);
  void write(const StepSummary& step);
  void write(const HistogramSummary& histograms);
  void write(const EvaluationSummary& evaluation);
  void write(const ProjectorSummary& projector);
  // The run is over: with its result, or for a reason that a restart does not fix.
  void end(double wall_time, bool is_success);

 private:
  // Adds one for each variable, under `prefix`.
  void add_histograms(std::string_view prefix, std::span<const float> vector,
                      data::SummaryEvent& event) const;
  void add_wrong_images(const EvaluationSummary& evaluation, data::SummaryEvent& event) const;
  [[nodiscard]] std::string class_name(std::size_t index) const;
  [[nodiscard]] std::string answer(std::size_t judged) const;

  const std::filesystem::path directory_;
  const RunConfig& config_;
  const math::ParameterLayout& layout_;
  const data::Dataset& dataset_;
  const std::size_t ps_;
  bool has_begun_ = false;
  EventStream chief_;
  EventStream eval_;
};

}  // namespace disttf::roles
