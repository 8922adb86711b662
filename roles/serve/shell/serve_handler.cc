#include "roles/serve/shell/serve_handler.h"

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/error.h"
#include "data/gzip.h"
#include "data/json/json_text.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "roles/serve/core/api_route.h"
#include "roles/serve/core/inference_api.h"
#include "roles/serve/core/question.h"
#include "roles/serve/core/rest_api.h"
#include "roles/serve/shell/serve_page.h"
#include "run/monitor/shell/metrics_address.h"
#include "run/process/log.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOctets = "application/octet-stream";
// Smaller answers, such as those about one row, are not worth compressing.
constexpr std::size_t kWorthZipping = std::size_t{4} << 10U;

net::HttpReply refusal(int status, std::string_view sentence) {
  net::HttpReply reply = net::error_reply(status, sentence);
  if (status == net::http_status::kUnavailable) {
    // Clients that retry should give the queue a moment to drain.
    reply.fields.emplace_back("Retry-After", "1");
  }
  return reply;
}

// Whether the content type is that of a file for `disttf predict`.
bool is_file_type(std::string_view type) {
  return type.starts_with("image/") || type.starts_with("text/csv") ||
         type.starts_with("application/x-npy");
}

std::optional<std::size_t> json_bytes_in(const std::string& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  const std::optional<std::size_t> bytes = net::whole_number(text);
  if (!bytes) {
    throw BadRequest("Inference-Header-Content-Length: " + net::quoted(text) +
                     " is not a whole number");
  }
  return bytes;
}

}  // namespace

// A connection's request to a model, and its entry in the queue.
struct ServeHandler::Ticket final : net::HttpExchange::Attachment, Waiting {
  net::HttpExchange* exchange = nullptr;  // the one it is attached to
  Question question;
  std::shared_ptr<const LoadedModel> loaded;  // until it is answered
  std::vector<float> outputs;                 // [count, outputs of the model]
  std::size_t answered_rows = 0;              // for the access log
  std::uint64_t version = 0;                  // likewise
};

ServeHandler::ServeHandler(ServeParts& parts, std::size_t thread)
    : parts_(parts),
      thread_(thread),
      queue_(parts.limits.max_queue),
      access_log_(parts.access_log),
      registry_number_(parts.registry.number()),
      served_(parts.registry.now()) {}

ServeHandler::~ServeHandler() = default;

void ServeHandler::refresh_models() {
  // The number is cheap to read; the pointer is copied only after a change.
  const std::uint64_t number = parts_.registry.number();
  if (number != registry_number_) {
    registry_number_ = number;
    served_ = parts_.registry.now();
  }
}

void ServeHandler::ask(net::HttpExchange& exchange) {
  // Per request: the next request already gets a model that was published a moment ago.
  refresh_models();
  std::optional<net::HttpReply> reply;
  try {
    reply = take(exchange);
  } catch (const ApiError& error) {
    reply = refusal(error.status(), error.what());
  }
  if (reply) {
    if (reply->status == net::http_status::kMethodNotAllowed && !reply->has_field("Allow")) {
      // Relies on api_route(), whose sentence ends so for a question.
      const bool asks = reply->body.ends_with("takes POST\"}\n");
      reply->fields.emplace_back("Allow", asks ? "POST" : "GET, HEAD");
    }
    exchange.answer(*reply);
  }
}

std::optional<net::HttpReply> ServeHandler::take(net::HttpExchange& exchange) {
  const net::HttpServerRequest& request = exchange.request();
  if (const std::optional<ApiRoute> route = api_route(request.method, request.path)) {
    return route->is_question() ? queue(*route, exchange) : tell(*route);
  }
  if (request.path == "/metrics") {
    return answer_scrape(request, parts_.meters, {});
  }
  if (std::optional<net::HttpReply> reply =
          page_reply(request, parts_.name, *served_, parts_.accuracy)) {
    return reply;
  }
  return refusal(net::http_status::kNotFound,
                 net::quoted(request.path) + " does not exist; /v1/models/" + parts_.name +
                     ":predict, /v2/models/" + parts_.name + "/infer and /metrics are");
}

void ServeHandler::check_name(const ApiRoute& route) const {
  if (route.name != parts_.name) {
    throw ApiError(net::http_status::kNotFound, "model " + net::quoted(route.name) +
                                                    " is not served here; " +
                                                    net::quoted(parts_.name) + " is");
  }
}

std::shared_ptr<const LoadedModel> ServeHandler::model_for(const ApiRoute& route) const {
  check_name(route);
  // 503, not 404: the client should retry.
  if (served_->models.empty()) {
    throw ApiError(net::http_status::kUnavailable, "no model is loaded yet; try again");
  }
  std::shared_ptr<const LoadedModel> model = route.version ? served_->of_version(*route.version)
                                             : route.label.empty() || route.label == "latest"
                                                 ? served_->newest()
                                                 : nullptr;
  if (model == nullptr) {
    throw ApiError(net::http_status::kNotFound,
                   (route.version ? "version " + std::to_string(*route.version)
                                  : "label " + net::quoted(route.label)) +
                       " is not served; version " + std::to_string(served_->newest()->version) +
                       " is the newest, with the label latest");
  }
  return model;
}

net::HttpReply ServeHandler::server_facts(ApiCall call) const {
  if (call == ApiCall::kServer) {
    const Json facts = {{"name", "disttf"},
                        {"version", parts_.version},
                        {"extensions", {"binary_tensor_data", "classification"}}};
    return {.body = data::json_text(facts) + "\n"};
  }
  // Not ready while draining, so that load balancers stop sending requests before the port closes.
  const bool is_ready = !parts_.is_draining && !served_->models.empty();
  const bool is_good = call == ApiCall::kLive || is_ready;
  const Json answer = {{call == ApiCall::kLive ? "live" : "ready", is_good}};
  return {.status = is_good ? net::http_status::kOk : net::http_status::kUnavailable,
          .body = data::json_text(answer) + "\n"};
}

net::HttpReply ServeHandler::tell(const ApiRoute& route) const {
  if (route.name.empty()) {
    return server_facts(route.call);
  }
  if (route.call == ApiCall::kStatus) {
    check_name(route);
    std::vector<VersionStatus> versions;
    for (const auto& each : served_->models) {
      versions.push_back({.version = each->version});
    }
    versions.insert(versions.end(), served_->refused.begin(), served_->refused.end());
    if (route.version || !route.label.empty()) {
      // A rejected version is listed as well, so this does not look into the models only.
      const std::uint64_t wanted = route.version ? *route.version : model_for(route)->version;
      std::erase_if(versions, [wanted](const auto& each) { return each.version != wanted; });
      if (versions.empty()) {
        static_cast<void>(model_for(route));  // throws if it is not served
      }
    }
    return {.body = rest_status(versions)};
  }
  const std::shared_ptr<const LoadedModel> loaded = model_for(route);
  const Addressee asked{.name = parts_.name, .version = loaded->version, .model = &loaded->model};
  if (route.call == ApiCall::kMetadata) {
    return {.body = rest_metadata(asked)};
  }
  if (route.call == ApiCall::kModelReady) {
    const Json answer = {{"name", parts_.name}, {"ready", !parts_.is_draining}};
    return {.status = parts_.is_draining ? net::http_status::kUnavailable : net::http_status::kOk,
            .body = data::json_text(answer) + "\n"};
  }
  std::vector<std::uint64_t> versions;
  for (const auto& each : served_->models) {
    versions.push_back(each->version);
  }
  return {.body = inference_metadata(asked, versions)};
}

void ServeHandler::read(const ApiRoute& route, const net::HttpServerRequest& request,
                        Ticket& ticket) {
  const TrainedModel& model = ticket.loaded->model;
  std::string_view body = request.body;
  std::vector<std::uint8_t> unpacked;
  if (request.content_encoding == "gzip") {
    const std::span<const std::uint8_t> packed(reinterpret_cast<const std::uint8_t*>(body.data()),
                                               body.size());
    // The bound is the same as for an uncompressed body: a small gzip must not bypass it.
    if (const std::error_code error =
            data::gunzip(packed, parts_.limits.max_body_bytes, unpacked)) {
      throw ApiError(error == data::DataError::kGzipTooLarge ? net::http_status::kContentTooLarge
                                                             : net::http_status::kBadRequest,
                     "Content-Encoding: gzip, but " + error.message());
    }
    body = {reinterpret_cast<const char*>(unpacked.data()), unpacked.size()};
  } else if (!request.content_encoding.empty() && request.content_encoding != "identity") {
    throw ApiError(net::http_status::kUnsupportedMediaType,
                   "Content-Encoding: " + net::quoted(request.content_encoding) +
                       " is not supported; gzip is");
  }
  Question& question = ticket.question;
  question.clear(route.call, model);
  if (is_file_type(request.content_type)) {
    question.count = add_file({reinterpret_cast<const std::uint8_t*>(body.data()), body.size()},
                              "the body", model, question.rows);
  } else if (route.call == ApiCall::kInfer) {
    read_infer_question(body, json_bytes_in(request.json_bytes), model, question);
  } else {
    read_rest_question(body, model, question);
  }
}

// Counts each warning; logs one per minute.
void ServeHandler::say_warning(std::string_view peer, std::string_view warning) {
  using Steady = std::chrono::steady_clock;
  constexpr std::chrono::minutes kBetween{1};
  parts_.serve_meters.range_warnings.add();
  const Steady::rep now = Steady::now().time_since_epoch().count();
  Steady::rep before = parts_.warned_at;
  // One thread wins the exchange and logs; the others only count.
  const bool is_due = before == 0 || Steady::duration(now - before) >= kBetween;
  if (!is_due || !parts_.warned_at.compare_exchange_strong(before, now)) {
    ++parts_.unsaid_warnings;
    return;
  }
  const std::uint64_t unsaid = parts_.unsaid_warnings.exchange(0);
  log_warning(
      std::string("a request of ") + std::string(peer) + ": " + std::string(warning) +
      (unsaid == 0 ? std::string() : "; and so were " + std::to_string(unsaid) + " before it"));
}

std::optional<net::HttpReply> ServeHandler::queue(const ApiRoute& route,
                                                  net::HttpExchange& exchange) {
  if (exchange.attachment == nullptr) {
    auto made = std::make_unique<Ticket>();
    made->exchange = &exchange;
    exchange.attachment = std::move(made);
  }
  // The ticket is reused by the connection's next request, with the memory of its rows.
  auto& ticket = static_cast<Ticket&>(*exchange.attachment);
  ticket.loaded = model_for(route);
  try {
    read(route, exchange.request(), ticket);
  } catch (...) {
    // A rejected request must not keep an old version in memory.
    ticket.loaded.reset();
    throw;
  }
  // After all rows are there: the range of a request is decided from all of its values.
  settle_range(parts_.limits.input_range, ticket.loaded->model, ticket.question);
  if (!ticket.question.warning.empty()) {
    say_warning(exchange.peer(), ticket.question.warning);
  }
  ticket.model = ticket.loaded.get();
  ticket.rows = ticket.question.count;
  // Counts from the request's last byte, so the time for parsing the body counts, too.
  ticket.deadline = exchange.begun() + parts_.limits.timeout;
  ticket.outputs.resize(ticket.rows * ticket.loaded->model.config.model.classes);
  if (!queue_.admit(ticket)) {
    // Its rows stay for reuse; only the model is released.
    ticket.loaded.reset();
    return refusal(
        net::http_status::kUnavailable,
        std::to_string(queue_.rows()) + " rows are waiting, which is the limit; try again");
  }
  return std::nullopt;
}

bool ServeHandler::work() {
  refresh_models();
  const bool had_any = !queue_.empty();
  if (had_any) {
    // One batch per call: the event loop reads new requests between two batches.
    compute();
    parts_.serve_meters.waiting_rows[thread_]->set(static_cast<double>(queue_.rows()));
  }
  // Once per round, for all answers of it.
  access_log_.write();
  return !queue_.empty();
}

void ServeHandler::compute() {
  queue_.take(std::chrono::steady_clock::now(), parts_.limits.max_batch, batch_, late_);
  // Late requests are answered first, without computing them.
  for (Waiting* const each : late_) {
    auto& ticket = static_cast<Ticket&>(*each);
    ticket.loaded.reset();
    ticket.exchange->answer(refusal(net::http_status::kGatewayTimeout,
                                    "the request waited for " +
                                        std::to_string(parts_.limits.timeout.count()) +
                                        " ms, which is the limit"));
  }
  if (batch_.empty()) {
    return;
  }
  math::Predictor& predictor =
      *static_cast<const Ticket*>(batch_.front().of)->loaded->predictors[thread_];
  // take() has put rows of one model into the batch, so one predictor serves all of it.
  gather_and_predict(predictor);
  // A request larger than a batch is answered with its last piece.
  for (const BatchPiece& piece : batch_) {
    if (piece.begin + piece.rows == piece.of->rows) {
      answer(static_cast<Ticket&>(*piece.of));
    }
  }
}

// Computes rows of bytes of several requests in one batch; rows of numbers, which are rarer, for
// each request separately.
void ServeHandler::gather_and_predict(math::Predictor& predictor) {
  const std::size_t inputs = predictor.inputs();
  const std::size_t outputs = predictor.outputs();
  std::size_t rows = 0;
  std::size_t together = 0;
  pixels_.clear();
  for (const BatchPiece& piece : batch_) {
    const Question& question = static_cast<const Ticket*>(piece.of)->question;
    rows += piece.rows;
    // One request needs no copy into a common batch.
    if (!question.rows.are_bytes() || batch_.size() == 1) {
      predict(predictor, piece);
      continue;
    }
    const auto bytes = question.rows.pixels().subspan(piece.begin * inputs, piece.rows * inputs);
    pixels_.insert(pixels_.end(), bytes.begin(), bytes.end());
    together += piece.rows;
  }
  if (together > 0) {
    outputs_.resize(together * outputs);
    predictor.predict(pixels_, outputs_);
    // In the order in which their rows were gathered.
    auto from = outputs_.begin();
    for (const BatchPiece& piece : batch_) {
      auto& ticket = static_cast<Ticket&>(*piece.of);
      if (ticket.question.rows.are_bytes()) {
        const auto count = static_cast<std::ptrdiff_t>(piece.rows * outputs);
        std::copy(from, from + count,
                  ticket.outputs.begin() + static_cast<std::ptrdiff_t>(piece.begin * outputs));
        from += count;
      }
    }
  }
  parts_.serve_meters.batch_rows.observe(rows);
  parts_.serve_meters.rows.add(rows);
}

void ServeHandler::predict(math::Predictor& predictor, const BatchPiece& piece) {
  auto& ticket = static_cast<Ticket&>(*piece.of);
  const std::size_t inputs = predictor.inputs();
  const std::size_t outputs = predictor.outputs();
  const std::span<float> out =
      std::span(ticket.outputs).subspan(piece.begin * outputs, piece.rows * outputs);
  const Rows& rows = ticket.question.rows;
  if (rows.are_bytes()) {
    predictor.predict(rows.pixels().subspan(piece.begin * inputs, piece.rows * inputs), out);
  } else {
    predictor.predict_numbers(rows.numbers().subspan(piece.begin * inputs, piece.rows * inputs),
                              out);
  }
}

net::HttpReply ServeHandler::reply_of(Ticket& ticket) const {
  const net::HttpServerRequest& request = ticket.exchange->request();
  net::HttpReply reply;
  const Addressee asked{
      .name = parts_.name, .version = ticket.loaded->version, .model = &ticket.loaded->model};
  if (ticket.question.call == ApiCall::kInfer) {
    ApiAnswer answer = infer_answer(ticket.question, asked, ticket.outputs);
    reply.body = std::move(answer.body);
    if (answer.json_bytes > 0) {
      reply.content_type = kOctets;
      reply.fields.emplace_back("Inference-Header-Content-Length",
                                std::to_string(answer.json_bytes));
    }
  } else {
    reply.body = rest_answer(ticket.question, *asked.model, ticket.outputs);
  }
  if (!ticket.question.warning.empty()) {
    reply.fields.emplace_back("Disttf-Warning", ticket.question.warning);
  }
  // Last, because the fields above do not depend on the encoding.
  if (reply.body.size() >= kWorthZipping && net::takes_gzip(request.accept_encoding)) {
    reply.body = data::gzip(reply.body);
    reply.fields.emplace_back("Content-Encoding", "gzip");
    reply.fields.emplace_back("Vary", "Accept-Encoding");
  }
  return reply;
}

void ServeHandler::answer(Ticket& ticket) {
  net::HttpReply reply;
  try {
    reply = reply_of(ticket);
    ticket.answered_rows = ticket.rows;
    ticket.version = ticket.loaded->version;
  } catch (const ApiError& error) {
    reply = refusal(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    reply = refusal(net::http_status::kUnavailable, "there is not enough memory");
  } catch (const std::exception& error) {
    reply = refusal(net::http_status::kServerError, error.what());
  }
  // The answer is complete; an old version is released before slow clients read it.
  ticket.loaded.reset();
  // Copied: after answer() the exchange may belong to the connection's next request.
  const auto begun = ticket.exchange->begun();
  ticket.exchange->answer(reply);
  parts_.serve_meters.seconds.observe(std::chrono::steady_clock::now() - begun);
}

void ServeHandler::answered(const net::HttpExchange& exchange, int status, std::size_t bytes) {
  parts_.serve_meters.answers(status).add();
  AnswerFacts facts{.status = status, .bytes = bytes};
  if (exchange.begun() != std::chrono::steady_clock::time_point()) {
    const std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - exchange.begun();
    facts.milliseconds = time.count();
  }
  if (auto* const ticket = static_cast<Ticket*>(exchange.attachment.get()); ticket != nullptr) {
    // The ticket outlives the request: the connection's next one may be no request to a model.
    facts.rows = std::exchange(ticket->answered_rows, 0);
    facts.version = ticket->version;
  }
  access_log_.add(exchange, facts);
}

}  // namespace disttf::roles
