// The names that a service answers to, and the pages that may send requests to it.
#include "net/http/known_hosts.h"

#include <gtest/gtest.h>

#include <string>

namespace disttf::net {
namespace {

// Returns the status of the refusal; 0 if the request is accepted.
int of_origin(const std::string& host, const std::string& origin, const ServiceNames& names = {},
              const std::string& method = "POST") {
  HttpServerRequest request;
  request.method = method;
  request.path = "/";
  request.host = host;
  request.origin = origin;
  const auto reply = refuse_other_pages(request, names);
  return reply ? reply->status : 0;
}
int of_host(const std::string& host, const ServiceNames& names = {}) {
  return of_origin(host, "", names, "GET");
}

TEST(KnownHosts, AreAddressesLocalhostAndNamesThatNoSiteCanHave) {
  for (const char* host : {"127.0.0.1:8501", "10.1.2.3", "[::1]:8501", "[2001:db8::1]", "localhost",
                           "LocalHost:8501", "localhost.", "a.localhost", "serve-0:8501",
                           "mnist-serve.ml.svc", "mnist-serve.ml.svc.cluster.local:8501", ""}) {
    EXPECT_EQ(of_host(host), 0) << host;
  }
  for (const char* host :
       {"rebound.evil.example:8501", "localhost.evil.example", "evil.svc.example",
        "127.0.0.1.evil.example", ".svc", "a.b", "user@localhost"}) {
    EXPECT_EQ(of_host(host), 421) << host;
  }
}

TEST(KnownHosts, AreThoseThatAreGiven) {
  const ServiceNames names{{"models.example.org", "*.knative.example.org"}};
  EXPECT_EQ(of_host("Models.Example.org:80", names), 0);
  EXPECT_EQ(of_host("mnist.knative.example.org", names), 0);
  EXPECT_EQ(of_host("knative.example.org", names), 421);
  EXPECT_EQ(of_host("evilknative.example.org", names), 421);
  EXPECT_EQ(of_host("example.org", names), 421);
  EXPECT_EQ(of_host("any.example", {{"*"}}), 0);
}

TEST(KnownHosts, PagesOfOtherSitesAskNothing) {
  EXPECT_EQ(of_origin("localhost:8501", ""), 0);  // not a browser
  EXPECT_EQ(of_origin("localhost:8501", "http://localhost:8501"), 0);
  EXPECT_EQ(of_origin("models.example.org", "https://models.example.org", {{"*"}}), 0);
  for (const char* origin : {"http://evil.example", "null", "http://localhost:3000", "file://"}) {
    EXPECT_EQ(of_origin("localhost:8501", origin), 403) << origin;
    EXPECT_EQ(of_origin("localhost:8501", origin, {{"*"}}), 403) << origin;
    EXPECT_EQ(of_origin("localhost:8501", origin, {}, "GET"), 0) << origin;
  }
  // Behind a proxy that changes the Host field.
  EXPECT_EQ(of_origin("127.0.0.1:8501", "https://models.example.org", {{"models.example.org"}}), 0);
}

}  // namespace
}  // namespace disttf::net
