// A name server that answers one question and drops the other.
#include "net/tcp/lookup.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "net/tcp/name_lookup.h"
#include "net/tcp/resolve.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using Endpoints = std::vector<tcp::endpoint>;

const Address kName{.host = "ps0.test", .port = 2222};
const tcp::endpoint kIpv4(asio::ip::make_address("10.0.0.7"), 2222);
const tcp::endpoint kIpv6(asio::ip::make_address("fd00::7"), 2222);

Deadline long_enough() { return Clock::now() + 60s; }

// A name server that answers `dropped` only after the test has ended.
class NameServer {
 public:
  explicit NameServer(Family answered, Endpoints answer)
      : answered_(answered), answer_(std::move(answer)) {}
  ~NameServer() { ended_.set_value(); }

  [[nodiscard]] Ask ask() const {
    return [answered = answered_, answer = answer_, end = end_](
               const Address&, Family family, std::error_code& error) -> Endpoints {
      if (family == answered) return answer;
      end.wait();
      error = asio::error::host_not_found;
      return {};
    };
  }

 private:
  Family answered_;
  Endpoints answer_;
  std::promise<void> ended_;
  std::shared_future<void> end_ = ended_.get_future().share();
};

TEST(Lookup, UsesTheAddressesOfTheFamilyThatIsAnswered) {
  for (const auto& [family, endpoint] :
       {std::pair(Family::kIpv4, kIpv4), std::pair(Family::kIpv6, kIpv6)}) {
    const NameServer server(family, {endpoint});
    Interrupt interrupt;
    std::error_code error;
    EXPECT_EQ(resolve(kName, interrupt, long_enough(), error, server.ask()), Endpoints{endpoint});
    EXPECT_FALSE(error) << error.message();
  }
}

TEST(Lookup, UsesThemInAnEventLoopToo) {
  const NameServer server(Family::kIpv4, {kIpv4});
  NameLookup lookup(server.ask());
  asio::io_context context{1};
  Endpoints endpoints;
  std::error_code error;
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        endpoints = co_await lookup.resolve(context.get_executor(), kName, long_enough(), error);
      },
      asio::detached);
  context.run();
  EXPECT_EQ(endpoints, Endpoints{kIpv4});
  EXPECT_FALSE(error) << error.message();
}

TEST(Lookup, KeepsTheOrderOfBothFamiliesWhereBothAreAnswered) {
  const NameServer server(Family::kBoth, {kIpv6, kIpv4});
  Interrupt interrupt;
  std::error_code error;
  const Endpoints both{kIpv6, kIpv4};
  EXPECT_EQ(resolve(kName, interrupt, long_enough(), error, server.ask()), both);
}

TEST(Lookup, EndsWithTheReasonOfTheQuestionForBothWhereNoneHasAnAddress) {
  const Ask ask = [](const Address&, Family family, std::error_code& error) -> Endpoints {
    error = family == Family::kBoth ? asio::error::host_not_found_try_again
                                    : asio::error::make_error_code(asio::error::no_data);
    return {};
  };
  Interrupt interrupt;
  std::error_code error;
  EXPECT_EQ(resolve(kName, interrupt, long_enough(), error, ask), Endpoints{});
  EXPECT_EQ(error, asio::error::host_not_found_try_again);
}

TEST(Lookup, WaitsForTheOtherFamilyWhereOneHasNoAddress) {
  const auto ipv4_was_asked = std::make_shared<std::promise<void>>();
  const std::shared_future<void> asked = ipv4_was_asked->get_future().share();
  const Ask ask = [ipv4_was_asked, asked](const Address&, Family family,
                                          std::error_code& error) -> Endpoints {
    if (family == Family::kIpv4) {
      ipv4_was_asked->set_value();
      error = asio::error::no_data;
      return {};
    }
    asked.wait();
    return family == Family::kIpv6 ? Endpoints{kIpv6} : Endpoints{};
  };
  std::error_code error;
  const std::shared_ptr<Lookup> lookup = start_lookup(kName, error, ask);
  ask_each_family(lookup);
  Interrupt interrupt;
  ASSERT_FALSE(wait_for(lookup->done.fd(), POLLIN, interrupt, long_enough()));
  EXPECT_EQ(result_of(*lookup, error), Endpoints{kIpv6});
}

}  // namespace
}  // namespace disttf::net
