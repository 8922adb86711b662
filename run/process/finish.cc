#include "run/process/finish.h"

#include <chrono>

#include "net/waiting/interrupt.h"
#include "run/outcome.h"
#include "run/process/log.h"

namespace disttf::roles {

int finish(OnFinish on_finish, const StopSignal& stop) {
  if (on_finish == OnFinish::kIdle) {
    log_idle();
    while (!stop.interrupt().wait_until(net::Clock::now() + std::chrono::hours(1))) {
    }
  }
  return kDone;
}

void log_idle() { log_info("the run is over; staying until SIGTERM or SIGINT (--on_finish idle)"); }

}  // namespace disttf::roles
