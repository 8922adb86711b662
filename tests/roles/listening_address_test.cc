// The address of a service, as the kernel and its flags give it.
#include "roles/serve/core/listening_address.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>

namespace disttf::roles {
namespace {

// A row of the table as x86-64 and aarch64 print it.
std::string row(const std::string& address, const std::string& state, const std::string& inode) {
  return "   0: " + address + " 00000000:0000 " + state +
         " 00000000:00000000 00:00000000 00000000     0        0 " + inode + " 1 0 100 0 0 10 0\n";
}

std::string found(const std::string& table) {
  const auto address =
      listening_address("  sl  local_address rem_address   st ...\n" + table, {"71", "72"});
  return address ? to_string(*address) : "none";
}

TEST(ListeningAddress, IsThatOfTheProcesssOwnListeningSocket) {
  static_assert(std::endian::native == std::endian::little);
  EXPECT_EQ(found(row("0100007F:2135", "0A", "71")), "127.0.0.1:8501");
  EXPECT_EQ(found(row("0A01A8C0:0050", "0A", "72")), "192.168.1.10:80");
  EXPECT_EQ(found(row("0100007F:2135", "01", "71")), "none") << "it is connected";
  EXPECT_EQ(found(row("0100007F:2135", "0A", "73")), "none") << "it is another process's";
  EXPECT_EQ(found(row("0100007F:0001", "0A", "73") + row("0100007F:0002", "0A", "71")),
            "127.0.0.1:2");
}

TEST(ListeningAddress, MayBeOfIpv6) {
  EXPECT_EQ(found(row("00000000000000000000000001000000:2135", "0A", "71")), "[::1]:8501");
  EXPECT_EQ(found(row("000000FD000000000000000002000000:2135", "0A", "71")), "[fd00::2]:8501");
}

TEST(ListeningAddress, OfAWildcardIsLoopback) {
  EXPECT_EQ(found(row("00000000:2135", "0A", "71")), "127.0.0.1:8501");
  EXPECT_EQ(found(row("00000000000000000000000000000000:2135", "0A", "71")), "127.0.0.1:8501");
  for (const char* all : {"all", "0.0.0.0", "::"}) {
    EXPECT_EQ(host_to_connect_to(all), "127.0.0.1");
  }
  EXPECT_EQ(host_to_connect_to("::1"), "::1");
}

TEST(ListeningAddress, OfAnUnknownFormIsNone) {
  for (const char* wrong : {"", ":", "0100007F", "0100007F:", "0100007F:12345", "0100:2135",
                            "0100007Z:2135", "0100007F:21x5"}) {
    EXPECT_EQ(found(row(wrong, "0A", "71")), "none") << wrong;
  }
}

}  // namespace
}  // namespace disttf::roles
