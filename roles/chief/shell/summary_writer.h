// What the chief tells TensorBoard, as the files of two directories, each of which TensorBoard
// calls a run: `chief` has what steps are made of, `eval` what evaluations find and the table of
// settings.
//
// Both loaders of TensorBoard are to show the same, after any kill and any resumed run:
// - each process begins new files, and each of these says from which step on it holds (START): the
//   loader in Python drops what was there of it, but not for the first START that it meets;
// - the loader in Rust does not know START, and drops of a tag what is not before a new value: so
//   the first step has its scalars whatever --summary_every is;
// - a tag has one value a step.
//
// Not thread-safe; the thread of Summaries' own. What the disk refuses is told in the log once in a
// row, and left out.
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
#include "roles/run/run_config.h"

namespace disttf::roles {

// A directory's file of this process, or its files where the directory is in a store, and what is
// still to be written first.
class EventStream {
 public:
  explicit EventStream(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Stands in the file before any event that is added later, even if the disk is full for a while.
  void owe(std::string event) { owed_.push_back(std::move(event)); }
  // Adds an event, or says in the log why there is none.
  void add(const std::string& event);
  // Writes what it owes.
  void settle();
  // Nothing is added any more: what waits for a store goes there now. Does not wait for it.
  void finish();

 private:
  [[nodiscard]] std::error_code try_to(const std::string* event);
  [[nodiscard]] std::error_code append(const std::string& event);
  void tell(const std::error_code& error);

  std::filesystem::path directory_;
  // From the first event on, one of them.
  std::optional<data::EventFile> file_;
  std::optional<StoredEvents> stored_;
  std::deque<std::string> owed_;
  bool has_failed_ = false;
};

// What an evaluation has found, as one event.
[[nodiscard]] std::string evaluation_event(const data::EventTime& time,
                                           const math::Evaluation& validation,
                                           const math::Evaluation& test);

// Of one step, on the chief.
struct StepSummary {
  data::EventTime time;
  float loss = 0;  // of the chief's batch
  float learning_rate = 0;
  double images_per_second = 0;  // of all trainers, since the last such step; 0: not known
  std::optional<double> staleness{};
};

// Either may be empty: then it has none.
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

// At the end.
struct ProjectorSummary {
  std::size_t width = 0;
  std::vector<float> points;          // [points, width], of the first examples of the test set
  std::vector<std::uint16_t> judged;  // [points or more]
};

inline constexpr std::size_t kMostWrongImages = 25;

class SummaryWriter {
 public:
  // `config`, `layout` and `dataset` must outlive it. `ps`: how many there are.
  SummaryWriter(const std::filesystem::path& directory, const RunConfig& config,
                const math::ParameterLayout& layout, const data::Dataset& dataset, std::size_t ps);
  ~SummaryWriter();  // in a store, too, is then what it takes
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  // What is written from now on is of `time.step` and later ones, and what was written of these
  // before, by whatever process, holds no more.
  void begin(const data::EventTime& time);
  void write(const StepSummary& step);
  void write(const HistogramSummary& histograms);
  void write(const EvaluationSummary& evaluation);
  void write(const ProjectorSummary& projector);
  // The run is over: with its result, or for a reason that starting it again does not mend.
  void end(double wall_time, bool is_success);

 private:
  // One for each variable, under `prefix`.
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
