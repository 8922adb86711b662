// A thread of the service: parses requests, forms batches, computes and answers, all on the thread
// of the sockets. A small model computes faster than a request is handed to another thread.
//
// One object per thread. Shared objects are constant, or documented as safe for any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_service.h"
#include "roles/serve/core/api_route.h"
#include "roles/serve/core/batch_queue.h"
#include "roles/serve/core/question.h"
#include "roles/serve/shell/access_log.h"
#include "roles/serve/shell/model_registry.h"
#include "roles/serve/shell/serve_command.h"
#include "roles/serve/shell/serve_meters.h"
#include "roles/serve/shell/serve_page.h"
#include "run/monitor/shell/meters.h"

namespace disttf::roles {

// The objects shared by all threads.
struct ServeParts {
  std::string name;     // of the model
  std::string version;  // of disttf
  ServeLimits limits;
  ModelRegistry& registry;
  RunAccuracy& accuracy;
  Meters& meters;
  ServeMeters& serve_meters;
  std::shared_ptr<const data::FileDescriptor> access_log;
  std::atomic<bool> is_draining = false;
  // Range warnings in the log: when one was last logged, and how many were suppressed since.
  std::atomic<std::chrono::steady_clock::rep> warned_at = 0;
  std::atomic<std::uint64_t> unsaid_warnings = 0;
};

class ServeHandler final : public net::HttpServiceHandler {
 public:
  ServeHandler(ServeParts& parts, std::size_t thread);
  ~ServeHandler() override;

  void ask(net::HttpExchange& exchange) override;
  bool work() override;
  void answered(const net::HttpExchange& exchange, int status, std::size_t bytes) override;

 private:
  struct Ticket;

  void refresh_models();
  // nullopt: the request waits in the queue.
  [[nodiscard]] std::optional<net::HttpReply> take(net::HttpExchange& exchange);
  [[nodiscard]] net::HttpReply tell(const ApiRoute& route) const;
  [[nodiscard]] net::HttpReply server_facts(ApiCall call) const;
  [[nodiscard]] std::shared_ptr<const LoadedModel> model_for(const ApiRoute& route) const;
  void check_name(const ApiRoute& route) const;
  [[nodiscard]] std::optional<net::HttpReply> queue(const ApiRoute& route,
                                                    net::HttpExchange& exchange);
  void read(const ApiRoute& route, const net::HttpServerRequest& request, Ticket& ticket);
  void say_warning(std::string_view peer, std::string_view warning);
  void compute();
  void gather_and_predict(math::Predictor& predictor);
  void predict(math::Predictor& predictor, const BatchPiece& piece);
  void answer(Ticket& ticket);
  [[nodiscard]] net::HttpReply reply_of(Ticket& ticket) const;

  ServeParts& parts_;
  const std::size_t thread_;
  BatchQueue queue_;
  AccessLog access_log_;
  std::uint64_t registry_number_ = 0;
  std::shared_ptr<const ServedModels> served_;
  std::vector<BatchPiece> batch_;
  std::vector<Waiting*> late_;
  std::vector<std::uint8_t> pixels_;  // of a batch
  std::vector<float> outputs_;        // likewise
};

}  // namespace disttf::roles
