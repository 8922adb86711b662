// A store's file that is read in larger pieces than requested.
#include "storage/store/core/read_ahead.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace disttf::roles {
namespace {

std::string read(const ReadAhead& file, std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> to(bytes);
  to.resize(file.read(offset, to));
  return {reinterpret_cast<const char*>(to.data()), to.size()};
}

TEST(ReadAhead, AsksOnceForBytesThatFollowEachOther) {
  int requests = 0;
  const ReadAhead file(6, "ab", [&](std::uint64_t offset, std::span<std::byte> to) {
    ++requests;
    for (std::size_t at = 0; at < to.size(); ++at) {
      to[at] = static_cast<std::byte>('a' + offset + at);
    }
    return to.size();
  });
  EXPECT_EQ(read(file, 0, 2), "ab");
  EXPECT_EQ(requests, 0);
  EXPECT_EQ(read(file, 2, 2), "cd");
  EXPECT_EQ(read(file, 4, 9), "ef");
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(read(file, 6, 1), "");
}

// The caller may try again: it must not get what the memory held before.
TEST(ReadAhead, AfterAFailedRequestTheBytesAreRequestedAgain) {
  bool fails = true;
  const ReadAhead file(4, "",
                       [&](std::uint64_t /*offset*/, std::span<std::byte> to) -> std::size_t {
                         if (fails) throw std::runtime_error("the store is unavailable");
                         to[0] = static_cast<std::byte>('x');
                         return 1;
                       });
  EXPECT_THROW(static_cast<void>(read(file, 0, 1)), std::runtime_error);
  fails = false;
  EXPECT_EQ(read(file, 0, 1), "x");
}

}  // namespace
}  // namespace disttf::roles
