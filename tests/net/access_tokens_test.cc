// Access control: the tokens of a file, as Authorization headers present them.
#include "net/http/access_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <asio/use_future.hpp>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http/http_server.h"
#include "net/transport/listening.h"
#include "tests/data/scratch.h"
#include "tests/net/raw_http_client.h"

namespace disttf::net {
namespace {

using test::RawClient;
using testing::HasSubstr;
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
    try {
      static_cast<void>(AccessTokens(path_, {}));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
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

class ServerWithTokens : public AccessTokensTest {
 protected:
  ~ServerWithTokens() override {
    if (!thread_.joinable()) return;
    asio::post(context_, [this] { server_->stop(); });
    thread_.join();
  }
  void serve(std::function<void(HttpServer&, asio::ip::tcp::acceptor)> listen) {
    write(kOne);
    server_.emplace(
        context_,
        [](const HttpServerRequest& request) {
          return HttpReply{.body = request.method + " " + request.path};
        },
        HttpServerOptions{
            .audit =
                [this](const HttpServerRequest& request, int status, std::size_t untold) {
                  audited_ += request.method + " " + request.path + " " + std::to_string(status) +
                              " by " + request.peer + " +" + std::to_string(untold) + "\n";
                },
            .audit_interval = audit_interval_});
    auto acceptor = listen_on(context_, 0, ListenScope::kLoopback);
    port_ = acceptor.local_endpoint().port();
    server_->listen(
        asio::local::stream_protocol::acceptor(context_, {(scratch_.path() / "control").string()}));
    listen(*server_, std::move(acceptor));
    thread_ = std::thread([this] { context_.run(); });
  }
  [[nodiscard]] std::string ask(const std::string& method, const std::string& fields) const {
    return RawClient(port_)
        .write(method + " /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + fields +
               "\r\n")
        .read();
  }
  [[nodiscard]] std::shared_ptr<AccessTokens> tokens() const {
    return std::make_shared<AccessTokens>(path_, [](std::string_view) {});
  }

  std::chrono::milliseconds audit_interval_ = std::chrono::hours(1);
  std::string audited_;  // of the server's thread until that has ended
  asio::io_context context_{1};
  std::optional<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(ServerWithTokens, AnswersWhoSaysOneAndTellsOthersHow) {
  serve([this](HttpServer& server, asio::ip::tcp::acceptor acceptor) {
    server.listen(std::move(acceptor), HttpAccess{.tokens = tokens()});
  });
  EXPECT_THAT(ask("GET", "Authorization: Bearer " + kOne + "\r\n"), HasSubstr("GET /x"));
  const std::string reply = ask("GET", "");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(reply, HasSubstr("WWW-Authenticate: Bearer realm=\"disttf\"\r\n"
                               "WWW-Authenticate: Basic realm=\"disttf\", charset=\"UTF-8\"\r\n"));
  EXPECT_THAT(ask("GET", "Authorization: Bearer " + kTwo + "\r\n"), StartsWith("HTTP/1.1 401 "));
}

TEST_F(ServerWithTokens, OfAPageWantsTheCookieForChangesAsWell) {
  serve([this](HttpServer& server, asio::ip::tcp::acceptor acceptor) {
    BrowserAccess access{.secret = std::string(32, 's'),
                         .cookie = "page",
                         .is_open = [](std::string_view path) { return path == "/x"; },
                         .tokens = tokens()};
    server.listen(std::move(acceptor), std::make_shared<BrowserGuard>(access));
  });
  const std::string bearer = "Authorization: Bearer " + kOne + "\r\n";
  const std::string cookie = "Cookie: page=" + std::string(32, 's') + "\r\n";
  EXPECT_THAT(ask("GET", ""), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask("GET", bearer), HasSubstr("GET /x"));
  EXPECT_THAT(ask("GET", cookie), HasSubstr("GET /x"));
  EXPECT_THAT(ask("POST", bearer + "Origin: http://127.0.0.1\r\n"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask("POST", cookie + "Origin: http://127.0.0.1\r\n"), HasSubstr("POST /x"));
}

TEST_F(ServerWithTokens, TellsWhoHasAskedForMoreThanReading) {
  serve([this](HttpServer& server, asio::ip::tcp::acceptor acceptor) {
    server.listen(std::move(acceptor), HttpAccess{.tokens = tokens()});
  });
  const std::string bearer = "Authorization: Bearer " + kOne + "\r\n";
  for (const char* method : {"GET", "HEAD", "OPTIONS"}) {
    EXPECT_THAT(ask(method, bearer), StartsWith("HTTP/1.1 200 "));
  }
  EXPECT_THAT(ask("POST", bearer), HasSubstr("POST /x"));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(ask("DELETE", ""), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(
      RawClient(scratch_.path() / "control").write("PUT /y HTTP/1.1\r\nHost: x\r\n\r\n").read(),
      HasSubstr("PUT /y"));
  asio::post(context_, [this] { server_->stop(); });
  thread_.join();
  EXPECT_THAT(audited_, testing::MatchesRegex("POST /x 200 by 127\\.0\\.0\\.1:[0-9]+ .0\n"
                                              "DELETE /x 401 by 127\\.0\\.0\\.1:[0-9]+ .0\n"
                                              "PUT /y 200 by uid [0-9]+, pid " +
                                              std::to_string(::getpid()) + " .0\n"))
      << "one line per interval for refused requests";
}

TEST_F(ServerWithTokens, ReportsTheNumberOfUnreportedRefusals) {
  audit_interval_ = std::chrono::milliseconds(200);
  serve([this](HttpServer& server, asio::ip::tcp::acceptor acceptor) {
    server.listen(std::move(acceptor), HttpAccess{.tokens = tokens()});
  });
  // Repeats until a line appears after some requests without one.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int asked = 0;
  std::string told;
  while (told.find('\n') == told.rfind('\n') && std::chrono::steady_clock::now() < until) {
    static_cast<void>(ask("DELETE", ""));
    ++asked;
    told = asio::post(context_, asio::use_future([this] { return audited_; })).get();
  }
  const std::string last = told.substr(told.find('\n') + 1);
  EXPECT_EQ(std::stoi(last.substr(last.rfind('+'))), asked - 2) << told;
}

}  // namespace
}  // namespace disttf::net
