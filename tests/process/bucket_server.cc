#include "tests/process/bucket_server.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/process/listening.h"

namespace disttf::test_process {

void BucketServer::start() {
  process_ = std::make_unique<Process>(program());
  EXPECT_TRUE(wait_until_listening(port())) << process_->report();
}

void BucketServer::kill() {
  process_->send(SIGKILL);
  EXPECT_FALSE(process_->wait().timed_out);
  process_.reset();
}

void BucketServer::stop() { process_->send(SIGSTOP); }

void BucketServer::go_on() { process_->send(SIGCONT); }

}  // namespace disttf::test_process
