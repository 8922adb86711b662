// The page of a run, as replies to requests:
//
//   GET /               the page; GET /assets/FILE what it consists of
//   GET /v1/run         the run's view, one JSON object
//   GET /v1/stream      server-sent events: "id: 12", "data: RECORD"; from the one after
//   Last-Event-ID
//                       (or ?after=12) on where that is still held, else first "event: view" with
//                       the view. "event: end": no more will come
//   GET /v1/access      {"verbs": ["restart"]}: what whoever asks may change
//
// Of runs that have been written down /v1/access has "runs", too: of each its name, and how many of
// its records are known, [{"name": "/srv/mnist", "records": 12}]. ?run=1 of a request is then the
// second of them; without it, it is the first.
//
// All of it is open to whoever reaches the address; what changes a run is asked for elsewhere
// (control_verbs.h). Memory is bounded: by what is held for readers who come again, the number of
// readers and what each may leave unread.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "roles/monitor/shell/run_feed.h"

namespace disttf::roles {

class RunPage {
 public:
  // Of a reader that was away: about a minute's records of a run of ten tasks.
  static constexpr std::size_t kMaxHeldBytes = 192 * 1024;
  // Each is somebody who looks, and may leave HttpLineStream::kMaxPendingBytes unread.
  static constexpr std::size_t kMaxReaders = 24;

  // Both must outlive the page. `verbs`: what those who may can change, "restart"; names of the
  // page's buttons.
  RunPage(asio::io_context& context, RunFeed& feed, std::vector<std::string> verbs);

  // nullopt: it is none of the page's addresses.
  [[nodiscard]] std::optional<net::HttpReply> answer(const net::HttpServerRequest& request);

  struct Shown {
    std::string name;
    RunPage* page = nullptr;
  };
  // Of runs that have been written down: the page of all of them. This one is the first; the others
  // must live as long as requests come. Once.
  void show_runs(std::vector<Shown> runs) { runs_ = std::move(runs); }

  // Readers are told that no more will come.
  void end();

  // Whether it is an address of the page, which anybody may read.
  [[nodiscard]] static bool is_open(std::string_view path) noexcept;

 private:
  struct Held {
    std::uint64_t id = 0;
    std::string event;  // as it is sent
  };

  void on_record(std::uint64_t id, std::string_view record);
  [[nodiscard]] net::HttpReply access(const net::HttpServerRequest& request) const;
  // The one that is asked for; nullptr: there is no such run.
  [[nodiscard]] RunPage* run_in(std::string_view query);
  void end_readers();
  [[nodiscard]] net::HttpReply stream(const net::HttpServerRequest& request);
  [[nodiscard]] std::string events_after(std::optional<std::uint64_t> id) const;

  asio::io_context& context_;
  RunFeed& feed_;
  std::vector<std::string> verbs_;
  std::deque<Held> held_;  // the newest records, without a gap
  std::size_t held_bytes_ = 0;
  std::vector<std::weak_ptr<net::HttpLineStream>> readers_;
  std::vector<Shown> runs_;  // empty: it is the page of a run that goes on
  bool ended_ = false;
};

}  // namespace disttf::roles
