#include "tests/process/hdfs_server.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "tests/process/process.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJava = "/usr/bin/java";
constexpr const char* kHdfsUser = "disttf";
// Two Java processes start, maybe on a busy machine.
constexpr std::chrono::seconds kHdfsPatience{120};

fs::path archives() { return source_directory() / "build" / "tools" / "hdfs" / "jars"; }

std::string property(const std::string& name, const std::string& value) {
  return "<property><name>" + name + "</name><value>" + value + "</value></property>\n";
}

std::string local(const ReservedPort& port) { return "127.0.0.1:" + std::to_string(port.number()); }

}  // namespace

bool HdfsServer::is_installed(std::string& why) {
  if (!fs::exists(kJava)) {
    why = std::string(kJava) + " is not there: .ci/install engines installs it";
    return false;
  }
  why = archives().string() + " is not there: .ci/tools makes it";
  return fs::exists(archives());
}

HdfsServer::HdfsServer(fs::path folder) : folder_(std::move(folder)) {
  configure();
  const auto format = java("format", "namenode.NameNode", "-format");
  const Ending ending = format->wait(kHdfsPatience);
  EXPECT_EQ(ending.exit_code, 0) << format->report();
  name_node_ = java("namenode", "namenode.NameNode", "");
  wait_until_done({"ls", url() + "/"});
  start_data_node();
}

void HdfsServer::configure() const {
  // The servers' web pages are not installed, but their folders must exist.
  fs::create_directories(folder_ / "conf" / "webapps" / "hdfs");
  fs::create_directories(folder_ / "conf" / "webapps" / "datanode");
  std::ofstream(folder_ / "conf" / "core-site.xml")
      << "<configuration>\n"
      << property("fs.defaultFS", "hdfs://" + local(name_rpc_)) << "</configuration>\n";
  std::ofstream(folder_ / "conf" / "hdfs-site.xml")
      << "<configuration>\n"
      << property("dfs.replication", "1")
      << property("dfs.namenode.name.dir", "file://" + (folder_ / "names").string())
      << property("dfs.datanode.data.dir", "file://" + (folder_ / "blocks").string())
      << property("dfs.namenode.http-address", local(name_http_))
      << property("dfs.datanode.address", local(data_))
      << property("dfs.datanode.http.address", local(data_http_))
      << property("dfs.datanode.ipc.address", local(data_ipc_))
      << property("dfs.datanode.hostname", "127.0.0.1") << property("dfs.heartbeat.interval", "1")
      << property("dfs.namenode.safemode.extension", "0") << "</configuration>\n";
  std::ofstream(folder_ / "conf" / "log4j.properties")
      << "log4j.rootLogger=WARN,console\n"
         "log4j.appender.console=org.apache.log4j.ConsoleAppender\n"
         "log4j.appender.console.layout=org.apache.log4j.SimpleLayout\n";
}

std::unique_ptr<Process> HdfsServer::java(const std::string& name, const std::string& type,
                                          const std::string& argument) const {
  std::vector<std::string> words = {"-XX:TieredStopAtLevel=1",
                                    "-Xmx256m",
                                    "--add-opens",
                                    "java.base/java.lang=ALL-UNNAMED",
                                    "-cp",
                                    (folder_ / "conf").string() + ":" + archives().string() + "/*",
                                    "org.apache.hadoop.hdfs.server." + type};
  if (!argument.empty()) words.push_back(argument);
  return std::make_unique<Process>(ProcessOptions{.program = kJava,
                                                  .arguments = words,
                                                  .environment = variables(),
                                                  .working_directory = folder_,
                                                  .name = name});
}

void HdfsServer::wait_until_done(const std::vector<std::string>& words) const {
  const auto deadline = std::chrono::steady_clock::now() + kHdfsPatience;
  while (true) {
    Process process({.program = disttf_binary(),
                     .arguments = words,
                     .environment = variables(),
                     .working_directory = folder_,
                     .name = words.front()});
    if (process.wait().exit_code == 0) break;
    ASSERT_LT(std::chrono::steady_clock::now(), deadline)
        << process.report() << name_node_->report();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // polls, with a deadline
  }
}

void HdfsServer::wait_until_writable() const {
  std::ofstream(folder_ / "probe") << "x";
  wait_until_done({"cp", "probe", url() + "/probe"});
}

void HdfsServer::kill_name_node() {
  name_node_->send(SIGKILL);
  EXPECT_FALSE(name_node_->wait().timed_out);
}

void HdfsServer::start_name_node() {
  name_node_ = java("namenode", "namenode.NameNode", "");
  wait_until_writable();
}

void HdfsServer::kill_data_node() {
  data_node_->send(SIGKILL);
  EXPECT_FALSE(data_node_->wait().timed_out);
}

void HdfsServer::start_data_node() {
  data_node_ = java("datanode", "datanode.DataNode", "");
  wait_until_writable();
}

std::string HdfsServer::url() const { return "webhdfs://" + local(name_http_); }

std::map<std::string, std::string> HdfsServer::variables() {
  return {{"HADOOP_USER_NAME", kHdfsUser}};
}

}  // namespace disttf::test_process
