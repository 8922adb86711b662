// Which process of the chief has reported that it trains. A chief that has been replaced may leave
// records in its pipe, which are read after its successor has started.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

namespace disttf::roles {

class ReportingChief {
 public:
  // A record of a step was read from the pipe of the process `writer`, while the chief's process is
  // `chief` (-1: none runs now). Returns whether the record counts: it does not if another process
  // has taken the writer's place.
  [[nodiscard]] bool take(pid_t writer, pid_t chief) noexcept {
    if (chief > 0 && writer != chief) return false;
    reported_ = writer;
    return true;
  }
  // Returns whether this process has reported a step; `chief` as in take().
  [[nodiscard]] bool trains(pid_t chief) const noexcept { return chief > 0 && chief == reported_; }

 private:
  pid_t reported_ = -1;
};

}  // namespace disttf::roles
