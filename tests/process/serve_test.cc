// `disttf serve`: the real binary on real sockets. Its models are synthetic: version N predicts N %
// 10 for every image, so that an answer shows which version gave it.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "data/gzip.h"
#include "data/posix_file_system.h"
#include "data/tensorboard/events.h"
#include "model/trained_model.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/process/asker.h"
#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;

constexpr std::size_t kPixels = 784;

roles::RunConfig config() {
  roles::RunConfig config;
  config.dataset = "MadeUp";
  config.model.kind = math::ModelKind::kSoftmax;
  return config;
}

// Predicts step % 10, with a small dependence on the image.
roles::TrainingState state_of(std::uint64_t step, const math::ParameterLayout& layout) {
  roles::TrainingState state;
  state.step = step;
  state.parameters = math::AlignedVector(layout.size());
  for (const math::Variable& variable : layout.variables()) {
    const auto values = state.parameters.span().subspan(variable.offset, variable.size);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.001F * static_cast<float>(static_cast<int>((i * 37 + step) % 11) - 5);
    }
    if (variable.size == 10) {
      values[step % 10] = 9;
    }
  }
  return state;
}

std::string image(unsigned seed) {
  std::string text = "[";
  for (unsigned i = 0; i < kPixels; ++i) {
    text += (i == 0 ? "" : ",") + std::to_string((i * seed) % 256);
  }
  return text + "]";
}

class Serve : public ProcessTest {
 protected:
  [[nodiscard]] std::filesystem::path models() const { return scratch() / "run"; }

  void save(std::uint64_t step, float first_weight = 0.001F) {
    const math::ParameterLayout layout = math::layout_of(config().model);
    roles::TrainingState state = state_of(step, layout);
    state.parameters.span()[0] = first_weight;
    data::PosixFileSystem disk;
    roles::CheckpointStore(disk, models()).save(++attempts_, state, layout, to_json(config()), 3);
  }
  Process& serve(const Words& flags = {}, const char* threads = "--threads=2") {
    Process& service = run("serve", Words{"serve", models().string(), "--port=0", threads} + flags);
    EXPECT_TRUE(says(service, "serving at http://127.0.0.1:[0-9]+/v1/models/default"));
    port_ = static_cast<std::uint16_t>(
        std::stoi(captured(service.standard_error(), "serving at http://127.0.0.1:([0-9]+)/")));
    return service;
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

  // Waits until that version is the newest that answers.
  void wait_for_version(std::uint64_t version) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    Asker asker(port());
    while (asker.get("/v2/models/default").as_json()["versions"][0] != std::to_string(version)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << version;
    }
  }

 private:
  std::uint64_t attempts_ = 0;
  std::uint16_t port_ = 0;
};

const std::string kPredict = "/v1/models/default:predict";
const std::string kInfer = "/v2/models/default/infer";

std::string instances(const std::string& rows) { return R"({"instances":[)" + rows + "]}"; }
std::string tensor(const std::string& row) {
  return R"({"inputs":[{"name":"inputs","shape":[1,784],"datatype":"FP32","data":)" + row + "}]}";
}

TEST_F(Serve, BothApisSayWhatTheModelSays) {
  save(3);
  serve();
  Asker asker(port());
  const json rest = asker.ask(kPredict, instances(image(3) + "," + image(5))).as_json();
  const json inference = asker.ask(kInfer, tensor(image(3))).as_json();
  EXPECT_EQ(rest["predictions"][0], inference["outputs"][0]["data"]);
  EXPECT_EQ(inference["model_version"], "3");
  const json classes =
      asker.ask("/v1/models/default:classify", R"({"examples":[{"inputs":)" + image(5) + "}]}")
          .as_json();
  EXPECT_EQ(classes["results"][0][4][1], rest["predictions"][1][4]);

  // The library gives the same outputs for the same image.
  roles::TrainedModel model;
  model.config = config();
  const math::ParameterLayout layout = math::layout_of(model.config.model);
  model.parameters = state_of(3, layout).parameters;
  model.parameters.span()[0] = 0.001F;
  std::vector<std::uint8_t> pixels;
  for (unsigned i = 0; i < kPixels; ++i) {
    pixels.push_back(static_cast<std::uint8_t>(i * 3));
  }
  std::vector<float> expected(10);
  predictor_of(model, 1)->predict(pixels, expected);
  EXPECT_EQ(rest["predictions"][0].get<std::vector<float>>(), expected);

  const std::string file = data::encode_png(pixels, 28, 28, 1);
  const json of_png = asker.ask(kPredict, file, "Content-Type: image/png\r\n").as_json();
  EXPECT_EQ(of_png["predictions"][0], rest["predictions"][0]);
  const std::string head =
      R"({"inputs":[{"name":"inputs","shape":[1,28,28,1],"datatype":"UINT8","parameters":)"
      R"({"binary_data_size":784}}],"outputs":[{"name":"probabilities","parameters":)"
      R"({"binary_data":true}}]})";
  const Asker::Answer binary =
      asker.ask(kInfer, head + std::string(pixels.begin(), pixels.end()),
                "Inference-Header-Content-Length: " + std::to_string(head.size()) + "\r\n");
  ASSERT_EQ(binary.status, 200) << binary.body;
  const std::string bytes(reinterpret_cast<const char*>(expected.data()), 40);
  EXPECT_TRUE(binary.body.ends_with(bytes));
}

TEST_F(Serve, TellsOfItselfAndItsModel) {
  save(3);
  save(4);
  serve({"--keep_versions=2", "--access_log=" + (scratch() / "access").string()});
  Asker asker(port());
  EXPECT_EQ(asker.get("/v2/health/live").status, 200);
  EXPECT_EQ(asker.get("/v2/health/ready").status, 200);
  EXPECT_EQ(asker.get("/v2").as_json()["name"], "disttf");
  EXPECT_EQ(asker.get("/v2/models/default/versions/3/ready").status, 200);
  EXPECT_EQ(asker.get("/v2/models/default").as_json()["versions"], json({"4", "3"}));
  EXPECT_EQ(asker.get("/v1/models/default").as_json()["model_version_status"][0]["state"],
            "AVAILABLE");
  EXPECT_EQ(asker.get("/v1/models/default/metadata").as_json()["model_spec"]["version"], "4");
  EXPECT_EQ(asker.get("/v1/page").as_json()["kind"], "image");
  const json old =
      asker.ask("/v1/models/default/versions/3:predict", instances(image(1))).as_json();
  EXPECT_GT(old["predictions"][0][3], 0.9);
  const json latest =
      asker.ask("/v1/models/default/labels/latest:predict", instances(image(1))).as_json();
  EXPECT_GT(latest["predictions"][0][4], 0.9);
  const std::string metrics = asker.get("/metrics").body;
  EXPECT_THAT(metrics, testing::HasSubstr("disttf_serve_model_version{task=\"serve\"} 4"));
  EXPECT_THAT(metrics, testing::HasSubstr("disttf_serve_rows_total{task=\"serve\"} 2"));
  std::ifstream log(scratch() / "access");
  std::string line;
  ASSERT_TRUE(std::getline(log, line));
  EXPECT_EQ(json::parse(line)["path"], "/v2/health/live");
}

TEST_F(Serve, WhatMakesNoSenseIsRefusedAndTheConnectionGoesOn) {
  save(3);
  Process& service = serve();
  struct Case {
    std::string path;
    std::string body;
    int status;
    std::string fields = {};
  };
  const std::string deep(100'000, '[');
  const std::string zeros(100 << 20U, '0');
  const std::vector<Case> cases = {
      {kPredict, "", 400},
      {kPredict, "no JSON", 400},
      {kPredict, instances("[1,2,3]"), 400},
      {kPredict, instances("[" + std::string(1000, '1') + "]"), 400},
      {kPredict, instances(R"({"b64":"iVBORw0KGgo="})"), 400},
      {kPredict, R"({"instances":)" + deep, 400},
      {kPredict, std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff", 24),
       400, "Content-Type: image/png\r\n"},
      {kPredict, "x", 400, "Content-Encoding: gzip\r\n"},
      {kPredict, data::gzip(zeros), 413, "Content-Encoding: gzip\r\n"},
      {kPredict, "x", 415, "Content-Encoding: br\r\n"},
      {kInfer, R"({"inputs":[]})", 400},
      {kInfer, "{}", 400, "Inference-Header-Content-Length: 99\r\n"},
      {kInfer, "{}", 400, "Inference-Header-Content-Length: x\r\n"},
      {"/v1/models/other:predict", instances(image(1)), 404},
      {"/v1/models/default/versions/9:predict", instances(image(1)), 404},
      {"/v1/models/default/versions/x:predict", instances(image(1)), 400},
      {"/v1/models/default/labels/stable:predict", instances(image(1)), 404},
      {"/v1/models/default:dance", "{}", 404},
      {"/v1/models/default", "{}", 405},
      {"/v2/models/other/infer", "{}", 404},
      {"/nowhere", "{}", 404},
  };
  Asker asker(port());
  for (const Case& each : cases) {
    const Asker::Answer answer = asker.ask(each.path, each.body, each.fields);
    EXPECT_EQ(answer.status, each.status) << each.path << " " << each.body.substr(0, 80);
    EXPECT_TRUE(json::accept(answer.body) && answer.as_json().contains("error")) << answer.body;
  }
  EXPECT_EQ(asker.ask(kPredict, instances(image(1))).status, 200);
  Asker large(port());
  large.send("POST " + kPredict + " HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(large.receive().status, 413);
  Asker chunked(port());
  chunked.send("POST " + kPredict +
               " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.receive().status, 400);  // an empty body
  service.send(SIGTERM);
  EXPECT_TRUE(exits(service, kExitTerminated));
}

TEST_F(Serve, AnswersAreBitIdenticalUnderConcurrentRequests) {
  save(3);
  Process& service = serve({"--max_batch=16"}, "--threads=1");
  std::vector<std::string> alone;
  std::deque<Asker> askers;
  for (unsigned i = 0; i < 40; ++i) {
    alone.push_back(askers.emplace_back(port()).ask(kPredict, instances(image(i))).body);
  }
  service.send(SIGSTOP);
  for (unsigned i = 0; i < 40; ++i) {
    askers[i].post(kPredict, instances(image(i)));
  }
  service.send(SIGCONT);
  for (unsigned i = 0; i < 40; ++i) {
    EXPECT_EQ(askers[i].receive().body, alone[i]) << i;
  }
  // 40 batches of one row, then batches of 16, 16 and 8.
  EXPECT_THAT(Asker(port()).get("/metrics").body,
              testing::HasSubstr("disttf_serve_batch_rows_count{task=\"serve\"} 43\n"));
}

TEST_F(Serve, RequestsMayFollowEachOtherAtOnce) {
  save(3);
  serve();
  Asker asker(port());
  const std::string one = asker.ask(kPredict, instances(image(1))).body;
  for (int i = 0; i < 20; ++i) {
    asker.post(kPredict, instances(image(1)));
    asker.send("GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(asker.receive().body, one);
    EXPECT_EQ(asker.receive().as_json()["name"], "disttf");
  }
}

TEST_F(Serve, BodiesMayBeGzippedBothWays) {
  save(3);
  serve();
  Asker asker(port());
  std::string rows = image(1);
  for (int i = 0; i < 99; ++i) {
    rows += "," + image(2);
  }
  const std::string plain = asker.ask(kPredict, instances(rows)).body;
  const Asker::Answer packed =
      asker.ask(kPredict, data::gzip(instances(rows)),
                "Content-Encoding: gzip\r\nAccept-Encoding: gzip, deflate\r\n");
  EXPECT_THAT(packed.head, testing::HasSubstr("Content-Encoding: gzip"));
  std::vector<std::uint8_t> unpacked;
  const std::vector<std::uint8_t> bytes(packed.body.begin(), packed.body.end());
  ASSERT_FALSE(data::gunzip(bytes, plain.size(), unpacked));
  EXPECT_EQ(std::string(unpacked.begin(), unpacked.end()), plain);
}

TEST_F(Serve, WhoComesWhenTheQueueIsFullIsToldToComeAgain) {
  save(3);
  Process& service = serve({"--max_queue=1", "--max_batch=1"}, "--threads=1");
  std::deque<Asker> askers;
  for (unsigned i = 0; i < 20; ++i) {
    ASSERT_EQ(askers.emplace_back(port()).ask(kPredict, instances(image(i))).status, 200);
  }
  service.send(SIGSTOP);
  for (const Asker& each : askers) {
    each.post(kPredict, instances(image(1)));
  }
  service.send(SIGCONT);
  int refused = 0;
  for (Asker& each : askers) {
    const Asker::Answer answer = each.receive();
    if (answer.status != 200) {
      ++refused;
      EXPECT_EQ(answer.status, 503);
      EXPECT_THAT(answer.head, testing::HasSubstr("Retry-After: 1\r\n"));
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 20);
}

TEST_F(Serve, ANewCheckpointAnswersWithoutARequestThatFails) {
  save(1);
  serve();
  std::atomic<bool> is_over = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> answered = 0;
  std::vector<std::thread> load;
  for (int i = 0; i < 3; ++i) {
    load.emplace_back([&] {
      Asker asker(port());
      while (!is_over) {
        const Asker::Answer answer = asker.ask(kInfer, tensor(image(7)));
        ++answered;
        if (answer.status != 200) {
          ++wrong;
          return;
        }
        const json said = answer.as_json();
        const auto version = std::stoul(said["model_version"].get<std::string>());
        wrong += said["outputs"][0]["data"][version % 10] > 0.9 ? 0 : 1;
      }
    });
  }
  for (std::uint64_t step = 2; step <= 12; ++step) {
    save(step);
    wait_for_version(step);
  }
  is_over = true;
  for (std::thread& each : load) {
    each.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(answered, 12);
}

TEST_F(Serve, AModelWhoseWeightsAreNoNumbersIsRefusedAndTheOldOneStays) {
  save(1);
  Process& service = serve();
  save(2, std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(says(service, "not served: .*checkpoint-00000002: some of its weights are not"));
  Asker asker(port());
  EXPECT_GT(asker.ask(kPredict, instances(image(1))).as_json()["predictions"][0][1], 0.9);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  json status;
  do {
    status = asker.get("/v1/models/default").as_json()["model_version_status"];
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  } while (status.size() < 2);
  EXPECT_EQ(status[1]["version"], "2");
  EXPECT_EQ(status[1]["state"], "END");
  save(3);
  wait_for_version(3);
}

// The usual ways of a release: a switched link, and a directory that is made anew.
TEST_F(Serve, AModelThatALinkIsSwitchedToAnswers) {
  namespace fs = std::filesystem;
  save(3);
  fs::create_directories(scratch() / "releases");
  fs::rename(models(), scratch() / "releases" / "1");
  save(4);
  fs::create_directory_symlink(scratch() / "releases" / "1", scratch() / "current");
  Process& service = run("serve", {"serve", (scratch() / "current").string(), "--port=0"});
  ASSERT_TRUE(says(service, "Serving version 3"));
  fs::rename(models(), scratch() / "releases" / "2");
  fs::create_directory_symlink(scratch() / "releases" / "2", scratch() / "next");
  fs::rename(scratch() / "next", scratch() / "current");
  EXPECT_TRUE(says(service, "Serving version 4"));
}

TEST_F(Serve, AModelInADirectoryThatIsMadeAnewAnswers) {
  save(3);
  Process& service = serve();
  std::filesystem::remove_all(models());
  ASSERT_TRUE(says(service, "is gone; the present models stay"));
  save(4);
  EXPECT_TRUE(says(service, "Serving version 4"));
}

TEST_F(Serve, PixelsThatWereDividedBy255AreAnsweredWithAWarning) {
  save(3);
  Process& service = serve();
  Asker asker(port());
  std::string unit = "[0.5";
  for (std::size_t i = 1; i < kPixels; ++i) unit += ",0.25";
  const json warned = asker.ask(kPredict, instances(unit + "]")).as_json();
  EXPECT_THAT(warned["warnings"][0].get<std::string>(), testing::HasSubstr("from 0 to 255"));
  EXPECT_TRUE(asker.ask(kInfer, tensor(unit + "]")).as_json().contains("warnings"));
  EXPECT_FALSE(asker.ask(kPredict, instances(image(3))).as_json().contains("warnings"));
  EXPECT_FALSE(asker.ask(kPredict, instances(image(0))).as_json().contains("warnings"));
  EXPECT_THAT(asker.get("/metrics").body,
              testing::HasSubstr("disttf_serve_input_range_warnings_total{task=\"serve\"} 2"));
  EXPECT_TRUE(says(service, "all values are from 0 to 1"));
}

TEST_F(Serve, PixelsThatWereDividedBy255AreTakenWithAFlag) {
  save(3);
  serve({"--input_range=auto"});
  Asker asker(port());
  std::string unit = "[";
  std::string bytes = "[";
  for (unsigned i = 0; i < kPixels; ++i) {
    unit += (i == 0 ? "" : ",") + std::to_string((i * 3 % 256) / 255.0);
    bytes += (i == 0 ? "" : ",") + std::to_string(i * 3 % 256);
  }
  const json scaled = asker.ask(kPredict, instances(unit + "]")).as_json();
  EXPECT_EQ(scaled, asker.ask(kPredict, instances(bytes + "]")).as_json());
}

TEST_F(Serve, AHalfCopiedVersionIsNotServedUntilItIsWhole) {
  save(1);
  const std::filesystem::path versions = scratch() / "versions";
  const auto copy =
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing;
  std::filesystem::create_directories(versions);
  std::filesystem::copy(models() / "checkpoint-00000001", versions / "7", copy);
  std::filesystem::rename(models(), scratch() / "made");
  std::filesystem::rename(versions, models());
  Process& service = serve();
  wait_for_version(7);
  const std::filesystem::path next = models() / "0010";
  std::filesystem::copy(models() / "7", next, copy);
  for (const auto& entry : std::filesystem::directory_iterator(next)) {
    if (entry.path().extension() == ".safetensors") {
      std::filesystem::resize_file(entry.path(), 1000);
    }
  }
  ASSERT_TRUE(says(service, "not served: .*0010"));
  EXPECT_EQ(Asker(port()).ask(kPredict, instances(image(1))).status, 200);
  std::filesystem::copy(models() / "7", next, copy);
  wait_for_version(10);
}

TEST_F(Serve, AfterASignalItAnswersForAWhileAndSaysThatItIsNotReady) {
  save(1);
  Process& service = serve({"--drain=1"});
  Asker open(port());
  ASSERT_EQ(open.ask(kPredict, instances(image(1))).status, 200);
  Asker probe(port());
  ASSERT_EQ(probe.get("/v2/health/ready").status, 200);
  service.send(SIGTERM);
  ASSERT_TRUE(says(service, "no longer ready"));
  EXPECT_EQ(probe.get("/v2/health/ready").status, 503);
  const Asker::Answer last = open.ask(kPredict, instances(image(1)));
  EXPECT_EQ(last.status, 200);
  EXPECT_THAT(last.head, testing::HasSubstr("Connection: close"));
  EXPECT_TRUE(exits(service, kExitTerminated));
}

TEST_F(Serve, IsThereBeforeItsModel) {
  std::filesystem::create_directories(models());
  serve();
  Asker asker(port());
  EXPECT_EQ(asker.get("/v2/health/ready").status, 503);
  EXPECT_EQ(asker.get("/v2/health/live").status, 200);
  const Asker::Answer early = asker.ask(kPredict, instances(image(1)));
  EXPECT_EQ(early.status, 503);
  EXPECT_THAT(early.head, testing::HasSubstr("Retry-After"));
  save(5);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (asker.get("/v2/health/ready").status != 200) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_EQ(asker.ask(kPredict, instances(image(1))).status, 200);
}

TEST_F(Serve, OfficialClientsAreAnswered) {
  const char* const given = std::getenv("DISTTF_SERVE_CLIENTS");
  const std::filesystem::path python = given != nullptr ? std::filesystem::path(given)
                                                        : source_directory() / "build" / "tools" /
                                                              "serve_clients" / "bin" / "python";
  if (!std::filesystem::exists(python)) {
    test_support::skip_without_engine(python.string() +
                                      " is not there: .ci/tools makes it; or "
                                      "DISTTF_SERVE_CLIENTS names one");
    return;
  }
  save(3);
  serve();
  Process& clients =
      run_program(python,
                  {(source_directory() / "tests" / "process" / "serve_clients.py").string(),
                   std::to_string(port()), "3"},
                  "clients");
  EXPECT_TRUE(exits(clients, kExitDone));
  EXPECT_TRUE(says(clients, "all as expected"));
}

TEST_F(Serve, AwaitsADirectoryAndItsFirstModel) {
  Process& service = serve();
  EXPECT_TRUE(says(service, "waiting for a model: .*/run.* is not there yet"));
  Asker asker(port());
  EXPECT_EQ(asker.get("/v2/health/live").status, 200);
  EXPECT_EQ(asker.get("/v2/health/ready").status, 503);
  EXPECT_EQ(asker.get("/v1/page").as_json()["ready"], false);
  const Asker::Answer early = asker.ask(kPredict, instances(image(1)));
  EXPECT_EQ(early.status, 503);
  EXPECT_EQ(early.as_json()["error"], "no model is loaded yet; try again");
  std::filesystem::create_directory(models());
  EXPECT_TRUE(says(service, "waiting for a model: .*/run.* contains neither"));
  std::ofstream(models() / "notes") << "no model";
  save(3);
  wait_for_version(3);
  EXPECT_EQ(asker.get("/v2/health/ready").status, 200);
  std::filesystem::rename(models(), scratch() / "elsewhere");
  EXPECT_TRUE(says(service, "/run.* is gone; the present models stay"));
  EXPECT_EQ(asker.ask(kPredict, instances(image(1))).status, 200);
}

TEST_F(Serve, WhatCannotBeServedEndsItWithACode) {
  save(1);
  Process& service = serve();
  struct Case {
    Words words;
    int exit_code;
    std::string sentence;
  };
  const std::string directory = models().string();
  const std::string file = (scratch() / "file").string();
  std::ofstream(file) << "no model";
  for (const Case& each : std::vector<Case>{
           {{}, kExitUsage, "the directory is missing"},
           {{file}, kExitUsage, "file\" is not a directory"},
           {{directory, directory}, kExitUsage, "follows it"},
           {{directory, "--name=a/b"}, kExitUsage, "--name: \"a/b\""},
           {{directory, "--host=here"}, kExitUsage, "--host"},
           {{directory, "--max_batch=0"}, kExitUsage, "--max_batch"},
           {{directory, "--port=" + std::to_string(port())}, kExitCannotListen, "--port"}}) {
    Process& refused = run("refused", Words{"serve"} + each.words);
    EXPECT_TRUE(exits(refused, each.exit_code));
    EXPECT_TRUE(says(refused, each.sentence));
  }
  service.send(SIGINT);
  EXPECT_TRUE(exits(service, kExitInterrupted));
}

}  // namespace
}  // namespace disttf::test_process
