#include "net/wire/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace disttf::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

[[nodiscard]] std::string error_of(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

[[nodiscard]] std::string address_error(std::string_view text) {
  return error_of([&] { static_cast<void>(parse_address("--ps_hosts", text)); });
}

struct Good {
  const char* text;
  const char* host;
  std::uint16_t port;
};
class GoodAddress : public ::testing::TestWithParam<Good> {};

TEST_P(GoodAddress, IsParsed) {
  EXPECT_EQ(parse_address("f", GetParam().text), (Address{GetParam().host, GetParam().port}));
}

INSTANTIATE_TEST_SUITE_P(
    Table, GoodAddress,
    ::testing::Values(
        Good{"ps0:2222", "ps0", 2222}, Good{"PS0.Example.COM:1", "ps0.example.com", 1},
        Good{"127.0.0.1:65535", "127.0.0.1", 65535}, Good{"[::1]:2222", "::1", 2222},
        Good{"[2001:DB8:0:0::1]:2222", "2001:db8::1", 2222}, Good{"  host:7\t\n", "host", 7},
        Good{"grpc://host:7", "host", 7}, Good{"GRPC://host:7", "host", 7},
        Good{"mnist-ps-0.ml.svc.cluster.local.:2222", "mnist-ps-0.ml.svc.cluster.local.", 2222},
        Good{"my_service:2222", "my_service", 2222}, Good{"1a:2", "1a", 2},
        Good{"localhost:02222", "localhost", 2222}));

struct Bad {
  const char* text;
  const char* sentence;  // the expected part of the message
};
class BadAddress : public ::testing::TestWithParam<Bad> {};

TEST_P(BadAddress, IsRefusedWithASentence) {
  const std::string error = address_error(GetParam().text);
  EXPECT_THAT(error, StartsWith("--ps_hosts: \""));
  EXPECT_THAT(error, HasSubstr(GetParam().sentence));
  EXPECT_THAT(error, HasSubstr("expected host:port"));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadAddress,
    ::testing::Values(
        Bad{"", "is empty"}, Bad{"  ", "is empty"}, Bad{"foo", "\"foo\" has no port"},
        Bad{"[::1]", "has no port"}, Bad{":2222", "has no host"},
        Bad{"foo:", "has no port between 1 and 65535"},
        Bad{"foo:0", "has no port between 1 and 65535"},
        Bad{"foo:65536", "has no port between 1 and 65535"},
        Bad{"foo:-1", "has no port between 1 and 65535"},
        Bad{"foo:+1", "has no port between 1 and 65535"},
        Bad{"foo:22x", "has no port between 1 and 65535"},
        Bad{"foo: 22", "has no port between 1 and 65535"},
        Bad{"::1:2222", "an IPv6 address needs brackets"},
        Bad{"a:b:1", "an IPv6 address needs brackets"}, Bad{"[::1:2222", "has no ']'"},
        Bad{"[]:1", "no valid IPv6 address"}, Bad{"[1.2.3.4]:1", "no valid IPv6 address"},
        Bad{"[::g]:1", "no valid IPv6 address"}, Bad{"300.1.1.1:1", "is not a valid IPv4 address"},
        Bad{"1.2.3:1", "is not a valid IPv4 address"}, Bad{"2222:1", "is not a valid IPv4 address"},
        Bad{"a b:1", "has no valid host name"}, Bad{"a..b:1", "no valid host name"},
        Bad{"-a:1", "no valid host name"}, Bad{"a-:1", "no valid host name"},
        Bad{".:1", "no valid host name"}, Bad{"a/b:1", "no valid host name"},
        Bad{"http://a:1", "needs brackets"}, Bad{"h\xC3\xA9:1", R"(h\xc3\xa9)"}));

TEST(Address, RefusesANameThatIsTooLong) {
  const std::string label(63, 'a');
  EXPECT_EQ(address_error(label + ":1"), "no error");
  EXPECT_THAT(address_error(label + "a:1"), HasSubstr("no valid host name"));
  const std::string name = label + "." + label + "." + label + "." + label;
  EXPECT_THAT(address_error(name + ":1"), HasSubstr("no valid host name"));
}

TEST(Address, ShowsOnlyTheBeginningOfAHugeValue) {
  EXPECT_LT(address_error(std::string(100000, 'x')).size(), 250U);
}

TEST(Address, IsWrittenAsItIsRead) {
  for (const char* text : {"ps0:2222", "127.0.0.1:1", "[::1]:2222"}) {
    EXPECT_EQ(to_string(parse_address("f", text)), text);
  }
}

TEST(AddressList, KeepsTheOrder) {
  EXPECT_THAT(parse_address_list("f", "b:1, a:2,[::1]:3"),
              ElementsAre(Address{"b", 1}, Address{"a", 2}, Address{"::1", 3}));
}

TEST(AddressList, IsWrittenAsItIsRead) {
  for (const char* text : {"", "ps0:2222", "b:1,a:2,[::1]:3"}) {
    EXPECT_EQ(to_string(parse_address_list("f", text)), text);
  }
}

TEST(AddressList, IsEmptyForBlankText) {
  EXPECT_TRUE(parse_address_list("f", "").empty());
  EXPECT_TRUE(parse_address_list("f", " \t").empty());
}

TEST(AddressList, NamesAnEmptyEntry) {
  for (const char* text : {"a:1,", "a:1,,b:2", "a:1, ,b:2"}) {
    EXPECT_THAT(error_of([&] { static_cast<void>(parse_address_list("--worker_hosts", text)); }),
                StartsWith("--worker_hosts: entry 2 is empty; expected host:port"));
  }
}

}  // namespace
}  // namespace disttf::net
