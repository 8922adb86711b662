// A configuration to modify, and helpers that check errors.
#pragma once

#include <stdexcept>
#include <string>

#include "run/run_config.h"

namespace disttf::roles {

inline RunConfig base_config() {
  RunConfig config;
  config.dataset = "MNIST";
  config.data_checksum = "c0ffee";
  config.trainers = 3;
  return config;
}

template <typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace disttf::roles
