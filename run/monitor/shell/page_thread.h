// The page of a run in a process with other work: records come from any thread, a thread of its own
// serves them. Callers never wait.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "run/monitor/shell/page_server.h"

namespace disttf::roles {

class PageThread {
 public:
  // The changes that the page offers; an empty function: not offered. Called on the page's thread;
  // they return a sentence about what is done.
  struct Changes {
    std::function<std::string()> save = {};
    std::function<std::string()> trace = {};  // a timeline with the default number of steps
    std::function<std::string()> stop = {};
  };

  // Throws Failure (kCannotListen), and std::system_error if no thread can be started.
  PageThread(const PageOptions& options, Changes changes);
  ~PageThread();  // ends the streams of readers
  PageThread(const PageThread&) = delete;
  PageThread& operator=(const PageThread&) = delete;

  // A link that works for one browser, made at the start.
  [[nodiscard]] const std::string& link() const noexcept { return link_; }

  // Takes a record, without its line's end. Callable from any thread.
  void take(std::string line);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::string link_;
};

}  // namespace disttf::roles
