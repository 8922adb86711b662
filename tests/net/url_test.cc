#include "net/http/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

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
  try {
    static_cast<void>(parse_url("--data_url", "ftp://h/"));
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "--data_url: \"ftp://h/\" does not begin with http:// or https://; expected a "
                 "URL like https://host[:port]/path/");
  }
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

}  // namespace
}  // namespace disttf::net
