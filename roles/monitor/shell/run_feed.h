// A run as whoever shows it sees it: all that is known of it now, and each record as it comes.
//
// An interface; a launch, a chief, a driver and a folder of records each have one. Everything is
// called on the one thread that serves the page.
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

  // The run as one JSON object on one line. It holds every record up to newest().
  [[nodiscard]] virtual std::string view() const = 0;
  // The id of the newest record; 0: there is none.
  [[nodiscard]] virtual std::uint64_t newest() const = 0;
  // `listener` is called with every record from now on, for as long as the feed lives. Once.
  virtual void subscribe(Listener listener) = 0;
};

}  // namespace disttf::roles
