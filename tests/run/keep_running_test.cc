// Serving that a task can do without: an exception of a handler ends neither it nor the task.
#include "run/process/keep_running.h"

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <stdexcept>

namespace disttf::roles {
namespace {

TEST(KeepRunning, RunsTheHandlersBehindOneThatThrows) {
  asio::io_context context;
  int done = 0;
  for (int i = 0; i < 3; ++i) {
    asio::post(context, [] { throw std::runtime_error("of the test"); });
    asio::post(context, [&done] { ++done; });
  }
  keep_running(context, "the page");
  EXPECT_EQ(done, 3);
}

}  // namespace
}  // namespace disttf::roles
