// The parts that a Compose file and a Swarm stack share. Pure functions.
//
// Each task is a service of its own, because a replica of a scaled service has no number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "main/render/deployment.h"
#include "main/render/document.h"

namespace disttf::render {

// The name of Docker's secret with the run's secret, and of its file in the tasks.
inline constexpr const char* kDockerSecret = "disttf";

// All services, each with image, command and volumes, completed by `complete`.
[[nodiscard]] Json task_services(const Deployment& deployment,
                                 const std::function<void(Json&, const PlacedTask&)>& complete);

// The service that copies disttf into a volume, from which the trainers of a user's program take
// it. REQUIRES: is_brought().
[[nodiscard]] Json bringing_service(const Deployment& deployment);

// A serving service: image, command and the volume of --train_dir. Throws as serving_part() does.
[[nodiscard]] Json serving_service(const Deployment& deployment);

// The health check of a container. `seconds`: between two checks.
[[nodiscard]] Json healthcheck(const char* path, std::uint16_t port, int seconds);

// The named volumes as declared at the top level; null: there are none.
[[nodiscard]] Json named_volumes(const Deployment& deployment);

// The number of cpus as JSON: whole if it is.
[[nodiscard]] Json cpus_number(double cpus);

}  // namespace disttf::render
