// What a Compose file and a Swarm stack have in common: services, one a task. Pure functions.
//
// One service a task: no replica of a scaled service can know its number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "main/render/deployment.h"
#include "main/render/document.h"

namespace disttf::render {

// Where the tasks find the run's secret: in the file of Docker's secret of this name.
inline constexpr const char* kDockerSecret = "disttf";

// All services, each with image, command and volumes, and what `complete` adds to it.
[[nodiscard]] Json task_services(const Deployment& deployment,
                                 const std::function<void(Json&, const PlacedTask&)>& complete);

// One that serves: image, command and the volume of --train_dir. Throws as serving_part() does.
[[nodiscard]] Json serving_service(const Deployment& deployment);

// Of a container: the question by which its engine knows whether it is well. `seconds`: between
// two.
[[nodiscard]] Json healthcheck(const char* path, std::uint16_t port, int seconds);

// The named volumes as the top level declares them; null: there are none.
[[nodiscard]] Json named_volumes(const Deployment& deployment);

// cpus as JSON has it: a number.
[[nodiscard]] Json cpus_number(double cpus);

}  // namespace disttf::render
