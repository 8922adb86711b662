#include "run/monitor/shell/record_feed.h"

namespace disttf::roles {

void RecordFeed::take(std::string_view line) {
  if (view_.take(line) && listener_) {
    listener_(view_.id(), line);
  }
}

}  // namespace disttf::roles
