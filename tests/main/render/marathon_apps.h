// A Marathon group as Marathon starts it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/main/render/round_trip.h"

namespace disttf::render {

// Each app is one task. The app /mnist/worker-0 has the host name worker-0-mnist.DOMAIN, with each
// part of the name cut at 24 characters; its image's entry point is disttf.
[[nodiscard]] std::vector<Started> marathon_tasks(const nlohmann::json& group,
                                                  const std::string& domain);

}  // namespace disttf::render
