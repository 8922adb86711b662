#include "roles/serve/shell/followed_run.h"

#include <exception>
#include <utility>
#include <vector>

#include "run/outcome.h"
#include "run/process/log.h"

namespace disttf::roles {

FollowedRun::FollowedRun(const FollowOptions& options, std::size_t keep, ModelRegistry& registry,
                         StopSignal& stop)
    : options_(options),
      keep_(keep),
      registry_(registry),
      stop_(stop),
      next_(std::chrono::steady_clock::now()),
      collector_(options.task, stop, WhenGone::kGoOn) {
  log_info("following the run whose ps are " + net::to_string(options.task.cluster.ps) +
           "; its first state is served when it arrives");
}

void FollowedRun::look() {
  if (has_ended_) {
    return;
  }
  has_ended_ = collector_.is_over();  // before take(), so that the last state is taken
  if (std::optional<TrainedModel> snapshot = collector_.take()) {
    is_asked_ = false;
    take(std::move(*snapshot));
  }
  if (has_ended_) {
    // Once: has_ended_ makes later looks return at their beginning.
    report_end();
    return;
  }
  report_ps();
  const auto now = std::chrono::steady_clock::now();
  // One request at a time: a slow collection must not pile up further ones.
  if (!is_asked_ && now >= next_) {
    is_asked_ = true;
    next_ = now + options_.every;
    collector_.ask();
  }
}

std::string FollowedRun::what_answers() const {
  const auto newest = registry_.now()->newest();
  return newest == nullptr ? "there is no version yet"
                           : "version " + std::to_string(newest->version) + " is still served";
}

void FollowedRun::report_ps() {
  std::string why = collector_.why_gone();
  // Logs changes only.
  if (why == reported_gone_) {
    return;
  }
  if (why.empty()) {
    log_info("The ps of the run are reachable again");
  } else {
    log_warning(why + "; " + what_answers());
  }
  reported_gone_ = std::move(why);
}

void FollowedRun::take(TrainedModel snapshot) {
  // Needed below to recognize a state that is served already.
  if (snapshot.weights_sha256.empty()) {
    snapshot.weights_sha256 =
        weights_hash(math::layout_of(snapshot.config.model), snapshot.parameters.span());
  }
  has_result_ = snapshot.is_result;
  const std::uint64_t version = snapshot.step;
  const auto newest = registry_.now()->newest();
  // By hash as well: after a roll-back the same step may have other weights.
  if (newest != nullptr && newest->version == version &&
      newest->model.weights_sha256 == snapshot.weights_sha256) {
    return;  // the result, whose state was taken before it became the result
  }
  const std::string name = "step " + std::to_string(version) + " of the run";
  try {
    put_first(registry_.try_out(std::move(snapshot), name));
  } catch (const std::exception& error) {
    registry_.count_refused();
    log_warning(std::string("not served: ") + error.what());
    // The registry keeps its versions; the refused one is listed with the reason.
    registry_.publish(registry_.now()->models,
                      {{.version = version, .is_available = false, .sentence = error.what()}});
  }
}

void FollowedRun::put_first(const std::shared_ptr<const LoadedModel>& model) {
  LoadedModels models = {model};
  for (const std::shared_ptr<const LoadedModel>& each : registry_.now()->models) {
    // Keeps older versions only: one at or above the new version is of steps that were rolled back.
    if (models.size() < keep_ && each->version < model->version) {
      models.push_back(each);
    }
  }
  registry_.publish(std::move(models), {});
}

void FollowedRun::report_end() {
  const std::string how =
      std::string("The run has ended") + (has_result_ ? "" : ", and its result was lost with a ps");
  if (registry_.now()->models.empty()) {
    // The run cannot produce a model any more, so waiting would never end.
    stop_.stop_with(Failure(kLostPeers, how + ": there is no model to serve"));
    return;
  }
  log_info(how + "; " + what_answers());
}

}  // namespace disttf::roles
