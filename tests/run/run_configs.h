// A configuration to modify.
#pragma once

#include "run/run_config.h"

namespace disttf::roles {

inline RunConfig base_config() {
  RunConfig config;
  config.dataset = "MNIST";
  config.data_checksum = "c0ffee";
  config.trainers = 3;
  return config;
}

}  // namespace disttf::roles
