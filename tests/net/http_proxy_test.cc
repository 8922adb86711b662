#include "net/http/http_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace disttf::net {
namespace {

using testing::HasSubstr;
using testing::Not;

std::optional<Proxy> chosen(const ProxySettings& settings, std::string_view url) {
  return choose_proxy(settings, parse_url("url", url));
}

bool bypassed(std::string_view no_proxy, std::string_view url) {
  return bypasses_proxy(no_proxy, parse_url("url", url));
}

std::string refusal(const std::string& value) {
  try {
    static_cast<void>(chosen({.http_proxy = value}, "http://h/"));
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(ChooseProxy, GoesDirectlyWithoutSettings) {
  EXPECT_EQ(chosen({}, "http://h/"), std::nullopt);
  EXPECT_EQ(chosen({.http_proxy = " "}, "http://h/"), std::nullopt);
}

TEST(ChooseProxy, TakesTheVariableOfTheUrlsScheme) {
  const ProxySettings settings{.http_proxy = "http://a:1", .https_proxy = "http://b:2"};
  EXPECT_EQ(chosen(settings, "http://h/"), (Proxy{.host = "a", .port = 1}));
  EXPECT_EQ(chosen(settings, "https://h/"), (Proxy{.host = "b", .port = 2}));
}

TEST(ChooseProxy, FallsBackToAllProxy) {
  const ProxySettings settings{.http_proxy = "http://a:1", .all_proxy = "http://c:3"};
  EXPECT_EQ(chosen(settings, "http://h/")->host, "a");
  EXPECT_EQ(chosen(settings, "https://h/")->host, "c");
}

TEST(ChooseProxy, NeedsNoScheme) {
  EXPECT_EQ(chosen({.http_proxy = "proxy:3128"}, "http://h/"),
            (Proxy{.host = "proxy", .port = 3128}));
}

// The example of RFC 7617 section 2.
TEST(ChooseProxy, MakesBasicCredentialsOfUserAndPassword) {
  EXPECT_EQ(chosen({.http_proxy = "http://Aladdin:open%20sesame@p:1"}, "http://h/")->authorization,
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

// RFC 4648 section 10.
TEST(ChooseProxy, PadsBase64) {
  const auto credentials = [](const std::string& user) {
    return chosen({.http_proxy = "http://" + user + "@p:1"}, "http://h/")->authorization;
  };
  EXPECT_EQ(credentials("f"), "Basic Zg==");
  EXPECT_EQ(credentials("fo"), "Basic Zm8=");
  EXPECT_EQ(credentials("foo"), "Basic Zm9v");
}

TEST(ChooseProxy, RefusesOtherProtocols) {
  EXPECT_EQ(refusal("socks5://p:1080"),
            "http_proxy: the proxy \"socks5://p:1080\" is not a plain http proxy; expected "
            "http://[user:password@]host:port");
  EXPECT_THAT(refusal("https://p:1"), HasSubstr("is not a plain http proxy"));
}

TEST(ChooseProxy, DoesNotRepeatAPassword) {
  EXPECT_THAT(refusal("http://me:secret@p:port"), Not(HasSubstr("secret")));
}

TEST(ChooseProxy, DoesNotMindAMalformedOneThatDoesNotApply) {
  EXPECT_EQ(chosen({.http_proxy = "socks5://p", .no_proxy = "h"}, "http://h/"), std::nullopt);
}

TEST(NoProxy, StarMeansAll) { EXPECT_TRUE(bypassed("*", "http://h/")); }

TEST(NoProxy, NameCoversItselfAndWhatIsBelow) {
  for (const char* entry : {"example.com", ".example.com", "*.example.com", "EXAMPLE.com"}) {
    EXPECT_TRUE(bypassed(entry, "http://example.com/")) << entry;
    EXPECT_TRUE(bypassed(entry, "http://a.example.com/")) << entry;
    EXPECT_FALSE(bypassed(entry, "http://badexample.com/")) << entry;
    EXPECT_FALSE(bypassed(entry, "http://example.com.org/")) << entry;
  }
}

TEST(NoProxy, IsAListWithBlanks) {
  EXPECT_TRUE(bypassed("a, b ,,c", "http://b/"));
  EXPECT_TRUE(bypassed("a, b ,,c", "http://c/"));
  EXPECT_FALSE(bypassed("a, b ,,c", "http://d/"));
  EXPECT_FALSE(bypassed(" , ", "http://d/"));
}

TEST(NoProxy, PortRestrictsAnEntry) {
  EXPECT_TRUE(bypassed("h:8080", "http://h:8080/"));
  EXPECT_FALSE(bypassed("h:8080", "http://h/"));
  EXPECT_FALSE(bypassed("h:eighty", "http://h/"));
}

TEST(NoProxy, AddressMatchesAsAnAddress) {
  EXPECT_TRUE(bypassed("::1", "http://[0:0::1]/"));
  EXPECT_TRUE(bypassed("[::1]:81", "http://[::1]:81/"));
  EXPECT_FALSE(bypassed("[::1]:81", "http://[::1]/"));
  EXPECT_TRUE(bypassed("127.0.0.1", "http://127.0.0.1/"));
  EXPECT_FALSE(bypassed("0.0.1", "http://127.0.0.1/"));
}

TEST(NoProxy, NetworkCoversItsAddresses) {
  EXPECT_TRUE(bypassed("10.0.0.0/8", "http://10.200.3.4/"));
  EXPECT_FALSE(bypassed("10.0.0.0/8", "http://11.0.0.1/"));
  EXPECT_TRUE(bypassed("192.168.4.0/22", "http://192.168.7.255/"));
  EXPECT_FALSE(bypassed("192.168.4.0/22", "http://192.168.8.0/"));
  EXPECT_TRUE(bypassed("fd00::/8", "http://[fd12::1]/"));
  EXPECT_FALSE(bypassed("10.0.0.0/8", "http://ten/"));
  EXPECT_FALSE(bypassed("10.0.0.0/33", "http://10.0.0.1/"));
}

TEST(NoProxy, MalformedEntriesMatchNothing) {
  for (const char* entry : {"[", "[::1", "/", "/8", ":", ":80", ".", "*.", "10.0.0.0/"}) {
    EXPECT_FALSE(bypassed(entry, "http://10.0.0.1/")) << entry;
    EXPECT_FALSE(bypassed(entry, "http://h/")) << entry;
  }
}

}  // namespace
}  // namespace disttf::net
