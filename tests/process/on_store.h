// Shared by tests of the real binary with a real store: the server, and commands with its
// configuration.
#pragma once

#include <csignal>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/process/bucket_server.h"
#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {

class OnAnyStore : public ProcessTest {
 protected:
  // The environment variables that configure the server's address.
  [[nodiscard]] virtual Variables server_variables() const = 0;

  // `more`: variables that are added to those of the server, or replace them.
  Process& disttf(const Words& words, const Variables& more = {}) {
    Variables variables = server_variables();
    for (const auto& [name, value] : more) variables[name] = value;
    return run(words.front(), words, variables);
  }
  Process& done(const Words& words, const Variables& more = {}) {
    Process& process = disttf(words, more);
    EXPECT_TRUE(exits(process, kExitDone));
    return process;
  }
  // Returns the command's error message.
  std::string refusal(const Words& words, int exit_code, const Variables& more = {}) {
    Process& process = disttf(words, more);
    EXPECT_TRUE(exits(process, exit_code));
    return process.standard_error();
  }
  // A long launch that saves there.
  static Words lasting_run(int save_steps, const std::string& train_dir) {
    return Words{"launch", "--workers=1", "--save_steps=" + std::to_string(save_steps),
                 "--train_dir=" + train_dir} +
           endless() + data_flags();
  }
  // After a launch has saved `saved` times: kills it and all its tasks at once.
  void kill_all_of(Process& job, std::size_t saved) {
    ASSERT_TRUE(says_times(job, saved, "Saved checkpoint at global step [1-9]"));
    const std::vector<pid_t> tasks = children_of(job.pid());
    job.send(SIGKILL);
    for (const pid_t task : tasks) kill(task, SIGKILL);
    ASSERT_TRUE(wait_until_gone(tasks));
    ASSERT_TRUE(killed(job, SIGKILL));
  }
  // Writes a file in scratch() and returns its path.
  std::string write(const std::string& name, std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + i / 1000);
    std::ofstream(scratch() / name, std::ios::binary) << text;
    return text;
  }
  std::string read(const std::string& name) {
    std::ifstream file(scratch() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// `Server`: S3Server, GcsServer or HdfsServer, or a class with the same interface.
template <typename Server>
class OnStore : public OnAnyStore {
 protected:
  void SetUp() override {
    std::string why;
    if (!Server::is_installed(why)) {
      test_support::skip_without_engine(why);
      return;
    }
    server_.emplace(scratch() / "server");
  }
  [[nodiscard]] Variables server_variables() const override { return server_->variables(); }

  std::optional<Server> server_;
};

// Tests that hold for each kind of bucket.
class OnBucket : public OnAnyStore, public testing::WithParamInterface<BucketKind> {
 protected:
  void SetUp() override {
    std::string why;
    if (!GetParam().is_installed(why)) {
      test_support::skip_without_engine(why);
      return;
    }
    server_ = GetParam().start(scratch() / "server");
  }
  [[nodiscard]] Variables server_variables() const override { return server_->variables(); }
  // Returns "s3://bucket/run".
  [[nodiscard]] std::string at(const std::string& key) const {
    return server_->place() + "/" + key;
  }

  std::unique_ptr<BucketServer> server_;
};

inline auto each_bucket() {
  return testing::Values(bucket_kind<S3Server>("S3"), bucket_kind<GcsServer>("Gcs"));
}
inline std::string name_of_bucket(const testing::TestParamInfo<BucketKind>& info) {
  return info.param.name;
}

}  // namespace disttf::test_process
