// The page of a run, as replies to requests:
//
//   GET /               the page; GET /assets/FILE: its parts
//   GET /v1/run         the run's view, one JSON object
//   GET /v1/stream      server-sent events: "id: 12", "data: RECORD", after Last-Event-ID
//                       (or ?after=12) if those are still held; else first "event: view" with the
//                       view. "event: end": no more follow
//   GET /v1/access      {"verbs": ["restart"]}: the changes that the client may make
//
// For recorded runs /v1/access also has "runs": the name of each, and its number of records,
// [{"name": "/srv/mnist", "records": 12}]. ?run=1 of a request selects the second run; the default
// is the first.
//
// Every client that reaches the address may read all of it; control_verbs.h has the changes. Memory
// is bounded: by the records held for reconnecting readers, the number of readers and the unread
// bytes of each.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"

namespace disttf::roles {

// The interface between a run and its displays: the present view, and each new record.
//
// A launch, a chief, a driver and a folder of records implement it. Everything is called on the one
// thread that serves the page.
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

class RunPage {
 public:
  // Held for readers that reconnect: about a minute's records of a run of ten tasks.
  static constexpr std::size_t kMaxHeldBytes = 192 * 1024;
  // Each reader may leave HttpLineStream::kMaxPendingBytes unread.
  static constexpr std::size_t kMaxReaders = 24;

  // The feed must outlive the page. `verbs`: the changes for permitted clients, such as "restart";
  // names of the page's buttons.
  RunPage(RunFeed& feed, std::vector<std::string> verbs);

  // nullopt: the path is not the page's.
  [[nodiscard]] std::optional<net::HttpReply> answer(const net::HttpServerRequest& request);

  struct Shown {
    std::string name;
    RunPage* page = nullptr;
  };
  // Makes this the page of several recorded runs, of which this one is the first; the others must
  // live as long as requests come. Once.
  void show_runs(std::vector<Shown> runs) { runs_ = std::move(runs); }

  // Ends the streams of readers.
  void end();

  // Whether the path is a public one of the page.
  [[nodiscard]] static bool is_open(std::string_view path) noexcept;

 private:
  struct Held {
    std::uint64_t id = 0;
    std::string event;  // as sent
  };

  void on_record(std::uint64_t id, std::string_view record);
  [[nodiscard]] net::HttpReply access(const net::HttpServerRequest& request) const;
  // The page of the selected run; nullptr: there is no such run.
  [[nodiscard]] RunPage* run_in(std::string_view query);
  void end_readers();
  [[nodiscard]] net::HttpReply stream(const net::HttpServerRequest& request);
  [[nodiscard]] std::string events_after(std::optional<std::uint64_t> id) const;

  RunFeed& feed_;
  std::vector<std::string> verbs_;
  std::deque<Held> held_;  // the newest records, without gaps
  std::size_t held_bytes_ = 0;
  std::vector<std::weak_ptr<net::HttpLineStream>> readers_;
  std::vector<Shown> runs_;  // empty: the page of a running run
  bool ended_ = false;
};

}  // namespace disttf::roles
