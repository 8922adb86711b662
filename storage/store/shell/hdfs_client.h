// A client of WebHDFS. A NameNode knows the locations of files; it redirects reads and writes of
// bytes to a DataNode.
//
// Retries a request up to three times if that may help, each time at the next NameNode, if there
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
#include "net/waiting/interrupt.h"
#include "storage/store/core/aws_identity.h"
#include "storage/store/core/store_url.h"
#include "storage/store/core/webhdfs_answers.h"
#include "storage/store/shell/store_environment.h"
#include "storage/store/shell/store_session.h"

namespace disttf::roles {

class HdfsClient {
 public:
  // `environment` must outlive the object. Throws std::invalid_argument if Hadoop's configuration
  // has a malformed NameNode address.
  HdfsClient(const StoreUrl& root, const StoreEnvironment& environment);

  struct Request {
    std::string method;
    std::string operation;  // "LISTSTATUS"
    std::string path;       // "/run/a file", at least "/"
    NamedTexts query{};
    bool is_at_data_node = false;  // the NameNode redirects to it
    std::span<const std::byte> body{};
    // The size of the answer: another size means a broken connection, which not every body shows.
    std::optional<std::size_t> expected_bytes{};
  };
  // Throws std::system_error with a sentence that names the URL. Sets `was_repeated`, if not null,
  // when a try got no answer: it may have taken effect.
  std::string ask(const Request& request, bool* was_repeated = nullptr);

  [[nodiscard]] std::string url_of(const std::string& path) const { return root_ + path; }
  [[nodiscard]] std::chrono::sys_seconds now();

 private:
  [[nodiscard]] std::string identity() const;
  // Reads the credentials again, since a renewed token replaces its file.
  void renew_identity();
  [[nodiscard]] net::HttpAnswer ask_once(const Request& request);
  [[nodiscard]] static std::optional<StoreRefusal> refusal_of(const Request& request,
                                                              const net::HttpAnswer& answer);

  const std::string root_;               // "hdfs://namenode:8020"
  std::vector<net::Url> names_;          // the NameNodes
  std::atomic<std::size_t> active_ = 0;  // counts switches; modulo the size the NameNode in use
  const StoreEnvironment& environment_;
  mutable std::mutex mutex_;
  std::string identity_;            // appended to each query; never shown. Guarded by mutex_
  const net::Interrupt interrupt_;  // never set: a save is bounded, not interrupted
  SessionPool at_name_nodes_;
  SessionPool at_data_nodes_;
  StoreClock clock_;
};

}  // namespace disttf::roles
