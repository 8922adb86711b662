// Metrics of real runs: the tasks' exports, promtool's verdict on them, and a real Prometheus that
// scrapes them.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process/process_test.h"
#include "tests/support/engines.h"
#include "tests/support/http_get.h"
#include "tests/support/made_identities.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;
using test_support::http_body;
using test_support::http_get;
using testing::HasSubstr;

// The samples of an exposition: "name{labels}" -> value.
using Samples = std::map<std::string, double>;

Samples samples_in(const std::string& text) {
  Samples samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) {
      const std::size_t space = line.rfind(' ');
      samples[line.substr(0, space)] = std::strtod(line.c_str() + space, nullptr);
    }
  }
  return samples;
}

// Sums all samples whose name and labels begin with `begin` and contain `part`.
double sum_of(const Samples& samples, const std::string& begin, const std::string& part = {}) {
  double sum = 0;
  for (const auto& [name, value] : samples) {
    if (name.starts_with(begin) && name.find(part) != std::string::npos) {
      sum += value;
    }
  }
  return sum;
}

std::uint16_t port_in(const std::string& target) {
  std::uint16_t port = 0;
  const char* const end = target.data() + target.size();
  std::from_chars(target.data() + target.rfind(':') + 1, end, port);
  return port;
}

class Metrics : public ProcessTest {
 protected:
  [[nodiscard]] std::string textfile() const { return (scratch() / "x.prom").string(); }
  [[nodiscard]] Samples file_of(const std::string& task) const {
    std::ifstream file(scratch() / ("x." + task + (task.empty() ? "prom" : ".prom")));
    EXPECT_TRUE(file) << task;
    return samples_in({std::istreambuf_iterator<char>(file), {}});
  }
  Process& launch(const Words& others) {
    return run("launch", Words{"launch", "--metrics_textfile=" + textfile(), "--train_steps=40"} +
                             others + data_flags());
  }
  // Returns the port on which a process says it serves its metrics.
  static std::uint16_t metrics_port_of(Process& process) {
    EXPECT_TRUE(says(process, "metrics at http://"));
    return port_in(captured(process.standard_error(), "metrics at http://(127.0.0.1:[0-9]+)/"));
  }
  // Returns the samples of all tasks of a launch with that port, its own first.
  static std::vector<Samples> scrape_all(std::uint16_t port) {
    std::vector<Samples> all;
    const json groups = json::parse(http_body(http_get(port, "/targets")));
    for (const json& target : groups.at(0).at("targets")) {
      all.push_back(samples_in(http_body(http_get(port_in(target), "/metrics"))));
    }
    return all;
  }
};

// Scrapes until the condition holds: a ps updates its shard's counters ten times a second.
template <typename Condition>
std::vector<Samples> scrape_until(const std::function<std::vector<Samples>()>& scrape,
                                  Condition is_so) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::vector<Samples> all = scrape();
  while (!is_so(all) && std::chrono::steady_clock::now() < until) {
    all = scrape();
  }
  return all;
}

TEST_F(Metrics, OfAShortRunAreInFiles) {
  ASSERT_TRUE(exits(launch({"--workers=2", "--ps=2"}), kExitDone));
  const Samples run = file_of("");
  EXPECT_EQ(run.at("disttf_run_step{task=\"launch\"}"), 40);
  EXPECT_EQ(run.at("disttf_run_train_steps{task=\"launch\"}"), 40);
  EXPECT_EQ(run.at("disttf_run_examples_total{task=\"launch\"}"), 40 * 200);
  EXPECT_EQ(sum_of(run, "disttf_child_restarts_total"), 0);
  EXPECT_EQ(sum_of(run, "disttf_child_running"), 0);
  EXPECT_EQ(run.at("disttf_children{task=\"launch\",state=\"done\"}"), 4);
  for (const std::string index : {"0", "1"}) {
    const Samples ps = file_of("ps-" + index);
    const std::string labels = "{task=\"ps:" + index + "\",range=\"" + index + "\"";
    EXPECT_EQ(ps.at("disttf_ps_step" + labels + "}"), 40);
    EXPECT_EQ(ps.at("disttf_ps_finished" + labels + "}"), 1);
    EXPECT_EQ(ps.at("disttf_ps_pushes_total" + labels + ",result=\"used\"}"), 80);
    EXPECT_EQ(ps.at("disttf_ps_apply_seconds_count" + labels + "}"), 40);
    EXPECT_EQ(ps.at("disttf_ps_wait_for_last_seconds_count" + labels + "}"), 40);
    EXPECT_EQ(ps.at("disttf_ps_staleness_steps_count" + labels + "}"), 0);
    const Samples worker = file_of("worker-" + index);
    const std::string task = "{task=\"worker:" + index + "\"}";
    EXPECT_EQ(worker.at("disttf_step" + task), 40);
    EXPECT_EQ(worker.at("disttf_local_steps_total" + task), 40);
    EXPECT_EQ(worker.at("disttf_examples_total" + task), 40 * 100);
    EXPECT_EQ(worker.at("disttf_gradient_seconds_count" + task), 40);
    EXPECT_EQ(worker.at("disttf_push_pull_seconds_count" + task), 40);
    EXPECT_EQ(worker.at("disttf_diverged" + task), 0);
    EXPECT_EQ(worker.at("disttf_generation" + task), 1);
    const double accuracy =
        worker.at("disttf_evaluation_accuracy{task=\"worker:" + index + "\",set=\"test\"}");
    EXPECT_GT(accuracy, 0.1);
    EXPECT_LE(accuracy, 1.0);
  }
}

TEST_F(Metrics, CountTheSameBytesOnBothEnds) {
  for (const std::string dtype : {"f32", "bf16", "int8"}) {
    ASSERT_TRUE(exits(launch({"--transport=tcp", "--wire_dtype=" + dtype}), kExitDone));
    const Samples ps = file_of("ps-0");
    Samples trainers = file_of("worker-0");
    trainers.merge(file_of("worker-1"));
    const auto bytes = [&](const Samples& of, const std::string& direction,
                           const std::string& codec) {
      return sum_of(of, "disttf_transferred_bytes_total",
                    "direction=\"" + direction + "\",codec=\"" + codec + "\"");
    };
    EXPECT_GT(bytes(ps, "received", dtype), 80 * 79'510);
    for (const std::string codec : {"f32", "bf16", "int8", "int4", "sparse", "memory"}) {
      EXPECT_EQ(bytes(trainers, "sent", codec), bytes(ps, "received", codec)) << codec;
      EXPECT_EQ(bytes(ps, "sent", codec), bytes(trainers, "received", codec)) << codec;
    }
    EXPECT_EQ(bytes(ps, "sent", "memory"), 0);
  }
}

TEST_F(Metrics, OfAnAsynchronousRunHaveTheStalenessOfEachPush) {
  ASSERT_TRUE(exits(launch({"--sync_replicas=false", "--workers=3"}), kExitDone));
  const Samples ps = file_of("ps-0");
  EXPECT_EQ(ps.at("disttf_ps_staleness_steps_count{task=\"ps:0\",range=\"0\"}"), 40);
  EXPECT_EQ(ps.at("disttf_ps_wait_for_last_seconds_count{task=\"ps:0\",range=\"0\"}"), 0);
}

TEST_F(Metrics, OfBackupWorkersCountWhatIsDropped) {
  ASSERT_TRUE(exits(launch({"--replicas_to_aggregate=1", "--workers=2"}), kExitDone));
  const Samples ps = file_of("ps-0");
  const auto pushes = [&](const char* result) {
    return sum_of(ps, "disttf_ps_pushes_total", std::string("result=\"") + result);
  };
  EXPECT_EQ(pushes("used"), 40);
  const double dropped = sum_of(file_of("worker-0"), "disttf_dropped_gradients_total") +
                         sum_of(file_of("worker-1"), "disttf_dropped_gradients_total");
  EXPECT_LE(dropped, pushes("dropped"));  // the ps also counts a push whose answer is never read
}

TEST_F(Metrics, OfTheChiefHaveItsCheckpoints) {
  ASSERT_TRUE(exits(launch({"--train_dir=" + (scratch() / "train").string(), "--optimizer=adam"}),
                    kExitDone));
  const Samples chief = file_of("worker-0");
  const double saved =
      chief.at("disttf_checkpoint_saves_total{task=\"worker:0\",result=\"saved\"}");
  EXPECT_GE(saved, 1);
  EXPECT_EQ(chief.at("disttf_checkpoint_saves_total{task=\"worker:0\",result=\"failed\"}"), 0);
  EXPECT_EQ(chief.at("disttf_checkpoint_save_seconds_count{task=\"worker:0\"}"), saved);
  EXPECT_GE(chief.at("disttf_checkpoint_bytes{task=\"worker:0\"}"), 3 * 79'510 * sizeof(float));
  EXPECT_GT(chief.at("disttf_checkpoint_last_success_timestamp_seconds{task=\"worker:0\"}"), 1.7e9);
  EXPECT_EQ(sum_of(file_of("worker-1"), "disttf_checkpoint"), 0);
}

TEST_F(Metrics, OfATrainingThatDivergesSaySo) {
  ASSERT_TRUE(exits(launch({"--learning_rate=1e20", "--optimizer=sgd"}), kExitError));
  double diverged = 0;
  for (const char* task : {"worker-0", "worker-1"}) {
    // The first task to see it ends the run: the other may be stopped before it has written a file.
    if (std::filesystem::exists(scratch() / ("x." + std::string(task) + ".prom"))) {
      diverged += sum_of(file_of(task), "disttf_diverged");
    }
  }
  EXPECT_GE(diverged, 1);
}

TEST_F(Metrics, OfALaunchAreServedByItAndByEachOfItsTasks) {
  Process& job = run("launch", Words{"launch", "--ps=2", "--ps_replicas=2", "--metrics_port=0"} +
                                   endless() + data_flags());
  const std::uint16_t port = metrics_port_of(job);
  ASSERT_TRUE(says_times(job, 2, "worker:[01]. .*training step 20 done"));
  const auto have_copies = [](const std::vector<Samples>& tasks) {
    return tasks.size() == 5 && sum_of(tasks[1], "disttf_ps_replicas") == 2 &&
           sum_of(tasks[2], "disttf_ps_replicas") == 2;
  };
  const std::vector<Samples> all = scrape_until([port] { return scrape_all(port); }, have_copies);
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].at("disttf_children{task=\"launch\",state=\"running\"}"), 4);
  EXPECT_GE(all[0].at("disttf_run_step{task=\"launch\"}"), 1);
  for (std::size_t ps = 1; ps <= 2; ++ps) {
    EXPECT_EQ(sum_of(all[ps], "disttf_ps_replicas"), 2) << "reported by the primary of its range";
    EXPECT_EQ(sum_of(all[ps], "disttf_ps_primary"), 1) << "of two ranges";
  }
  for (std::size_t worker = 3; worker <= 4; ++worker) {
    EXPECT_GE(sum_of(all[worker], "disttf_step"), 20);
  }
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
}

TEST_F(Metrics, OfATaskThatWasKilledAreServedAtItsPortAgain) {
  Process& job =
      run("launch", Words{"launch", "--workers=2", "--metrics_port=0"} + endless() + data_flags());
  const std::uint16_t port = metrics_port_of(job);
  ASSERT_TRUE(says(job, "worker:1. .*training step 5 done"));
  const std::string before = http_body(http_get(port, "/targets"));
  ASSERT_FALSE(before.empty());
  for (const pid_t child : children_of(job.pid())) {
    const std::vector<std::string> words = command_line_of(child);
    if (std::ranges::count(words, "worker") + std::ranges::count(words, "--task_index=1") == 2) {
      kill(child, SIGKILL);
    }
  }
  ASSERT_TRUE(says_times(job, 2, "worker:1. .*metrics at http://"));
  EXPECT_EQ(http_body(http_get(port, "/targets")), before);
  const std::vector<Samples> all = scrape_all(port);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(sum_of(all[3], "disttf_build_info", "worker:1"), 1);
  EXPECT_EQ(all[0].at("disttf_child_restarts_total{task=\"launch\",child=\"worker:1\"}"), 1);
}

TEST_F(Metrics, AtAPortInUseEndTheTask) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run_task(cluster, net::Job::kPs, 0, {"--metrics_port=0"});
  const std::string port = std::to_string(metrics_port_of(ps));
  Process& worker = run_task(cluster, net::Job::kWorker, 0, {"--metrics_port=" + port});
  EXPECT_TRUE(exits(worker, kExitCannotListen));
  EXPECT_TRUE(says(worker, "--metrics_port: cannot listen on 127.0.0.1:" + port + ": "));
}

TEST_F(Metrics, ChangeNothingAboutTheWeights) {
  Process& job = launch({"--workers=2", "--print_weights_hash", "--metrics_port=0"});
  ASSERT_TRUE(exits(job, kExitDone));
  Process& plain =
      run("plain", Words{"launch", "--workers=2", "--print_weights_hash", "--train_steps=40"} +
                       data_flags());
  ASSERT_TRUE(exits(plain, kExitDone));
  EXPECT_EQ(weights_hash_in(job), weights_hash_in(plain));
}

// --- with Prometheus' own programs

class RealPrometheus : public Metrics {
 protected:
  void SetUp() override {
    for (const char* const program : {"/usr/bin/prometheus", "/usr/bin/promtool"}) {
      if (access(program, X_OK) != 0) {
        test_support::skip_without_engine(std::string(program) +
                                          " is not there; .ci/install engines installs it");
        return;
      }
    }
  }
  static std::string prometheus() {
    const char* const other = std::getenv("DISTTF_PROMETHEUS");
    return other == nullptr ? "/usr/bin/prometheus" : other;
  }
  Process& promtool(const Words& words) { return run_program("/usr/bin/promtool", words); }
  // Expects no findings of promtool.
  void expect_well_formed(const std::string& text) {
    const std::filesystem::path path = scratch() / "scrape.txt";
    std::ofstream(path, std::ios::binary) << text;
    Process& check =
        run_program("/bin/sh", {"-c", "/usr/bin/promtool check metrics <" + path.string()});
    EXPECT_TRUE(exits(check, 0));
    EXPECT_EQ(check.standard_output() + check.standard_error(), "");
  }
  static std::string of_source(const std::string& name) {
    return (source_directory() / "deploy/prometheus" / name).string();
  }
};

TEST_F(RealPrometheus, FindsNothingWrongWithWhatTasksExport) {
  Process& job = run("launch", Words{"launch", "--chief", "--metrics_port=0", "--eval_every=5",
                                     "--train_dir=" + (scratch() / "train").string()} +
                                   endless() + data_flags());
  const std::uint16_t port = metrics_port_of(job);
  ASSERT_TRUE(says(job, "training step 10 done"));
  const json targets = json::parse(http_body(http_get(port, "/targets"))).at(0).at("targets");
  ASSERT_EQ(targets.size(), 5U);
  for (const json& target : targets) {
    expect_well_formed(http_body(http_get(port_in(target), "/metrics")));
  }
}

TEST_F(RealPrometheus, TakesTheRulesAndTheSampleConfiguration) {
  EXPECT_TRUE(exits(promtool({"check", "rules", of_source("disttf.rules.yml")}), 0));
  EXPECT_TRUE(exits(promtool({"check", "config", of_source("prometheus.yml")}), 0));
}

TEST_F(RealPrometheus, AlertsWhenItShouldAndNotElse) {
  Process& tests = promtool({"test", "rules", of_source("disttf.rules_test.yml")});
  EXPECT_TRUE(exits(tests, 0));
  EXPECT_THAT(tests.standard_output() + tests.standard_error(), HasSubstr("SUCCESS"));
}

// A cluster that has trained and keeps running, and a Prometheus that gets its addresses from a
// launch or from a configuration.
class Scraped : public RealPrometheus {
 protected:
  // Starts it with this scrape configuration, indented below `scrape_configs:`.
  void start(const std::string& scrape_configs) {
    const std::filesystem::path path = scratch() / "prometheus.yml";
    std::ofstream(path) << "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n"
                        << scrape_configs;
    const std::string port = std::to_string(port_.number());
    run_program(
        prometheus(),
        {"--config.file=" + path.string(), "--storage.tsdb.path=" + (scratch() / "tsdb").string(),
         "--web.listen-address=127.0.0.1:" + port},
        "prometheus");
  }
  // Returns a query's result once it equals `expected`; otherwise the last one within the timeout.
  [[nodiscard]] double value_of(const std::string& query, double expected) const {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    double value = -1;
    while (value != expected && std::chrono::steady_clock::now() < until) {
      const json answer =
          json::parse(http_body(http_get(port_.number(), "/api/v1/query?query=" + query,
                                         "Connection: close\r\n")),
                      nullptr, /*allow_exceptions=*/false);
      if (answer.is_object() && answer.value("status", "") == "success" &&
          !answer["data"]["result"].empty()) {
        value = std::strtod(answer["data"]["result"][0]["value"][1].get<std::string>().c_str(),
                            nullptr);
      }
    }
    return value;
  }

  const ReservedPort port_;
};

TEST_F(Scraped, ByARealPrometheusHasTheRightValues) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  Tasks tasks = run_cluster(cluster, {"--metrics_port=0", "--train_steps=40", "--on_finish=idle"});
  std::string targets;
  for (Process* const task : tasks.all()) {
    targets += (targets.empty() ? "'127.0.0.1:" : ", '127.0.0.1:") +
               std::to_string(metrics_port_of(*task)) + "'";
  }
  ASSERT_TRUE(says(tasks.chief(), "accuracy: "));
  start("  - job_name: mnist\n    static_configs:\n      - targets: [" + targets + "]\n");
  EXPECT_EQ(value_of("sum(up)", 3), 3);
  EXPECT_EQ(value_of("disttf_ps_step", 40), 40);
  EXPECT_EQ(value_of("sum(disttf_examples_total)", 8000), 8000);
  EXPECT_EQ(value_of("sum(disttf_ps_pushes_total)", 80), 80);
  EXPECT_EQ(value_of("sum(disttf_gradient_seconds_count)", 80), 80);
  EXPECT_EQ(value_of("sum(disttf_gradient_seconds_bucket{le=%22%2BInf%22})", 80), 80);
  EXPECT_EQ(value_of("count(disttf_build_info)", 3), 3);
  EXPECT_EQ(value_of("sum(disttf_diverged)", 0), 0);
}

TEST_F(Scraped, FindsTheTasksOfALaunchByItself) {
  Process& job =
      run("launch", Words{"launch", "--workers=2", "--metrics_port=0"} + endless() + data_flags());
  const std::string port = std::to_string(metrics_port_of(job));
  ASSERT_TRUE(says(job, "training step 1 done"));
  start("  - job_name: launch\n    http_sd_configs:\n      - url: http://127.0.0.1:" + port +
        "/targets\n        refresh_interval: 1s\n");
  EXPECT_EQ(value_of("sum(up)", 4), 4);
  EXPECT_EQ(value_of("sum(disttf_child_running)", 3), 3);
  EXPECT_EQ(value_of("count(count%20by%20(task)%20(disttf_build_info))", 4), 4);
}

// /targets announces that all of them use https.
TEST_F(Scraped, FindsTheTasksOfALaunchOverHttps) {
  const std::string own = (scratch() / "p256/").string();
  ASSERT_TRUE(exits(run_program(test_support::identity_maker(), {"p256", own}), kExitDone));
  Process& job =
      run("launch", Words{"launch", "--workers=2", "--metrics_port=0",
                          "--tls_cert=" + own + "server.pem", "--tls_key=" + own + "server.key"} +
                        endless() + data_flags());
  ASSERT_TRUE(says(job, "metrics at https://"));
  ASSERT_TRUE(says(job, "training step 1 done"));
  const std::string trust = "tls_config: {ca_file: " + own + "ca.pem, server_name: localhost}\n";
  start("  - job_name: launch\n    " + trust + "    http_sd_configs:\n      - url: " +
        captured(job.standard_error(), "metrics at (https://[0-9.:]+)/") +
        "/targets\n        refresh_interval: 1s\n        " + trust);
  EXPECT_EQ(value_of("sum(up)", 4), 4);
  EXPECT_EQ(value_of("sum(disttf_child_running)", 3), 3);
}

}  // namespace
}  // namespace disttf::test_process
