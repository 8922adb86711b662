// Measures `disttf serve` under load, beside a bare HTTP service that answers with as many bytes,
// and beside onnxruntime behind uvicorn, which answers the same requests with the same model.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cmath>
#include <cstdio>
#include <deque>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/echo_peer.h"
#include "bench/http_load.h"
#include "bench/launch.h"
#include "data/posix_file_system.h"
#include "math/model.h"
#include "net/http/http_service.h"
#include "net/tcp/sockets.h"
#include "run/run_config.h"
#include "storage/checkpoint/core/checkpoint_store.h"

namespace disttf::bench {
namespace {

constexpr std::size_t kServedPixels = 784;
constexpr std::array<std::size_t, 3> kLoads = {1, 16, 64};  // connections
constexpr int kPythonLacks = 77;                            // exit code of the programs in peers/

std::string threads_text() {
  return std::to_string(std::max(1U, std::thread::hardware_concurrency()));
}

// Saves a checkpoint of an untrained 784-100-10 model: the values of its weights do not affect the
// time.
void save_model(const std::string& folder) {
  roles::RunConfig config;
  config.dataset = "bench";
  config.model = bench_model("mlp_100");
  const math::ParameterLayout layout = math::layout_of(config.model);
  roles::TrainingState state;
  state.step = 1;
  state.parameters = math::AlignedVector(layout.size());
  math::Model(config.model, 1, math::Isa::kGeneric).initialize(1, state.parameters.span());
  data::PosixFileSystem disk;
  roles::CheckpointStore(disk, folder).save(1, state, layout, to_json(config), 1);
}

std::string post(const std::string& path, const std::string& fields, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: bench\r\n" + fields +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string json_row() {
  std::string row;
  for (std::size_t pixel = 0; pixel < kServedPixels; ++pixel) {
    row += (pixel == 0 ? "" : ",") + std::to_string(pixel * 7 % 256);
  }
  return R"({"instances":[[)" + row + "]]}";
}

std::string pixel_bytes() {
  std::string bytes;
  for (std::size_t pixel = 0; pixel < kServedPixels; ++pixel) {
    bytes.push_back(static_cast<char>(pixel * 7 % 256));
  }
  return bytes;
}

std::string tensor_request() {
  const std::string head =
      R"({"inputs":[{"name":"inputs","shape":[1,784],"datatype":"UINT8",)"
      R"("parameters":{"binary_data_size":784}}],"parameters":{"binary_data_output":true}})";
  return post("/v2/models/default/infer",
              "Inference-Header-Content-Length: " + std::to_string(head.size()) + "\r\n",
              head + pixel_bytes());
}

// A request in one form, for any of the servers.
struct ServedForm {
  std::string name;
  std::string ours;
  std::string theirs;  // for the Python server, whose byte form is simpler: pixels in, floats out
};

std::vector<ServedForm> served_forms() {
  const std::string json = post("/v1/models/default:predict", {}, json_row());
  return {
      {.name = "json", .ours = json, .theirs = json},
      {.name = "binary", .ours = tensor_request(), .theirs = post("/bytes", {}, pixel_bytes())}};
}

// The bare service: all of its responses have the same length and no meaning.
class FixedAnswer final : public net::HttpServiceHandler {
 public:
  explicit FixedAnswer(std::size_t bytes) : reply_{.body = std::string(bytes, '0')} {}
  void ask(net::HttpExchange& exchange) override { exchange.answer(reply_); }
  bool work() override { return false; }
  void answered(const net::HttpExchange& /*exchange*/, int /*status*/,
                std::size_t /*bytes*/) override {}

 private:
  const net::HttpReply reply_;
};

pid_t start_bare_service(std::uint16_t port, std::size_t answer_bytes) {
  return in_child([port, answer_bytes] {
    asio::io_context context;
    const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
    net::HttpService service({.threads = threads}, [answer_bytes](std::size_t) {
      return std::make_unique<FixedAnswer>(answer_bytes);
    });
    service.listen(net::listen_at(context, "127.0.0.1", port), {});
    std::vector<std::thread> others;
    for (std::size_t thread = 1; thread < threads; ++thread) {
      others.emplace_back([&service, thread] { service.run(thread); });
    }
    service.run(0);
  });
}

std::uint16_t unused_port() {
  asio::io_context context;
  return asio::ip::tcp::acceptor(context, {asio::ip::address_v4::loopback(), 0})
      .local_endpoint()
      .port();
}

// A server that dies with this object. Its constructor returns when the server answers.
class LoadedServer {
 public:
  LoadedServer(std::uint16_t port, pid_t pid, const std::string& request)
      : port_(port), peer_(pid) {
    static_cast<void>(await_answer(port, request));
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  std::uint16_t port_;
  Peer peer_;
};

pid_t start_program(const std::vector<std::string>& words) {
  return in_child([&words] {
    std::vector<char*> arguments;
    for (const std::string& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    throw std::runtime_error("cannot be run");
  });
}

pid_t start_serve(const std::string& folder, std::uint16_t port) {
  return start_program({disttf_program(), "serve", folder, "--port=" + std::to_string(port),
                        "--threads=" + threads_text()});
}

// One of the servers that are measured in turn.
struct LoadSide {
  std::string name;
  std::uint16_t port = 0;
  const std::string* request = nullptr;
  std::string floor;  // the name of another measured side
  std::vector<HttpLoadResult> results = {};

  [[nodiscard]] Figure figure() const {
    std::vector<double> rates;
    std::vector<double> p50;
    std::vector<double> p99;
    for (const HttpLoadResult& each : results) {
      rates.push_back(each.requests_per_second);
      p50.push_back(each.p50_us);
      p99.push_back(each.p99_us);
    }
    return {.name = name,
            .median = median(rates),
            .slowest = *std::ranges::min_element(rates),
            .unit = "requests/s",
            .floor = floor,
            .ratio = {},
            .extras = {{"p50_us", median(p50)}, {"p99_us", median(p99)}}};
  }
};

double rate_to(const LoadSide& side, const LoadSide& floor) {
  std::vector<double> own;
  std::vector<double> beside;
  for (std::size_t turn = 0; turn < side.results.size(); ++turn) {
    own.push_back(side.results[turn].requests_per_second);
    beside.push_back(floor.results[turn].requests_per_second);
  }
  return ratio_of_pairs(own, beside);
}

// Measures in turn, the floors first.
void take_turns(std::deque<LoadSide> sides, std::size_t connections, const JobOptions& options,
                Reporter& reporter) {
  const std::chrono::milliseconds time(options.quick ? 20 : 1000);
  for (int turn = 0; turn < options.repetitions; ++turn) {
    for (LoadSide& side : sides) {
      side.results.push_back(run_http_load(
          {.port = side.port, .request = *side.request, .connections = connections, .time = time}));
    }
  }
  for (const LoadSide& side : sides) {
    Figure figure = side.figure();
    const auto floor = std::ranges::find(sides, side.floor, &LoadSide::name);
    if (floor != sides.end()) {
      figure.ratio = rate_to(side, *floor);
    }
    reporter.add(figure);
  }
}

// Measures the answers without HTTP: one image after the other, on one core.
void add_inference(const JobOptions& options, Reporter& reporter) {
  const math::ModelSpec spec = bench_model("mlp_100");
  math::Model model(spec, math::Model::kInferredPanelRows, math::supported_isas().front());
  math::AlignedVector parameters(model.layout().size());
  model.initialize(1, parameters.span());
  const std::vector<std::uint8_t> image(kServedPixels, 7);
  std::vector<float> outputs(spec.classes);
  const int images = options.quick ? 10 : 100'000;
  std::vector<double> rates;
  for (int turn = 0; turn < options.repetitions; ++turn) {
    const auto begin = std::chrono::steady_clock::now();
    for (int each = 0; each < images; ++each) {
      model.infer(parameters.span(), {.images = image}, 1, outputs);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    rates.push_back(images / took.count());
  }
  if (!std::isfinite(outputs.front())) {
    throw std::runtime_error("the model's output is not a number");
  }
  reporter.add({.name = "serve/infer",
                .median = median(rates),
                .slowest = *std::ranges::min_element(rates),
                .unit = "images/s",
                .floor = {},
                .ratio = {},
                .extras = {}});
}

std::string python_command(const JobOptions& options) {
  return options.python + " " DISTTF_SOURCE_DIR "/bench/peers/onnx_uvicorn.py";
}

// Starts the peer. Returns nullptr, after printing why, if this Python lacks a package.
std::unique_ptr<LoadedServer> start_python(const std::string& folder, const JobOptions& options) {
  int exit_code = 0;
  std::string output = output_of(python_command(options) + " --help", &exit_code);
  if (exit_code != 0) {
    output.resize(std::min(output.size(), output.find('\n')));
    std::fprintf(
        stderr, "no versus/uvicorn: %s\n",
        exit_code == kPythonLacks ? output.c_str() : (options.python + " cannot be run").c_str());
    return nullptr;
  }
  const std::string model = folder + "/model.onnx";
  output = output_of(disttf_program() + " export " + folder + " --format onnx --output " + model +
                         " --dataset=" + options.dataset + " --data_dir=" + options.data_dir,
                     &exit_code);
  if (exit_code != 0) {
    throw std::runtime_error("the model cannot be exported:\n" + output);
  }
  const std::uint16_t port = unused_port();
  return std::make_unique<LoadedServer>(
      port,
      start_program({options.python, DISTTF_SOURCE_DIR "/bench/peers/onnx_uvicorn.py",
                     "--model=" + model, "--port=" + std::to_string(port),
                     "--workers=" + threads_text()}),
      served_forms().front().theirs);
}

std::string point_of(const ServedForm& form, std::size_t connections) {
  return form.name + "/" + std::to_string(connections);
}

// Returns whether any wanted figure needs a server.
bool wants_any(const JobOptions& options) {
  for (const ServedForm& form : served_forms()) {
    for (const std::size_t connections : kLoads) {
      const std::string point = point_of(form, connections);
      if (options.wants("serve/" + point) || options.wants("versus/uvicorn/" + point)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

void run_serving(const JobOptions& options, bool with_peers, Reporter& reporter) {
  if (options.wants("serve/infer")) {
    add_inference(options, reporter);
  }
  if (!wants_any(options)) {
    return;
  }
  const ScratchDirectory scratch;
  save_model(scratch.path());
  const std::uint16_t port = unused_port();
  const LoadedServer ours(port, start_serve(scratch.path(), port), served_forms().front().ours);
  const std::unique_ptr<LoadedServer> theirs =
      with_peers ? start_python(scratch.path(), options) : nullptr;
  for (const ServedForm& form : served_forms()) {
    const std::uint16_t bare_port = unused_port();
    const std::size_t answer_bytes = await_answer(ours.port(), form.ours).size();
    const LoadedServer bare(bare_port, start_bare_service(bare_port, answer_bytes), form.ours);
    for (const std::size_t connections : kLoads) {
      const std::string point = point_of(form, connections);
      const std::string name = "serve/" + point;
      if (options.wants(name)) {
        take_turns(
            {{.name = name + "/bare", .port = bare.port(), .request = &form.ours, .floor = {}},
             {.name = name, .port = ours.port(), .request = &form.ours, .floor = name + "/bare"}},
            connections, options, reporter);
      }
      const std::string versus = "versus/uvicorn/" + point;
      if (theirs != nullptr && options.wants(versus)) {
        take_turns({{.name = versus + "/theirs",
                     .port = theirs->port(),
                     .request = &form.theirs,
                     .floor = {}},
                    {.name = versus,
                     .port = ours.port(),
                     .request = &form.ours,
                     .floor = versus + "/theirs"}},
                   connections, options, reporter);
      }
    }
  }
}

}  // namespace disttf::bench
