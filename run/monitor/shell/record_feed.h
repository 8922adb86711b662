// The feed of a run made of its records, one after the other.
//
// Used by the one thread that serves the page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "run/monitor/core/run_view.h"
#include "run/monitor/shell/run_feed.h"

namespace disttf::roles {

class RecordFeed : public RunFeed {
 public:
  // Takes a record, without its line's end. Ignores malformed ones.
  void take(std::string_view line);

  [[nodiscard]] std::string view() const override { return view_.json(); }
  [[nodiscard]] std::uint64_t newest() const override { return view_.id(); }
  // "worker:3 is 41 % slower: backward"; empty: no task is slow, or there are no measures.
  [[nodiscard]] std::string slowest() const { return view_.slowest(); }
  void subscribe(Listener listener) override { listener_ = std::move(listener); }

 private:
  RunView view_;
  Listener listener_;
};

}  // namespace disttf::roles
