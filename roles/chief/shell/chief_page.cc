#include "roles/chief/shell/chief_page.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>

#include "run/process/log.h"

namespace disttf::roles {

std::unique_ptr<PageThread> open_page(const TrainerOptions& options, StopSignal& stop) {
  if (!options.page) {
    return nullptr;
  }
  PageThread::Changes changes{.trace =
                                  [&stop] {
                                    stop.ask_to_trace(StopSignal::kUsualTrace);
                                    return fmt::format("a timeline of {} steps is collected",
                                                       StopSignal::kUsualTrace);
                                  },
                              .stop =
                                  [] {
                                    // As a signal from outside, so that all stops take the same
                                    // path.
                                    kill(getpid(), SIGTERM);
                                    return std::string("the run is ending");
                                  }};
  // Without a directory there is nothing to save into, so the page offers no such button.
  if (!options.checkpoint.train_dir.empty()) {
    changes.save = [&stop] {
      stop.ask_to_save();
      return std::string("the next step is saved");
    };
  }
  auto page = std::make_unique<PageThread>(*options.page, std::move(changes));
  log_info("The run's page is " + page->link());
  return page;
}

}  // namespace disttf::roles
