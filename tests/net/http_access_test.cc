// Access control of a page: the names under which it is reachable, the origin of the requesting
// page, and which requests, of any method, only the link's cookie permits.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "net/http/access_tokens.h"
#include "net/http/browser_guard.h"
#include "tests/data/scratch.h"
#include "tests/support/thrown.h"

namespace disttf::net {
namespace {

using testing::HasSubstr;

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";

class BrowserGuardTest : public testing::Test {
 protected:
  static BrowserAccess access() {
    return {.secret = kSecret,
            .cookie = "disttf_8080",
            .names = {"train.example.org"},
            .is_open = [](std::string_view path) { return path == "/" || path == "/v1/run"; }};
  }
  static HttpServerRequest request(const std::string& method, const std::string& path) {
    HttpServerRequest request;
    request.method = method;
    request.path = path;
    request.host = "127.0.0.1:8080";
    return request;
  }
  static HttpServerRequest with_cookie(HttpServerRequest request,
                                       const std::string& value = kSecret) {
    request.cookie = "other=1; disttf_8080=" + value + "; last=2";
    return request;
  }
  // Returns 0 if the request may be answered.
  int status_of(HttpServerRequest request) {
    const std::optional<HttpReply> reply = guard_.check(request);
    may_change_ = request.may_change;
    return reply ? reply->status : 0;
  }
  int status_at(const std::string& host) {
    HttpServerRequest asked = request("GET", "/v1/run");
    asked.host = host;
    return status_of(asked);
  }

  BrowserGuard guard_{access()};
  bool may_change_ = false;
};

TEST_F(BrowserGuardTest, IsReachedByAddressesAndNamesThatAreKnown) {
  for (const char* const host :
       {"127.0.0.1", "127.0.0.1:8080", "127.0.0.1:9", "127.8.8.8:1", "localhost", "LOCALHOST:1",
        "localhost.", "[::1]:8080", "train.example.org", "Train.Example.org:443"}) {
    EXPECT_EQ(status_at(host), 0) << host;
  }
}

TEST_F(BrowserGuardTest, IsNotReachedByOtherNames) {
  for (const char* const host :
       {"", "evil.example", "localhost.evil.example", "evil.example:8080", "127.0.0.1.evil.example",
        "10.0.0.1", "127.1", "0.0.0.0:8080", "user@127.0.0.1", "127.0.0.1/x", "127.0.0.1?x",
        "[::2]", "example.org", "localhost:x", "127.0.0.1:0"}) {
    EXPECT_EQ(status_at(host), 421) << host;
  }
}

TEST_F(BrowserGuardTest, AClientOfHttp10MayNameNoHostAsNoBrowserDoes) {
  HttpServerRequest asked = request("GET", "/");
  asked.host = "";
  EXPECT_EQ(status_of(asked), 421);
  asked.is_http10 = true;
  EXPECT_NE(status_of(asked), 421);
}

TEST_F(BrowserGuardTest, RefusesAnotherNameBeforeAnythingElse) {
  HttpServerRequest asked = with_cookie(request("POST", "/nowhere"));
  asked.host = "rebound.example";
  asked.origin = "http://rebound.example";
  EXPECT_EQ(status_of(asked), 421);
  guard_.add_link("token");
  asked = request("GET", "/");
  asked.query = "token=token";
  asked.host = "rebound.example";
  EXPECT_EQ(status_of(asked), 421) << "and the link stays good";
  asked.host = "localhost";
  EXPECT_THAT(guard_.check(asked)->fields,
              testing::Contains(testing::Pair("Set-Cookie", testing::_)));
}

TEST_F(BrowserGuardTest, OfAllAddressesTakesEveryAddressAndNoName) {
  BrowserAccess everywhere = access();
  everywhere.address = "0.0.0.0";
  guard_ = BrowserGuard(everywhere);
  EXPECT_EQ(status_at("10.0.0.1:80"), 0);
  EXPECT_EQ(status_at("[fe80::1]"), 0);
  EXPECT_EQ(status_at("evil.example"), 421);
  everywhere.address = "10.0.0.1";
  guard_ = BrowserGuard(everywhere);
  EXPECT_EQ(status_at("10.0.0.1:80"), 0);
  EXPECT_EQ(status_at("10.0.0.2:80"), 421);
}

TEST_F(BrowserGuardTest, LetsAnyClientReadWhatIsOpen) {
  EXPECT_EQ(status_of(request("GET", "/")), 0);
  EXPECT_FALSE(may_change_);
  EXPECT_EQ(status_of(request("HEAD", "/v1/run")), 0);
  EXPECT_EQ(status_of(request("GET", "/v1/logs/worker:0")), 401);
}

TEST_F(BrowserGuardTest, WantsTheCookieForTheRestWhateverTheMethod) {
  for (const char* const method :
       {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MKCOL"}) {
    for (const char* const path : {"/v1/stop", "/v1/pods/worker:1/restart", "/nowhere"}) {
      HttpServerRequest asked = request(method, path);
      asked.origin = "http://127.0.0.1:8080";
      EXPECT_EQ(status_of(asked), 401) << method << path;
      EXPECT_EQ(status_of(with_cookie(asked)), 0) << method << path;
      EXPECT_TRUE(may_change_);
    }
  }
  for (const char* const path : {"/", "/v1/run"}) {
    EXPECT_EQ(status_of(request("DELETE", path)), 401) << "open paths allow only reading";
  }
}

TEST_F(BrowserGuardTest, KnowsTheCookieFromOthers) {
  const HttpServerRequest logs = request("GET", "/v1/logs/worker:0");
  EXPECT_EQ(status_of(with_cookie(logs)), 0);
  for (const std::string wrong :
       {"", "0", "0123456789abcdef0123456789abcdee", "0123456789abcdef0123456789abcdef0"}) {
    EXPECT_EQ(status_of(with_cookie(logs, wrong)), 401) << wrong;
  }
  HttpServerRequest other = logs;
  other.cookie = "disttf_8081=" + std::string(kSecret) + ";xdisttf_8080=" + kSecret;
  EXPECT_EQ(status_of(other), 401) << "another page of the same host has another name for it";
  other.cookie = "disttf_8080=" + std::string(kSecret);
  EXPECT_EQ(status_of(other), 0);
  other.cookie = std::string(5000, ';') + " =; disttf_8080";
  EXPECT_EQ(status_of(other), 401);
}

TEST_F(BrowserGuardTest, WantsThePagesOwnOriginForChanges) {
  HttpServerRequest asked = with_cookie(request("POST", "/v1/stop"));
  for (const char* const origin :
       {"", "null", "http://evil.example", "http://127.0.0.1:9999", "http://127.0.0.1",
        "https://127.0.0.1:8081", "http://localhost:8080", "file://", "http://127.0.0.1:8080/x"}) {
    asked.origin = origin;
    EXPECT_EQ(status_of(asked), 403) << origin;
  }
  asked.origin = "http://127.0.0.1:8080";
  EXPECT_EQ(status_of(asked), 0);
  asked.origin = "https://train.example.org";
  EXPECT_EQ(status_of(asked), 0) << "a proxy that hands on another Host";
}

// An attacker in the network path can pretend to be the same host over http.
TEST(BrowserGuardOverHttps, ItsOwnOriginIsOverHttps) {
  BrowserGuard guard({.secret = kSecret,
                      .cookie = "c",
                      .names = {"train.example.org"},
                      .is_https = true,
                      .is_open = [](std::string_view) { return false; }});
  HttpServerRequest asked;
  asked.method = "POST";
  asked.path = "/v1/stop";
  asked.host = "train.example.org:8080";
  asked.cookie = "c=" + std::string(kSecret);
  asked.origin = "http://train.example.org:8080";
  EXPECT_TRUE(guard.check(asked).has_value());
  asked.origin = "https://train.example.org:8080";
  EXPECT_FALSE(guard.check(asked).has_value());
}

TEST_F(BrowserGuardTest, GivesTheCookieForALinkOnce) {
  guard_.add_link("first");
  HttpServerRequest link = request("GET", "/");
  link.query = "token=first";
  std::optional<HttpReply> reply = guard_.check(link);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 303);
  EXPECT_EQ(
      head_text(*reply, false),
      "HTTP/1.1 303 See Other\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
      "Location: /\r\nSet-Cookie: disttf_8080=" +
          std::string(kSecret) +
          "; Path=/; HttpOnly; SameSite=Strict\r\nContent-Length: 0\r\n\r\n");
  reply = guard_.check(link);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->has_field("Set-Cookie")) << "it has been used";
  EXPECT_TRUE(reply->has_field("Location"));
}

TEST_F(BrowserGuardTest, GivesNoCookieForAWrongLink) {
  guard_.add_link("first");
  for (const char* const query : {"token=", "token=firs", "token=first1", "token=First", "token"}) {
    HttpServerRequest link = request("GET", "/");
    link.query = query;
    const std::optional<HttpReply> reply = guard_.check(link);
    EXPECT_FALSE(reply && reply->has_field("Set-Cookie")) << query;
  }
  HttpServerRequest posted = request("POST", "/");
  posted.query = "token=first";
  EXPECT_EQ(status_of(posted), 401);
}

TEST_F(BrowserGuardTest, KeepsAFewLinks) {
  for (int each = 0; each < 100; ++each) guard_.add_link("link" + std::to_string(each));
  int good = 0;
  for (int each = 0; each < 100; ++each) {
    HttpServerRequest link = request("GET", "/");
    link.query = "token=link" + std::to_string(each);
    good += guard_.check(link)->has_field("Set-Cookie") ? 1 : 0;
  }
  EXPECT_EQ(good, static_cast<int>(BrowserGuard::kMaxLinks));
}

TEST_F(BrowserGuardTest, SealsWhatItHandsOut) {
  HttpReply reply;
  BrowserGuard::seal(reply);
  const std::string head = head_text(reply, true);
  EXPECT_THAT(
      head, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'; style-src "
                      "'self'; img-src "
                      "'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                      "form-action 'none'\r\n"));
  for (const char* const field :
       {"X-Content-Type-Options: nosniff\r\n", "Referrer-Policy: no-referrer\r\n",
        "Cache-Control: no-store\r\n", "Cross-Origin-Resource-Policy: same-origin\r\n",
        "Connection: keep-alive\r\n"}) {
    EXPECT_THAT(head, HasSubstr(field));
  }
  HttpReply kept{.fields = {{"Cache-Control", "no-cache"}}};
  BrowserGuard::seal(kept);
  EXPECT_THAT(head_text(kept, true), Not(HasSubstr("no-store")));
}

// The names that a service answers to, and the pages that may send requests to it.

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

// Access control: the tokens of a file, as Authorization headers present them.

using testing::StartsWith;

const std::string kOne(32, 'a');
const std::string kTwo = "another_token-of.34~characters+/==";

class AccessTokensTest : public testing::Test {
 protected:
  // Replaces the file by rename, as a user would.
  void write(const std::string& text, std::filesystem::perms mode = std::filesystem::perms(0600)) {
    data::test::write(scratch_.path() / "next", data::test::bytes_of(text));
    std::filesystem::permissions(scratch_.path() / "next", mode);
    std::filesystem::rename(scratch_.path() / "next", path_);
  }
  [[nodiscard]] std::string refused() const {
    return sentence_of([&] { return AccessTokens(path_, {}); }, "");
  }

  const data::test::ScratchDirectory scratch_;
  const std::string path_ = scratch_.path() / "tokens";
};

TEST_F(AccessTokensTest, AreSaidAsABearerOrAsAPassword) {
  write(kOne + "\n\n  " + kTwo + "\r\n");
  AccessTokens tokens(path_, {});
  EXPECT_EQ(tokens.offered(), kOne);
  for (const std::string& good : std::vector<std::string>{
           "Bearer " + kOne,
           "Bearer " + kTwo,
           "bearer  " + kOne + " ",
           // printf 'x:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' | base64, and without a name
           std::string("Basic eDphYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYQ=="),
           std::string("basic OmFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"),
       }) {
    EXPECT_TRUE(tokens.admit(good)) << good;
  }
  for (const std::string& bad : std::vector<std::string>{
           std::string(),
           kOne,
           "Bearer",
           "Bearer ",
           "Bearer " + kOne + "a",
           "Bearer " + kOne.substr(1),
           "Bearer " + kOne + " " + kTwo,
           "Bearer " + kOne + "\n" + kTwo,
           "Token " + kOne,
           "Basic " + kOne,
           std::string("Basic"),
           std::string("Basic "),
           std::string("Basic ===="),
           // without a colon
           std::string("Basic YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="),
           // the token as the name
           std::string("Basic YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE6"),
           "Basic " + std::string(100'000, 'Y'),
       }) {
    EXPECT_FALSE(tokens.admit(bad)) << bad.substr(0, 100);
  }
}

TEST_F(AccessTokensTest, OfAFileThatIsNoneAreRefusedWithoutShowingThem) {
  EXPECT_EQ(refused(), "--token_file: \"" + path_ + "\" cannot be read: No such file or directory");
  write(kOne, std::filesystem::perms(0640));
  EXPECT_THAT(refused(), HasSubstr("its mode must be 0600 or 0400"));
  write("");
  EXPECT_THAT(refused(), HasSubstr("has 0 tokens: allowed are 1 to 64"));
  const std::string unseen = "a token with a character that is not visible, or not ASCII";
  for (const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
           {kOne.substr(1), "has a token of " + std::to_string(kOne.size() - 1) + " bytes"},
           {kOne + " " + kTwo, unseen},
           {kOne + "\xc3\xa9", unseen}}) {
    write(text);
    EXPECT_THAT(refused(), HasSubstr(sentence));
    EXPECT_THAT(refused(), testing::Not(HasSubstr("aaa")));
  }
  std::string many;
  for (int i = 0; i < 65; ++i) many += kOne + "\n";
  write(many);
  EXPECT_THAT(refused(), HasSubstr("has 65 tokens"));
  write(std::string(100'000, 'a'));
  EXPECT_THAT(refused(), HasSubstr("is too long"));
}

// The file is checked once a second.
TEST_F(AccessTokensTest, ComeAndGo) {
  write(kOne);
  std::string warned;
  AccessTokens tokens(path_, [&](std::string_view sentence) { warned = sentence; });
  EXPECT_TRUE(tokens.admit("Bearer " + kOne));
  const auto comes_to = [&](const std::string& token, bool admitted) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (tokens.admit("Bearer " + token) != admitted) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  };
  write(kTwo);
  EXPECT_TRUE(comes_to(kTwo, true));
  EXPECT_FALSE(tokens.admit("Bearer " + kOne));
  write("\n");
  EXPECT_TRUE(comes_to(kTwo, false)) << "no token is valid any more";
  EXPECT_EQ(tokens.offered(), "");
  write(kTwo);
  EXPECT_TRUE(comes_to(kTwo, true));
  EXPECT_EQ(warned, "");
  write("short");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (warned.empty() && std::chrono::steady_clock::now() < until) {
    EXPECT_TRUE(tokens.admit("Bearer " + kTwo));
  }
  EXPECT_THAT(warned, HasSubstr("; the previous tokens stay in use"));
  // A corrected file is accepted although its text is the same.
  warned.clear();
  write(kOne, std::filesystem::perms(0644));
  const auto warns_by = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (warned.empty() && std::chrono::steady_clock::now() < warns_by) {
    EXPECT_FALSE(tokens.admit("Bearer " + kOne));
  }
  EXPECT_THAT(warned, HasSubstr("its mode must be 0600 or 0400"));
  std::filesystem::permissions(path_, std::filesystem::perms(0600));
  EXPECT_TRUE(comes_to(kOne, true));
}

}  // namespace
}  // namespace disttf::net
