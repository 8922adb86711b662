// What WebHDFS is asked and answers: a NameNode says what lies where, a DataNode, to which it sends
// whoever asks for bytes or has some, keeps them.
//
// A request is tried three times where that may help, each time at the next NameNode where there
// are several. Callable from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/http/http_session.h"
#include "net/http/url.h"
#include "net/transport/interrupt.h"
#include "roles/store/core/sigv4.h"
#include "roles/store/core/store_url.h"
#include "roles/store/core/webhdfs_answers.h"
#include "roles/store/shell/store_environment.h"
#include "roles/store/shell/store_session.h"

namespace disttf::roles {

class HdfsClient {
 public:
  // `environment` must outlive the object. Throws std::invalid_argument where what Hadoop's own
  // configuration says of a NameNode is none.
  HdfsClient(const StoreUrl& root, const StoreEnvironment& environment);

  struct Request {
    std::string method;
    std::string operation;  // "LISTSTATUS"
    std::string path;       // "/run/a file", "/" at least
    NamedTexts query{};
    bool is_at_data_node = false;  // the NameNode says which
    std::span<const std::byte> body{};
    // Of the answer: another number is a connection that broke, as not every end of a body shows.
    std::optional<std::size_t> expected_bytes{};
  };
  // Throws std::system_error with a sentence that names the URL. `was_repeated`, where given, is
  // set once a try has got no answer: it may have been done all the same.
  std::string ask(const Request& request, bool* was_repeated = nullptr);

  [[nodiscard]] std::string url_of(const std::string& path) const { return root_ + path; }
  [[nodiscard]] std::chrono::sys_seconds now();

 private:
  [[nodiscard]] std::string identity() const;
  // Looks again who we are: whoever renews a token writes its file anew.
  void renew_identity();
  [[nodiscard]] net::HttpAnswer ask_once(const Request& request);
  [[nodiscard]] static std::optional<StoreRefusal> refusal_of(const Request& request,
                                                              const net::HttpAnswer& answer);

  const std::string root_;               // "hdfs://namenode:8020"
  std::vector<net::Url> names_;          // the NameNodes
  std::atomic<std::size_t> active_ = 0;  // the one of them that is asked, counted on
  const StoreEnvironment& environment_;
  mutable std::mutex mutex_;
  std::string identity_;  // what follows each query: who we are; never shown. Guarded by mutex_
  const net::Interrupt interrupt_;  // nobody interrupts: a save is not broken off, but bounded
  SessionPool at_name_nodes_;
  SessionPool at_data_nodes_;
  StoreClock clock_;
};

}  // namespace disttf::roles
