#include "run/monitor/shell/page_thread.h"

#include <array>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "data/json/json_text.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/monitor/shell/record_feed.h"
#include "run/process/keep_running.h"
#include "run/process/start_thread.h"

namespace disttf::roles {
namespace {

// The possible changes, by the last part of their path.
struct Verb {
  std::string_view name;
  std::function<std::string()> PageThread::Changes::*change;
};
constexpr std::array<Verb, 3> kVerbs = {{{"save", &PageThread::Changes::save},
                                         {"trace", &PageThread::Changes::trace},
                                         {"stop", &PageThread::Changes::stop}}};

std::vector<std::string> verbs_of(const PageThread::Changes& changes) {
  std::vector<std::string> verbs;
  for (const Verb& verb : kVerbs) {
    if (changes.*verb.change) {
      verbs.emplace_back(verb.name);
    }
  }
  return verbs;
}

net::HttpReply answer_change(const PageThread::Changes& changes,
                             const net::HttpServerRequest& request) {
  const std::function<std::string()>* change = nullptr;
  for (const Verb& verb : kVerbs) {
    if (request.path == "/v1/" + std::string(verb.name)) {
      change = &(changes.*verb.change);
    }
  }
  if (change == nullptr || !*change) {
    return net::error_reply(net::http_status::kNotFound,
                            net::quoted(request.path) + " is not there");
  }
  // A GET must change nothing: browsers and proxies repeat it, and other sites can cause it.
  if (request.method != "POST") {
    return net::error_reply(net::http_status::kMethodNotAllowed, request.path + " takes POST");
  }
  return {.body = data::json_text(nlohmann::json{{"message", (*change)()}}) + "\n"};
}

}  // namespace

struct PageThread::Parts {
  Parts(const PageOptions& options, Changes may_change)
      : changes(std::move(may_change)),
        page(feed, verbs_of(changes)),
        server(context, options, page, [this](const net::HttpServerRequest& request) {
          return answer_change(changes, request);
        }) {}

  const Changes changes;
  asio::io_context context{1};
  // Keeps run() from returning while no browser is connected.
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  // Used by the thread only, once it runs.
  RecordFeed feed;
  RunPage page;
  PageServer server;
  std::thread thread;
};

PageThread::PageThread(const PageOptions& options, Changes changes)
    : parts_(std::make_unique<Parts>(options, std::move(changes))),
      link_(parts_->server.make_link()) {
  parts_->thread = start_thread([this] { keep_running(parts_->context, "the page"); });
}

PageThread::~PageThread() {
  // On the page's own thread: its objects are not thread-safe.
  asio::post(parts_->context, [this] {
    parts_->server.stop();
    parts_->work.reset();
  });
  parts_->thread.join();
}

void PageThread::take(std::string line) {
  // Posted, so that the training thread neither waits for the page nor needs a lock.
  asio::post(parts_->context, [this, line = std::move(line)] { parts_->feed.take(line); });
}

}  // namespace disttf::roles
