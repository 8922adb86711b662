#include "run/monitor/shell/run_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/json/json_text.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/monitor/shell/asset_reply.h"

namespace disttf::roles {
namespace {

constexpr std::string_view kEventStream = "text/event-stream";
constexpr std::string_view kEnd = "event: end\ndata: {}\n";

std::string event_text(std::uint64_t id, std::string_view name, std::string_view data) {
  std::string text = "id: " + std::to_string(id) + "\n";
  if (!name.empty()) {
    text.append("event: ").append(name) += '\n';
  }
  return text.append("data: ").append(data) += '\n';
}

// The value of a parameter: for "run=1&after=7" and "after", "7".
std::optional<std::string_view> value_in(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view each = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(each.size() + 1, query.size()));
    if (each.size() > name.size() && each.starts_with(name) && each[name.size()] == '=') {
      return each.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// The last record that a client has: a browser that reconnects sends it in a header, a reopened
// page in ?after.
std::optional<std::uint64_t> last_seen(const net::HttpServerRequest& request) {
  if (!request.last_event_id.empty()) {
    return net::whole_number(request.last_event_id);
  }
  const std::optional<std::string_view> after = value_in(request.query, "after");
  return after ? net::whole_number(*after) : std::nullopt;
}

}  // namespace

RunPage::RunPage(RunFeed& feed, std::vector<std::string> verbs)
    : feed_(feed), verbs_(std::move(verbs)) {
  // The page lives as long as the feed, so it never unsubscribes.
  feed_.subscribe([this](std::uint64_t id, std::string_view record) { on_record(id, record); });
}

bool RunPage::is_open(std::string_view path) noexcept {
  return path == "/v1/run" || path == "/v1/stream" || path == "/v1/access" || is_asset(path);
}

std::optional<net::HttpReply> RunPage::answer(const net::HttpServerRequest& request) {
  if (!is_open(request.path)) {
    return std::nullopt;
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return net::error_reply(net::http_status::kMethodNotAllowed, request.path + " takes GET");
  }
  if (std::optional<net::HttpReply> reply = asset_reply(request.path, request)) {
    return reply;
  }
  if (request.path == "/v1/access") {
    return access(request);
  }
  RunPage* const run = run_in(request.query);
  if (run == nullptr) {
    return net::error_reply(net::http_status::kBadRequest,
                            "run: " + net::quoted(value_in(request.query, "run").value_or("")) +
                                " is not a run of this page, which has " +
                                std::to_string(runs_.size()) + "; the first is 0");
  }
  return request.path == "/v1/run" ? net::HttpReply{.body = run->feed_.view() + "\n"}
                                   : run->stream(request);
}

net::HttpReply RunPage::access(const net::HttpServerRequest& request) const {
  nlohmann::json json = {{"verbs", request.may_change ? verbs_ : std::vector<std::string>()}};
  for (const Shown& each : runs_) {
    json["runs"].push_back({{"name", each.name}, {"records", each.page->feed_.newest()}});
  }
  return {.body = data::json_text(json) + "\n"};
}

RunPage* RunPage::run_in(std::string_view query) {
  const std::optional<std::string_view> wanted = value_in(query, "run");
  if (!wanted) {
    return this;
  }
  const std::optional<std::uint64_t> number = net::whole_number(*wanted);
  return number && *number < runs_.size() ? runs_[*number].page : nullptr;
}

net::HttpReply RunPage::stream(const net::HttpServerRequest& request) {
  // Removes readers whose connections have closed; nothing else does.
  std::erase_if(readers_, [](const auto& each) { return each.expired(); });
  // Each reader holds a connection and a buffer.
  if (readers_.size() >= kMaxReaders) {
    return net::error_reply(net::http_status::kUnavailable, "too many readers of this run");
  }
  auto reader =
      // A reader that is too slow loses its connection; its browser reconnects with the id that it
      // has.
      std::make_shared<net::HttpLineStream>(net::HttpLineStream::WhenFull::kGiveUp);
  net::HttpReply reply{.content_type = std::string(kEventStream),
                       // No record can come between this text and the subscription: both happen on
                       // one thread.
                       .body = events_after(last_seen(request)),
                       .lines = reader};
  reply.fields.emplace_back("X-Accel-Buffering", "no");  // makes proxies pass on each event at once
  if (request.method == "HEAD") {
    return reply;
  }
  if (ended_) {
    reader->append(kEnd);
    reader->end();
  }
  readers_.push_back(reader);
  return reply;
}

// The events that a reader lacks who has all records up to `id`.
std::string RunPage::events_after(std::optional<std::uint64_t> id) const {
  const std::uint64_t newest = feed_.newest();
  const std::uint64_t oldest = held_.empty() ? newest + 1 : held_.front().id;
  // Too old, from another process, or new: send everything once.
  if (!id || *id > newest || *id + 1 < oldest) {
    return event_text(newest, "view", feed_.view()) + "\n";
  }
  std::string text = ": you have all before these\n\n";  // sends the head of the reply at once
  for (const Held& each : held_) {
    if (each.id > *id) {
      text.append(each.event) += '\n';
    }
  }
  return text;
}

void RunPage::on_record(std::uint64_t id, std::string_view record) {
  Held held{.id = id, .event = event_text(id, {}, record)};
  for (const std::weak_ptr<net::HttpLineStream>& each : readers_) {
    if (const std::shared_ptr<net::HttpLineStream> reader = each.lock()) {
      reader->append(held.event);  // with the end of its line, an empty line ends the event
    }
  }
  held_bytes_ += held.event.size();
  held_.push_back(std::move(held));
  // The oldest records go first; a reader that misses them gets the whole view.
  while (held_bytes_ > kMaxHeldBytes) {
    held_bytes_ -= held_.front().event.size();
    held_.pop_front();
  }
}

void RunPage::end() {
  end_readers();
  for (const Shown& each : runs_) {
    each.page->end_readers();  // the first page is this one, which has no readers left
  }
}

void RunPage::end_readers() {
  ended_ = true;
  for (const std::weak_ptr<net::HttpLineStream>& each : readers_) {
    if (const std::shared_ptr<net::HttpLineStream> reader = each.lock()) {
      reader->append(kEnd);
      reader->end();
    }
  }
  readers_.clear();
}

}  // namespace disttf::roles
