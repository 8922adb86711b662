#include "net/wire/backoff.h"

#include <algorithm>

namespace disttf::net {

std::chrono::milliseconds Backoff::next() {
  // Not below 1 ms: a delay of 0 would make a failing peer spin.
  std::uniform_int_distribution<std::chrono::milliseconds::rep> delay(1, ceiling_.count());
  const std::chrono::milliseconds result{delay(engine_)};
  ceiling_ = std::min(2 * ceiling_, kLongest);
  return result;
}

}  // namespace disttf::net
