#include "roles/serve/shell/model_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/resource_limits.h"

namespace disttf::roles {

std::shared_ptr<const LoadedModel> ServedModels::of_version(std::uint64_t version) const {
  const auto found = std::ranges::find_if(
      models, [version](const auto& each) { return each->version == version; });
  return found == models.end() ? nullptr : *found;
}

std::shared_ptr<const ServedModels> ModelRegistry::now() const {
  const std::scoped_lock lock(mutex_);
  return served_;
}

std::unique_ptr<LoadedModel> ModelRegistry::try_out(TrainedModel model,
                                                    const std::string& name) const {
  const auto is_finite = [](float each) { return std::isfinite(each); };
  auto loaded = std::make_unique<LoadedModel>();
  loaded->model = std::move(model);
  loaded->version = loaded->model.step;
  // A diverged run saves such weights; the present model is better than answers of NaN.
  if (!std::ranges::all_of(loaded->model.parameters.span(), is_finite)) {
    throw Failure(kBadData, name + ": some of its weights are not finite");
  }
  require_memory(threads_ * predictor_bytes(loaded->model, max_rows_), "this process",
                 "the outputs of all layers of " + name);
  for (std::size_t i = 0; i < threads_; ++i) {
    // A predictor for each thread, as they are not thread-safe.
    loaded->predictors.push_back(predictor_of(loaded->model, max_rows_));
    math::Predictor& predictor = *loaded->predictors.back();
    std::vector<float> outputs(predictor.outputs());
    predictor.predict_numbers(std::vector<float>(predictor.inputs()), outputs);
    if (!std::ranges::all_of(outputs, is_finite)) {
      throw Failure(kBadData, name + ": its output for a row of zeros is not finite");
    }
  }
  meters_.loaded.add();
  return loaded;
}

void ModelRegistry::publish(LoadedModels models, std::vector<VersionStatus> refused) {
  auto next = std::make_shared<ServedModels>();
  next->models = std::move(models);
  next->refused = std::move(refused);
  const std::shared_ptr<const LoadedModel> newest = next->newest();
  const std::shared_ptr<const ServedModels> before = now();
  // A publication may change only the older versions or the list of rejected ones.
  if (newest != nullptr && newest != before->newest()) {
    meters_.version.set(static_cast<double>(newest->version));
    log_info(fmt::format(
        "Serving version {}, {} of {}, weights {:.8}{}", newest->version,
        math::describe(newest->model.config.model), net::one_line(newest->model.config.dataset),
        newest->model.weights_sha256,
        before->models.empty() ? "" : fmt::format("; it replaces {}", before->newest()->version)));
  }
  // Readers hold their own pointer, so the old table lives until the last request is answered.
  {
    const std::scoped_lock lock(mutex_);
    served_ = std::move(next);
  }
  // After the store: a reader that sees the new number must find the new table.
  number_.fetch_add(1, std::memory_order_release);
}

}  // namespace disttf::roles
