// The data of a run: what a model of it takes, and whether a task has the same data as the chief.
//
// Callable from any thread.
#pragma once

#include <string_view>

#include "data/dataset.h"
#include "math/model.h"
#include "roles/download/dataset_source.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

// What a model of this data set takes.
[[nodiscard]] ExampleKind kind_of_examples(const data::Dataset& dataset);
// What a model trained on it is asked by.
[[nodiscard]] ExampleFacts facts_of(const data::Dataset& dataset);
// Borrowed from the data set.
[[nodiscard]] math::ImageSet image_set(const data::Dataset& dataset, const data::Split& split);

// Throws Failure: kBadData where the run is of other data than `own`, which `options` have opened,
// kError where its model does not take such examples. `whose`: "the chief trains on".
void check_data(const RunConfig& run, const data::Dataset& own, const DataOptions& options,
                std::string_view whose);

}  // namespace disttf::roles
