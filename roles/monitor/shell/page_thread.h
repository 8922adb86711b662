// The page of a run in a process that does something else: records come from any thread, a thread
// of its own serves them. Whoever tells it something never waits.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "roles/monitor/shell/page_server.h"

namespace disttf::roles {

class PageThread {
 public:
  // What may be changed from the page; an empty function: that not. They are called on the page's
  // thread, and return a sentence: what is done now.
  struct Changes {
    std::function<std::string()> save = {};
    std::function<std::string()> trace = {};  // a timeline of the usual number of steps
    std::function<std::string()> stop = {};
  };

  // Throws Failure (kCannotListen), and std::system_error where there is no thread.
  PageThread(const PageOptions& options, Changes changes);
  ~PageThread();  // readers are told that no more will come
  PageThread(const PageThread&) = delete;
  PageThread& operator=(const PageThread&) = delete;

  // A link that is good for one browser, made at the start.
  [[nodiscard]] const std::string& link() const noexcept { return link_; }

  // A record, without its line's end. From any thread.
  void take(std::string line);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::string link_;
};

}  // namespace disttf::roles
