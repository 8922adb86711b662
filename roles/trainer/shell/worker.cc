#include "roles/trainer/shell/worker.h"

#include <optional>
#include <stdexcept>
#include <string>

#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

Failure unusable(const std::invalid_argument& error) {
  return {kError, std::string("the chief published what this version cannot use: ") + error.what()};
}

// Returns the configuration that the chief has published, checked against this task's own flags and
// data. `before`: what this worker trained until another chief published something else. Its flags
// fitted that run. A user who starts the next chief with other flags means all workers, so they are
// not checked again.
RunConfig adopt_config(Trainer& trainer, const TrainerOptions& options, const std::string& json,
                       const std::optional<RunConfig>& before) {
  RunConfig published;
  try {
    published = run_config_from_json(json);
    validate(published);
  } catch (const std::invalid_argument& error) {
    throw unusable(error);
  }
  if (before) {
    log_warning("another chief has restarted the run with another configuration: " +
                changes(*before, published) +
                ". This worker discards what it has computed, and trains with that "
                "configuration, whatever its own flags are");
  } else if (const auto why = contradiction(options.config, options.explicit_flags, published)) {
    throw Failure(kUsage, *why);
  }
  trainer.source().adopt(published);
  // With another instruction set the results would not be bit-identical.
  if (const auto why = missing_isa(published, math::supported_isas())) {
    throw Failure(kUsage, *why);
  }
  return published;
}

// Trains until the chief has made the result durable: before that, the ps may be rolled back to a
// state from which this worker is needed again.
void train_to_the_end(Trainer& trainer) {
  try {
    // A worker that is not released trains again, from the state that was restored.
    do {
      trainer.train({});
    } while (!trainer.leave());
  } catch (const RunOver&) {
    log_info("the run is over");
  }
}

// Trains from the first step to the result. `trained`: the configuration that this worker has
// trained with, if any; also set when this throws OtherConfiguration.
void train(const TrainerOptions& options, Trainer& trainer, std::optional<RunConfig>& trained) {
  try {
    if (trainer.client().connect()) {
      throw RunOver();
    }
    const std::string json = trainer.client().get_config();
    const RunConfig config = adopt_config(trainer, options, json, trained);
    trained = config;
    trainer.prepare(config, configuration_id(json));
  } catch (const RunOver&) {
    log_info("the run has finished already");
    return;
  }
  train_to_the_end(trainer);
  if (!trainer.has_result()) {
    // No failure: the run has its result, and the chief prints it.
    log_warning("final parameters lost with a parameter server; see the chief's result");
    return;
  }
  if (const auto failure = trainer.print_result_lines()) {
    throw Failure(*failure);
  }
}

}  // namespace

int run_worker(const TrainerOptions& options) {
  StopSignal stop;
  {
    // The trainer ends before finish(): an idle task keeps no connection to a ps.
    Trainer trainer(options, stop);
    std::optional<RunConfig> trained;
    for (bool is_over = false; !is_over;) {
      try {
        train(options, trainer, trained);
        is_over = true;
        // The loop keeps `trained`, so that the next configuration is not checked against the
        // flags.
      } catch (const OtherConfiguration&) {
        trainer.begin_anew();
      }
    }
  }
  return finish(options.task.on_finish, stop);
}

}  // namespace disttf::roles
