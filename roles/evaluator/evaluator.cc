#include "roles/evaluator/evaluator.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "model/model_files.h"
#include "net/wire/text.h"
#include "roles/evaluator/best_checkpoint.h"
#include "roles/evaluator/scoring.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/stop_signal.h"
#include "run/watch/snapshot_collector.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;
using std::chrono::steady_clock;

// The interval of reading a directory.
constexpr std::chrono::milliseconds kLookAtFiles{200};
// The interval for a store, where each request is paid for.
constexpr std::chrono::milliseconds kLookAtStore{5000};

std::string at_step(std::uint64_t step) { return "step " + std::to_string(step); }

// The checkpoints of a --train_dir, the newest complete one first.
class DirectoryEvaluator {
 public:
  DirectoryEvaluator(const EvaluatorOptions& options, const StopSignal& stop)
      : options_(options),
        stop_(stop),
        directory_(options.trainer.checkpoint.train_dir),
        scoring_(options, stop),
        best_(disk_, directory_) {}

  void run() {
    if (options_.keep_best) {
      find_best();
    }
    log_info("Evaluates the checkpoints in " + directory_.string());
    while (!look()) {
      stop_.interrupt().wait_until(net::Clock::now() +
                                   (is_store_url(directory_) ? kLookAtStore : kLookAtFiles));
    }
  }

 private:
  // Checkpoints kept by earlier processes are judged again: the metric may have been another one.
  void find_best() {
    // Partial copies of a killed process go first, since they take space.
    best_.clear();
    std::optional<CheckpointName> best;
    for (const CheckpointName& name : best_.kept()) {
      try {
        const TrainedModel model = read_checkpoint_model(best_.path() / to_string(name));
        const double value = value_of(*options_.keep_best, scoring_.score(model).validation);
        if (!best || is_better(*options_.keep_best, value, *best_value_)) {
          best = name;
          best_value_ = value;
        }
      } catch (const DamagedCheckpoint& damaged) {
        log_warning(damaged.what());
      } catch (const std::system_error& error) {
        log_warning(error.what());  // a part of it was removed
      }
    }
    if (best) {
      best_.keep_only(*best);
      log_info("The best checkpoint so far is that of " + at_step(best->step));
    }
  }

  // Returns whether nothing more is to come.
  bool look() {
    stop_.throw_if_stopped();
    std::vector<CheckpointName> names;
    try {
      names = checkpoints_in(disk_, directory_);
      has_warned_ = false;
      has_read_ = true;
    } catch (const std::system_error& error) {
      // A directory that could be read before, and cannot now, was moved or created again. After a
      // restart, which watch_for_life() causes, the sandbox covers the new one.
      if (!is_away(error.code()) && !has_read_) {
        throw;
      }
      // One warning for each series of failures.
      if (!std::exchange(has_warned_, true)) {
        log_warning(std::string(error.what()) + "; will keep retrying");
      }
    }
    // An unavailable store yields no names: the time without any change then goes on.
    if (names.empty() || names.front() == seen_) {
      watch_for_life();
      return false;
    }
    // The result is evaluated at once, whatever the interval.
    const bool is_due = steady_clock::now() >= next_ || is_result(names.front());
    return is_due && evaluate_newest(names);
  }

  // Evaluates the first readable one of those not seen yet.
  bool evaluate_newest(const std::vector<CheckpointName>& names) {
    // Checkpoints that arrive while this one is evaluated are seen next time.
    const std::optional<CheckpointName> before = std::exchange(seen_, names.front());
    has_seen_any_ = true;
    // From the newest on: older ones are evaluated only if those after them cannot be read.
    for (const CheckpointName& name : names) {
      if (name == before) {
        break;
      }
      if (std::optional<TrainedModel> model = read(name)) {
        // Counted from the reading, so that evaluations do not add to the interval.
        next_ = steady_clock::now() + options_.every;
        return evaluate(*model);
      }
    }
    return false;
  }

  // Returns nullopt if it is damaged, or has gone since.
  std::optional<TrainedModel> read(const CheckpointName& name) {
    const Path path = directory_ / to_string(name);
    try {
      if (!options_.keep_best) {
        return read_checkpoint_model(path);
      }
      // Held before it is read: the run may remove it while it is being evaluated.
      if (const std::optional<Path> held = best_.hold(name, random_number())) {
        return read_checkpoint_model(*held);
      }
    } catch (const DamagedCheckpoint& damaged) {
      log_unless_gone(path, damaged.what());
    } catch (const std::system_error& error) {
      log_unless_gone(path, error.what());
    }
    return std::nullopt;
  }

  static void log_unless_gone(const Path& path, const char* why) {
    // A checkpoint that the run has removed meanwhile is no fault.
    if (Storage().exists(path)) {
      log_warning(std::string(why) + "; skipping this checkpoint");
    }
  }

  bool evaluate(const TrainedModel& model) {
    const SetEvaluations found = scoring_.score(model);
    const bool is_last = ends_with(model.step, model.is_result);
    mark_best(model.step, found.validation);
    scoring_.tell(model, found, is_last);
    return is_last;
  }

  void mark_best(std::uint64_t step, const math::Evaluation& validation) {
    if (!options_.keep_best) {
      return;
    }
    const double value = value_of(*options_.keep_best, validation);
    if (best_value_ && !is_better(*options_.keep_best, value, *best_value_)) {
      // An equal value does not replace the earlier checkpoint.
      best_.drop();
      return;
    }
    try {
      const Path kept = best_.keep();
      best_value_ = value;
      log_info("The best checkpoint by " + std::string(best_metric_name(*options_.keep_best)) +
               " is that of " + at_step(step) + ", kept in " + kept.string());
    } catch (const std::system_error& error) {
      // Keeping is a service of its own: a full disk does not end the evaluation.
      log_warning(std::string("--keep_best: ") + error.what());
      best_.drop();
    }
  }

  // A run with more steps than the one that saved it goes on from there.
  [[nodiscard]] bool ends_with(std::uint64_t step, bool is_result) const {
    const TrainerOptions& own = options_.trainer;
    return is_result &&
           (!own.explicit_flags.contains("train_steps") || step >= own.config.train_steps);
  }

  // Checks only the index; the checkpoint is read when it is due.
  bool is_result(const CheckpointName& name) {
    if (name == peeked_) {
      return is_result_;
    }
    // The newest checkpoint is looked at several times a second, so its index is read once.
    peeked_ = name;
    is_result_ = false;
    try {
      const CheckpointReader reader(disk_, directory_ / to_string(name));
      is_result_ = ends_with(reader.index().step, is_result_of_run(reader.index()));
    } catch (const std::exception&) {
      is_result_ = false;  // reading it reports the reason
    }
    return is_result_;
  }

  // A run writes into its directory all the time: if not checkpoints, then records. The longer it
  // lasts, the rarer records are.
  void watch_for_life() {
    const auto now = steady_clock::now();
    const auto newest = newest_write();
    if (newest != newest_write_) {
      // Gaps before the first checkpoint do not count: the run may not have started.
      longest_gap_ = has_seen_any_ ? std::max(longest_gap_, now - last_change_) : longest_gap_;
      newest_write_ = newest;
      last_change_ = now;
    }
    const Timeouts& timeouts = options_.trainer.task.timeouts;
    // Twice the longest gap that was seen, since records become rarer.
    const steady_clock::duration patience =
        has_seen_any_ ? std::max<steady_clock::duration>(timeouts.peer, 2 * longest_gap_)
                      : timeouts.start;
    if (now - last_change_ > patience) {
      const std::string limit =
          seconds_text(std::chrono::duration_cast<std::chrono::seconds>(patience));
      throw Failure(kLostPeers,
                    has_seen_any_
                        ? "nothing in " + directory_.string() + " has changed for " + limit +
                              ", and the last checkpoint in it is not the result of a run"
                        : "waited " + limit + " for a checkpoint in " + directory_.string());
    }
  }

  // Returns when the newest entry of the directory was written; min() if it is empty. If the store
  // is unavailable, which says nothing about the run, it returns the previous result. The default
  // value of file_time_type is no early time: in libstdc++ it is the year 2174.
  [[nodiscard]] std::filesystem::file_time_type newest_write() {
    auto newest = std::filesystem::file_time_type::min();
    for (const Path& place : {directory_, directory_ / "records"}) {
      try {
        for (const StoreEntry& each : disk_.entries(place).value_or(std::vector<StoreEntry>())) {
          // The evaluator's own files say nothing about the run.
          const bool is_own = each.name == kBestDirectory || each.name == kEvaluatorEvents ||
                              each.name.ends_with("-evaluator.jsonl");
          if (!is_own) {
            newest = std::max(newest, each.modified);
          }
        }
      } catch (const std::system_error&) {
        return newest_write_;
      }
    }
    return newest;
  }

  const EvaluatorOptions& options_;
  const StopSignal& stop_;
  const Path directory_;
  Storage disk_;
  Scoring scoring_;
  BestCheckpoint best_;
  std::optional<double> best_value_;
  std::optional<CheckpointName> seen_;  // the newest one seen
  bool has_seen_any_ = false;
  bool has_warned_ = false;  // that the store is unavailable
  bool has_read_ = false;    // the directory could be read
  std::optional<CheckpointName> peeked_;
  bool is_result_ = false;  // of peeked_
  steady_clock::time_point next_{};
  std::filesystem::file_time_type newest_write_ = std::filesystem::file_time_type::min();
  steady_clock::time_point last_change_ = steady_clock::now();
  steady_clock::duration longest_gap_{0};
};

// Evaluates the state of the ps.
void evaluate_snapshots(const EvaluatorOptions& options, StopSignal& stop) {
  Scoring scoring(options, stop);
  SnapshotCollector collector(options.trainer.task, stop);
  log_info("Evaluates what the ps hold");
  for (;;) {
    // Counted from the request, so that the interval includes the time for scoring.
    const auto next = net::Clock::now() + options.every;
    const std::optional<TrainedModel> snapshot = collector.await_snapshot();
    if (!snapshot) {
      log_warning("the run is over; its final parameters were lost with a parameter server");
      return;
    }
    scoring.tell(*snapshot, scoring.score(*snapshot), snapshot->is_result);
    if (snapshot->is_result) {
      return;
    }
    collector.wait_until(next);
  }
}

}  // namespace

int run_evaluator(const EvaluatorOptions& options) {
  StopSignal stop;
  if (options.trainer.checkpoint.train_dir.empty()) {
    evaluate_snapshots(options, stop);
  } else {
    DirectoryEvaluator(options, stop).run();
  }
  return finish(options.trainer.task.on_finish, stop);
}

}  // namespace disttf::roles
