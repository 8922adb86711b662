#include "net/http/url.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

#include "net/http/http_proxy.h"
#include "tests/support/thrown.h"

namespace disttf::net {
namespace {

using testing::HasSubstr;

std::string url_refusal(std::string_view text) {
  std::string why;
  return read_url(text, why) ? "" : why;
}

std::string joined(std::string_view base, std::string_view reference) {
  std::string why;
  const std::optional<Url> url = join_url(parse_url("base", base), reference, why);
  return url ? to_string(*url) : "refused: " + why;
}

TEST(Url, TakesSchemeHostPortPathAndQueryApart) {
  const Url url = parse_url("--data_url", "https://Mirror.Example:8443/a/b.gz?c=d/e");
  EXPECT_EQ(url.scheme, Scheme::kHttps);
  EXPECT_EQ(url.host, "mirror.example");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.target, "/a/b.gz?c=d/e");
}

TEST(Url, HasTheSchemesPortWhenNoneIsGiven) {
  EXPECT_EQ(parse_url("f", "http://h").port, 80);
  EXPECT_EQ(parse_url("f", "https://h/").port, 443);
  EXPECT_EQ(parse_url("f", "https://h:/").port, 443);
}

TEST(Url, HasARootWhenNoPathIsGiven) {
  EXPECT_EQ(parse_url("f", "http://h").target, "/");
  EXPECT_EQ(parse_url("f", "http://h?q").target, "/?q");
}

TEST(Url, DropsTheFragment) { EXPECT_EQ(parse_url("f", "http://h/a#b").target, "/a"); }

TEST(Url, ReadsIpv6InBrackets) {
  const Url url = parse_url("f", "http://[::1]:81/x");
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, 81);
  EXPECT_EQ(host_and_port(url), "[::1]:81");
}

TEST(Url, DropsTheDotThatEndsAFullName) {
  EXPECT_EQ(parse_url("f", "http://h.example./").host, "h.example");
}

TEST(Url, IsWrittenInItsNormalForm) {
  EXPECT_EQ(to_string(parse_url("f", "HTTP://H:80")), "http://h/");
  EXPECT_EQ(to_string(parse_url("f", "https://[::1]:80/a?b")), "https://[::1]:80/a?b");
}

struct Refused {
  const char* text;
  const char* why;
};

class UrlRefusal : public testing::TestWithParam<Refused> {};

TEST_P(UrlRefusal, SaysWhy) {
  EXPECT_THAT(url_refusal(GetParam().text), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Url, UrlRefusal,
    testing::Values(Refused{"", "http:// or https://"}, Refused{"mirror.example/x", "http://"},
                    Refused{"ftp://h/", "http:// or https://"}, Refused{"http:/h/", "http://"},
                    Refused{"http://", "has no host"}, Refused{"http:///x", "has no host"},
                    Refused{"http://:80/", "has no host"}, Refused{"http://a..b/", "host name"},
                    Refused{"http://a_b!/", "host name"}, Refused{"http://[::1/", "no host"},
                    Refused{"http://[1.2.3.4]/", "host name"}, Refused{"http://h:0/", "port"},
                    Refused{"http://h:65536/", "port"}, Refused{"http://h:-1/", "port"},
                    Refused{"http://h:80x/", "port"}, Refused{"http://[::1]80/", "port"},
                    Refused{"http://u:p@h/", "user name or password"},
                    Refused{"http://h/a b", "blank"}, Refused{"http://h/a\r\nX: y", "blank"},
                    Refused{"http://h/\xc3\xa9", "not ASCII"}));

TEST(Url, RefusesOneThatIsEndless) {
  EXPECT_THAT(url_refusal("http://h/" + std::string(9000, 'a')), HasSubstr("longer than 8192"));
}

TEST(Url, NamesFieldAndValueAndWhatIsAllowed) {
  EXPECT_EQ(sentence_of([&] { return parse_url("--data_url", "ftp://h/"); }),
            "--data_url: \"ftp://h/\" does not begin with http:// or https://; expected a "
            "URL like https://host[:port]/path/");
}

// The examples of RFC 3986 section 5.4 that keep to http.
TEST(JoinUrl, FollowsRfc3986) {
  const std::string base = "http://a/b/c/d;p?q";
  EXPECT_EQ(joined(base, "g"), "http://a/b/c/g");
  EXPECT_EQ(joined(base, "./g"), "http://a/b/c/g");
  EXPECT_EQ(joined(base, "g/"), "http://a/b/c/g/");
  EXPECT_EQ(joined(base, "/g"), "http://a/g");
  EXPECT_EQ(joined(base, "//g"), "http://g/");
  EXPECT_EQ(joined(base, "?y"), "http://a/b/c/d;p?y");
  EXPECT_EQ(joined(base, "g?y"), "http://a/b/c/g?y");
  EXPECT_EQ(joined(base, "g#s"), "http://a/b/c/g");
  EXPECT_EQ(joined(base, ""), base);
  EXPECT_EQ(joined(base, "."), "http://a/b/c/");
  EXPECT_EQ(joined(base, ".."), "http://a/b/");
  EXPECT_EQ(joined(base, "../g"), "http://a/b/g");
  EXPECT_EQ(joined(base, "../.."), "http://a/");
  EXPECT_EQ(joined(base, "../../../g"), "http://a/g");
  EXPECT_EQ(joined(base, "/./g"), "http://a/g");
  EXPECT_EQ(joined(base, "g."), "http://a/b/c/g.");
  EXPECT_EQ(joined(base, "..g"), "http://a/b/c/..g");
  EXPECT_EQ(joined(base, "./g/."), "http://a/b/c/g/");
  EXPECT_EQ(joined(base, "g/../h"), "http://a/b/c/h");
  EXPECT_EQ(joined(base, "g?y/./x"), "http://a/b/c/g?y/./x");
}

TEST(JoinUrl, TakesAnAbsoluteUrlAsItIs) {
  EXPECT_EQ(joined("http://a/b", "https://c:1/d"), "https://c:1/d");
}

TEST(JoinUrl, KeepsEmptySegments) { EXPECT_EQ(joined("http://a/b", "/c//d"), "http://a/c//d"); }

TEST(JoinUrl, RefusesOtherSchemes) {
  EXPECT_THAT(joined("http://a/b", "file:///etc/passwd"), HasSubstr("http:// or https://"));
  EXPECT_THAT(joined("http://a/b", "javascript:alert"), HasSubstr("http:// or https://"));
}

TEST(JoinUrl, RefusesALineBreak) {
  EXPECT_THAT(joined("http://a/b", "/c\r\nX-Own: header"), HasSubstr("blank"));
}

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
