// The interface between a run and its displays: the present view, and each new record.
//
// A launch, a chief, a driver and a folder of records implement it. Everything is called on the one
// thread that serves the page.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace disttf::roles {

class RunFeed {
 public:
  // `id` counts records; `record` is a line without its end.
  using Listener = std::function<void(std::uint64_t id, std::string_view record)>;

  virtual ~RunFeed() = default;

  // The run as one JSON object on one line, which includes all records up to newest().
  [[nodiscard]] virtual std::string view() const = 0;
  // The id of the newest record; 0: there is none.
  [[nodiscard]] virtual std::uint64_t newest() const = 0;
  // Calls `listener` with every record from now on, as long as the feed lives. Once.
  virtual void subscribe(Listener listener) = 0;
};

}  // namespace disttf::roles
