#include "roles/chief/shell/summary_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/file_system.h"
#include "data/tensorboard/events.h"
#include "data/tensorboard/projector.h"
#include "net/wire/text.h"
#include "roles/chief/shell/run_description.h"
#include "roles/chief/shell/run_pictures.h"
#include "run/process/log.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {
namespace {

constexpr const char* kChief = "chief";
constexpr const char* kEval = "eval";

bool can_be_shown(const data::Dataset& dataset) {
  return !dataset.test.images.empty() &&
         (dataset.shape.channels == 1 || dataset.shape.channels == 3);
}

// Adds the results on one set; the tags of the test set begin with "test_".
void add_found(const std::string& prefix, const math::Evaluation& found,
               data::SummaryEvent& event) {
  if (!found.is_told || !std::isnan(found.loss)) {  // a program need not tell a loss
    event.add_scalar(prefix + "loss", found.loss);
  }
  if (found.is_told) {
    if (found.told_accuracy) {
      event.add_scalar(prefix + "accuracy", *found.told_accuracy);
    }
    for (const auto& [name, value] : found.told) {
      event.add_scalar(prefix + name, value);
    }
    return;
  }
  if (found.classes == 0) {
    event.add_scalar(prefix + "absolute_error", found.absolute_error);
    event.add_scalar(prefix + "squared_error", found.squared_error);
    return;
  }
  event.add_scalar(prefix + "accuracy", found.accuracy());
}

std::vector<data::HyperMetric> metrics_of(const RunConfig& config) {
  if (config.model.is_program()) {
    return {{.tag = "accuracy", .display_name = "accuracy"},
            {.tag = "loss", .display_name = "evaluation loss"}};
  }
  const bool of_numbers = math::loss_type(config.model.loss).of_numbers;
  const std::string what = of_numbers ? "absolute_error" : "accuracy";
  const std::string shown = of_numbers ? "mean absolute error" : "accuracy";
  return {{.tag = "test_" + what, .display_name = "test " + shown},
          {.tag = what, .display_name = "validation " + shown},
          {.tag = "loss", .display_name = "validation loss"}};
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

std::string evaluation_event(const data::EventTime& time, const math::Evaluation& validation,
                             const math::Evaluation& test) {
  data::SummaryEvent found;
  add_found("", validation, found);
  if (!test.is_told) {  // a program evaluates once
    add_found("test_", test, found);
  }
  return found.event(time);
}

void EventStream::add(const std::string& event) { tell(try_to(&event)); }

void EventStream::settle() { tell(try_to(nullptr)); }

void EventStream::finish() {
  if (stored_) {
    stored_->finish();
  }
}

std::error_code EventStream::append(const std::string& event) {
  return stored_ ? stored_->append(event) : file_->append(event);
}

std::error_code EventStream::try_to(const std::string* event) {
  try {
    if (is_store_url(directory_)) {
      if (!stored_) {
        stored_.emplace(directory_, std::make_unique<Storage>());
      }
    } else if (!file_) {
      file_.emplace(directory_);
    }
  } catch (const std::system_error& error) {
    return error.code();
  }
  // Owed events first, in order; the new event is dropped if one of them cannot be written.
  while (!owed_.empty()) {
    if (const std::error_code error = append(owed_.front())) {
      return error;
    }
    owed_.pop_front();
  }
  return event == nullptr ? std::error_code() : append(*event);
}

void EventStream::tell(const std::error_code& error) {
  // One warning for each series of failures.
  if (error && !has_failed_) {
    log_warning("--log_dir: " + (file_ ? file_->path() : directory_).string() +
                " cannot be written: " + error.message());
  }
  has_failed_ = static_cast<bool>(error);
}

SummaryWriter::SummaryWriter(const std::filesystem::path& directory, const RunConfig& config,
                             const math::ParameterLayout& layout, const data::Dataset& dataset,
                             std::size_t ps)
    : directory_(directory),
      config_(config),
      layout_(layout),
      dataset_(dataset),
      ps_(ps),
      chief_(directory / kChief),
      eval_(directory / kEval) {}

SummaryWriter::~SummaryWriter() {  // both at the same time
  chief_.finish();
  eval_.finish();
}

void SummaryWriter::begin(const data::EventTime& time) {
  chief_.owe(data::session_start_event(time));
  eval_.owe(data::session_start_event(time));
  // The graph and the settings once per process; START after each rollback.
  if (!has_begun_) {
    has_begun_ = true;
    chief_.owe(data::graph_event(time, data::graph_def(run_graph(config_, layout_, ps_))));
    const std::vector<data::HyperParameter> parameters = hyper_parameters(config_);
    data::SummaryEvent event;
    event.add_hparams(data::kExperimentTag,
                      data::experiment(time.wall_time, parameters, metrics_of(config_)));
    event.add_hparams(data::kSessionStartTag, data::session_start(time.wall_time, parameters));
    eval_.owe(event.event({.wall_time = time.wall_time}));
  }
  // Owed events are written now, even if no other event follows for long.
  chief_.settle();
  eval_.settle();
}

void SummaryWriter::write(const StepSummary& step) {
  data::SummaryEvent event;
  event.add_scalar("loss", static_cast<double>(step.loss));
  event.add_scalar("learning_rate", static_cast<double>(step.learning_rate));
  if (step.images_per_second > 0) {
    event.add_scalar("images_per_second", step.images_per_second);
  }
  if (step.staleness) {
    event.add_scalar("staleness", *step.staleness);
  }
  constexpr std::array<std::string_view, 4> kTags = {"loss", "learning_rate", "images_per_second",
                                                     "staleness"};
  for (const auto& [name, value] : step.numbers) {
    // A tag has one value for each step.
    if (std::ranges::find(kTags, name) == kTags.end()) {
      event.add_scalar(name, value);
    }
  }
  chief_.add(event.event(step.time));
}

void SummaryWriter::add_histograms(std::string_view prefix, std::span<const float> vector,
                                   data::SummaryEvent& event) const {
  // The copy was dropped, or there is none for this step.
  if (vector.empty()) {
    return;
  }
  for (const math::Variable& variable : layout_.variables()) {
    const auto buckets = data::histogram(vector.subspan(variable.offset, variable.size));
    if (!buckets.empty()) {
      event.add_histogram(std::string(prefix) + variable.name, buckets);
    }
  }
}

void SummaryWriter::write(const HistogramSummary& histograms) {
  data::SummaryEvent event;
  add_histograms("weights/", histograms.parameters.span(), event);
  add_histograms("gradients/", histograms.gradient.span(), event);
  chief_.add(event.event(histograms.time));
}

std::string SummaryWriter::class_name(std::size_t index) const {
  return index < dataset_.class_names.size() ? net::one_line(dataset_.class_names[index])
                                             : std::to_string(index);
}

// An example with non-finite outputs has no predicted class.
std::string SummaryWriter::answer(std::size_t judged) const {
  return judged < dataset_.classes ? class_name(judged) : "none";
}

// A picture has no room for text, so a table lists the label and the answer of each.
void SummaryWriter::add_wrong_images(const EvaluationSummary& evaluation,
                                     data::SummaryEvent& event) const {
  const data::ImageShape& shape = dataset_.shape;
  std::vector<std::string> pngs;
  std::string table = "| image | row of the test set | label | answer |\n|---|---|---|---|\n";
  const std::vector<std::uint16_t>& judged = evaluation.test.answers;
  for (std::size_t row = 0; row < judged.size() && pngs.size() < kMostWrongImages; ++row) {
    const std::size_t label = dataset_.test.labels[row];
    if (judged[row] == label) {
      continue;
    }
    pngs.push_back(data::encode_png(dataset_.test.images.subspan(row * shape.size(), shape.size()),
                                    shape.height, shape.width, shape.channels));
    table += fmt::format("| {} | {} | {} | {} |\n", pngs.size(), row, class_name(label),
                         answer(judged[row]));
  }
  if (!pngs.empty()) {
    event.add_images("wrong", shape.width, shape.height, pngs);
    event.add_text("wrong_labels", table);
  }
}

void SummaryWriter::write(const EvaluationSummary& evaluation) {
  eval_.add(evaluation_event(evaluation.time, evaluation.validation, evaluation.test));
  data::SummaryEvent event;
  if (can_be_shown(dataset_)) {
    add_wrong_images(evaluation, event);
  }
  if (evaluation.parameters.size() != 0) {
    if (const auto picture =
            picture_of_weights(config_.model, layout_, evaluation.parameters.span())) {
      const std::array<std::string, 1> png = {
          data::encode_png(picture->pixels, picture->height, picture->width, picture->channels)};
      event.add_images("first_layer/" + picture->name, picture->width, picture->height, png);
    }
    if (evaluation.has_weights) {
      add_histograms("weights/", evaluation.parameters.span(), event);
    }
  }
  add_histograms("gradients/", evaluation.gradient.span(), event);
  if (!event.is_empty()) {
    chief_.add(event.event(evaluation.time));
  }
}

void SummaryWriter::write(const ProjectorSummary& projector) {
  const std::size_t points = projector.width == 0 ? 0 : projector.points.size() / projector.width;
  std::vector<std::string> names;
  // The labels below refer to these strings, which must not move.
  names.reserve(2 * points);
  std::vector<data::ProjectorLabel> labels;
  for (std::size_t row = 0; row < points; ++row) {
    const std::string& label = names.emplace_back(class_name(dataset_.test.labels[row]));
    const std::string& judged = names.emplace_back(answer(projector.judged[row]));
    labels.push_back({.label = label, .answer = judged});
  }
  Storage storage;
  const auto write = [&](std::string_view name, const std::string& text) {
    data::write_durably(storage, directory_ / kChief / name, std::array{bytes_of(text)});
  };
  try {
    data::create_directories(storage, directory_ / kChief);
    write(data::kProjectorPoints, data::projector_points(projector.points, projector.width));
    write(data::kProjectorLabels, data::projector_labels(labels));
    write(data::kProjectorConfig, data::projector_config("test images"));
  } catch (const std::system_error& error) {
    log_warning(std::string("--log_dir: ") + error.what());
  }
}

void SummaryWriter::end(double wall_time, bool is_success) {
  data::SummaryEvent event;
  event.add_hparams(data::kSessionEndTag, data::session_end(wall_time, is_success));
  eval_.add(event.event({.wall_time = wall_time}));
}

}  // namespace disttf::roles
