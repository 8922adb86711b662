// A run as its records tell it, one after the other.
//
// Used by the one thread that serves the page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "roles/monitor/core/run_view.h"
#include "roles/monitor/shell/run_feed.h"

namespace disttf::roles {

class RecordFeed : public RunFeed {
 public:
  // A record, without its line's end. What is none is passed over.
  void take(std::string_view line);

  [[nodiscard]] std::string view() const override { return view_.json(); }
  [[nodiscard]] std::uint64_t newest() const override { return view_.id(); }
  // "worker:3 is 41 % slower: backward"; empty: nobody is, or nothing is known.
  [[nodiscard]] std::string slowest() const { return view_.slowest(); }
  void subscribe(Listener listener) override { listener_ = std::move(listener); }

 private:
  RunView view_;
  Listener listener_;
};

}  // namespace disttf::roles
