// The data of a run: which model fits it, and whether a task has the same data as the chief.
//
// Callable from any thread.
#pragma once

#include <string_view>

#include "data/dataset.h"
#include "math/model.h"
#include "run/run_config.h"
#include "storage/download/dataset_source.h"

namespace disttf::roles {

// Returns the shape of examples that a model of this data set takes.
[[nodiscard]] ExampleKind kind_of_examples(const data::Dataset& dataset);
// Returns what a user of a model trained on it needs to know.
[[nodiscard]] ExampleFacts facts_of(const data::Dataset& dataset);
// Borrows from the data set.
[[nodiscard]] math::ImageSet image_set(const data::Dataset& dataset, const data::Split& split);

// Throws Failure: kBadData if the run trains on other data than `own`, which `options` have opened;
// kError if its model does not fit such examples. `whose`: "the chief trains on".
void check_data(const RunConfig& run, const data::Dataset& own, const DataOptions& options,
                std::string_view whose);

}  // namespace disttf::roles
