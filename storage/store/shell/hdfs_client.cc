#include "storage/store/shell/hdfs_client.h"

#include <system_error>
#include <utility>

#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "storage/store/core/store_error.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kMaxHdfsAnswer = std::size_t{64} << 20U;
// The default ports for HTTP and HTTPS of a Hadoop 3 NameNode.
constexpr const char* kHttpPort = "9870";
constexpr const char* kHttpsPort = "9871";

std::string first_word(std::string& list) {
  const std::size_t comma = std::min(list.find(','), list.size());
  std::string word(net::trim(std::string_view(list).substr(0, comma)));
  list.erase(0, comma + 1);
  return word;
}

std::string host_of(const std::string& address) { return address.substr(0, address.find(':')); }

std::string port_of(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  return colon == std::string::npos ? "" : address.substr(colon + 1);
}

// The HTTP addresses, as Hadoop's tools find them: those of a nameservice if the URL names one,
// else that of the host; the URL's port is of another protocol.
std::vector<std::string> addresses_of(const std::string& name, const std::string& site,
                                      bool is_https) {
  const std::string key = is_https ? "dfs.namenode.https-address" : "dfs.namenode.http-address";
  std::vector<std::string> addresses;
  std::string nodes = hadoop_property(site, "dfs.ha.namenodes." + name);
  while (!nodes.empty()) {
    const std::string address = hadoop_property(site, key + "." + name + "." + first_word(nodes));
    if (!address.empty()) addresses.push_back(address);
  }
  if (addresses.empty()) {
    std::string port = port_of(hadoop_property(site, key));
    if (port.empty()) port = is_https ? kHttpsPort : kHttpPort;
    addresses.push_back(host_of(name) + ":" + port);
  }
  return addresses;
}

std::string site_of(const StoreEnvironment& environment) {
  const std::string folder = environment.value_of("HADOOP_CONF_DIR");
  return folder.empty() ? "" : small_file(folder + "/hdfs-site.xml");
}

std::vector<net::Url> name_nodes(const StoreUrl& root, const StoreEnvironment& environment) {
  std::vector<std::string> addresses;
  bool is_https = root.scheme == "swebhdfs";
  if (root.scheme == "hdfs") {
    const std::string site = site_of(environment);
    is_https = hadoop_property(site, "dfs.http.policy") == "HTTPS_ONLY";
    addresses = addresses_of(root.bucket, site, is_https);
  } else {
    std::string port = port_of(root.bucket);
    if (port.empty()) port = is_https ? kHttpsPort : kHttpPort;
    addresses.push_back(host_of(root.bucket) + ":" + port);
  }
  std::vector<net::Url> urls;
  urls.reserve(addresses.size());
  for (const std::string& address : addresses) {
    urls.push_back(net::parse_url("the NameNode of " + to_string(root),
                                  (is_https ? "https://" : "http://") + address));
  }
  return urls;
}

// A token if there is one, since Kerberos accepts nothing else; else a user name, which servers
// without Kerberos trust.
std::string identity_of(const StoreEnvironment& environment) {
  std::string tokens = environment.value_of("HADOOP_TOKEN");
  std::string token = first_word(tokens);
  if (token.empty()) {
    const std::string file = small_file(environment.value_of("HADOOP_TOKEN_FILE_LOCATION"));
    token = hdfs_token_from(file).value_or("");
  }
  if (!token.empty()) return "&delegation=" + percent_encoded(token, false);
  std::string who;
  for (const char* name : {"HADOOP_USER_NAME", "USER", "LOGNAME"}) {
    if (who.empty()) who = environment.value_of(name);
  }
  std::string identity = who.empty() ? "" : "&user.name=" + percent_encoded(who, false);
  const std::string other = environment.value_of("HADOOP_PROXY_USER");
  return other.empty() ? identity : identity + "&doas=" + percent_encoded(other, false);
}

// Removes the query of the URL at the beginning of a sentence: it may contain a token.
std::string without_query(std::string sentence) {
  const std::size_t query = sentence.find('?');
  const std::size_t end = sentence.find(": ", std::min(query, sentence.size()));
  if (end != std::string::npos) sentence.erase(query, end - query);
  return sentence;
}

}  // namespace

// Like Hadoop's tools, it ignores proxies: a NameNode is in the local network.
HdfsClient::HdfsClient(const StoreUrl& root, const StoreEnvironment& environment)
    : root_(to_string(StoreUrl{.scheme = root.scheme, .bucket = root.bucket, .key = {}})),
      names_(name_nodes(root, environment)),
      environment_(environment),
      identity_(identity_of(environment)),
      at_name_nodes_("", {}, interrupt_),
      at_data_nodes_("", {}, interrupt_) {}

std::string HdfsClient::identity() const {
  const std::scoped_lock lock(mutex_);
  return identity_;
}

void HdfsClient::renew_identity() {
  // Files are read without the lock. A scheduler replaces the file of tokens before they expire.
  std::string found = identity_of(environment_);
  const std::scoped_lock lock(mutex_);
  identity_ = std::move(found);
}

net::HttpAnswer HdfsClient::ask_once(const Request& request) {
  net::HttpQuestion question{.method = request.method,
                             .url = names_[active_ % names_.size()],
                             .fields = {},
                             .body = {},
                             .max_answer_bytes = kMaxHdfsAnswer};
  question.url.target =
      "/webhdfs/v1" + percent_encoded(request.path, true) + "?op=" + request.operation;
  for (const auto& [name, value] : request.query) {
    question.url.target += "&" + name + "=" + percent_encoded(value, false);
  }
  question.url.target += identity();
  // HttpFS, which redirects to itself, accepts bytes only with this type.
  if (request.is_at_data_node) question.fields = {{"content-type", "application/octet-stream"}};
  net::HttpAnswer answer = at_name_nodes_.ask(question);
  if (!answer.error) clock_.note(answer.head.date);
  if (answer.error || !request.is_at_data_node ||
      answer.head.status != net::http_status::kTemporaryRedirect) {
    return answer;
  }
  std::string why;
  auto data_node = net::read_url(answer.head.location, why);
  if (!data_node) return answer;  // an error status
  question.url = *std::move(data_node);
  // The NameNode gets no bytes: it answers with the address of a DataNode, which gets them.
  question.body = request.body;
  answer = at_data_nodes_.ask(question);
  if (!answer.error) clock_.note(answer.head.date);
  return answer;
}

std::optional<StoreRefusal> HdfsClient::refusal_of(const Request& request,
                                                   const net::HttpAnswer& answer) {
  if (answer.error) {
    StoreRefusal refusal = refusal_of_error(answer);
    refusal.sentence = without_query(std::move(refusal.sentence));
    return refusal;
  }
  if (answer.head.status >= 300) {
    return hdfs_refusal(answer.head.status, answer.head.reason, answer.body);
  }
  // A body without a length ends with its connection, so one that breaks off looks complete.
  if (!request.expected_bytes || *request.expected_bytes == answer.body.size()) return std::nullopt;
  return StoreRefusal{.error = StoreError::kAway,
                      .sentence = "the answer is truncated: " + std::to_string(answer.body.size()) +
                                  " of " + std::to_string(*request.expected_bytes) + " bytes",
                      .may_pass = true};
}

std::string HdfsClient::ask(const Request& request, bool* was_repeated) {
  return ask_with_retries(
             {.what = request.operation + " " + url_of(request.path),
              .ask = [&] { return ask_once(request); },
              .refusal_of = [&](const auto& answer) { return refusal_of(request, answer); },
              .renew = [this] { renew_identity(); },
              // Of a NameNode with a standby the other one is tried next; the one that answers
              // stays in use.
              .before_retry = [this] { ++active_; }},
             interrupt_, was_repeated)
      .body;
}

std::chrono::sys_seconds HdfsClient::now() {
  if (!clock_.is_known()) {
    static_cast<void>(ask({.method = "GET", .operation = "GETFILESTATUS", .path = "/"}));
  }
  return clock_.now();
}

}  // namespace disttf::roles
