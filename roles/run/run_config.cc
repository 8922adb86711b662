#include "roles/run/run_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace disttf::roles {
namespace {

using nlohmann::json;

// Of a data set's name or checksum.
constexpr std::size_t kMaxWordBytes = 64;
constexpr const char* kTopK = "topk:";

[[noreturn]] void refuse(std::string_view field, const std::string& value,
                         std::string_view allowed) {
  throw std::invalid_argument("--" + std::string(field) + ": " + value + " is not " +
                              std::string(allowed));
}

// A value for a sentence: cut to a length that a person reads, control characters escaped.
std::string shown(const json& value) {
  constexpr std::size_t kMaxShown = 80;
  const auto is_structured = [](const json& part) { return part.is_structured(); };
  if (value.is_object() || std::any_of(value.begin(), value.end(), is_structured)) {
    return "a nested value";  // dump() recurses: as deep as the peer that sent it likes
  }
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMaxShown) {
    text = text.substr(0, kMaxShown) + "...";
  }
  return text;
}

// The shortest decimal that reads back as the same float: 0.001, not 0.0010000000474974513.
std::string shortest(float value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

json number(float value) {
  const std::string text = shortest(value);
  double parsed = 0;
  std::from_chars(text.data(), text.data() + text.size(), parsed);
  return parsed;
}

std::uint64_t read_count(std::string_view field, const json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxCount) {
    refuse(field, shown(value), "a whole number from 0 to 2^53");
  }
  return value.get<std::uint64_t>();
}

void check_count(std::string_view field, std::uint64_t value) {
  if (value > kMaxCount) {
    refuse(field, std::to_string(value), "a whole number from 0 to 2^53");
  }
}

float read_float(std::string_view field, const json& value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  // The largest float's shortest decimal lies a little above it.
  constexpr double kTolerance = 1.0 + double{std::numeric_limits<float>::epsilon()} / 4;
  if (!value.is_number() || std::abs(value.get<double>()) > kLargest * kTolerance) {
    refuse(field, shown(value), "a number of 32 bits");
  }
  return static_cast<float>(std::clamp(value.get<double>(), -kLargest, kLargest));
}

std::string read_string(std::string_view field, const json& value) {
  if (!value.is_string()) {
    refuse(field, shown(value), "a string");
  }
  return value.get<std::string>();
}

// A name or a checksum; it ends up in sentences and logs.
std::string read_word(std::string_view field, const json& value) {
  std::string word = read_string(field, value);
  const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
  if (word.size() > kMaxWordBytes || !std::all_of(word.begin(), word.end(), is_plain)) {
    refuse(field, shown(value), "a word of at most 64 letters, digits and signs");
  }
  return word;
}

template <typename T>
T read_name(std::string_view field, const json& value,
            std::optional<T> (*from_name)(std::string_view) noexcept) {
  const std::string name = read_string(field, value);
  const std::optional<T> found = from_name(name);
  if (!found) {
    refuse(field, shown(value), "a name that this version knows");
  }
  return *found;
}

std::vector<std::size_t> read_hidden(std::string_view field, const json& value) {
  if (!value.is_array() || value.size() > math::kMaxHiddenLayers) {
    refuse(field, shown(value), "a list of at most 16 layers");
  }
  std::vector<std::size_t> hidden;
  for (const json& units : value) {
    hidden.push_back(read_count(field, units));
  }
  return hidden;
}

// One field of the configuration. The table below is the only place that knows them all: writing,
// reading and comparing go through it, so none can be forgotten in one of the three.
struct Field {
  const char* flag;
  json (*get)(const RunConfig&);
  void (*set)(RunConfig&, std::string_view flag, const json&);
};

const auto& fields() {
  static const std::array kFields{
      Field{"dataset", [](const RunConfig& c) { return json(c.dataset); },
            [](RunConfig& c, auto f, const json& v) { c.dataset = read_word(f, v); }},
      Field{"data_checksum", [](const RunConfig& c) { return json(c.data_checksum); },
            [](RunConfig& c, auto f, const json& v) { c.data_checksum = read_word(f, v); }},
      Field{"model", [](const RunConfig& c) { return json(math::model_name(c.model.kind)); },
            [](RunConfig& c, auto f, const json& v) {
              c.model.kind = read_name(f, v, &math::model_from_name);
            }},
      Field{"hidden_units", [](const RunConfig& c) { return json(c.model.hidden); },
            [](RunConfig& c, auto f, const json& v) { c.model.hidden = read_hidden(f, v); }},
      Field{"inputs", [](const RunConfig& c) { return json(c.model.inputs); },
            [](RunConfig& c, auto f, const json& v) { c.model.inputs = read_count(f, v); }},
      Field{"classes", [](const RunConfig& c) { return json(c.model.classes); },
            [](RunConfig& c, auto f, const json& v) { c.model.classes = read_count(f, v); }},
      Field{"optimizer",
            [](const RunConfig& c) { return json(math::optimizer_name(c.optimizer.kind)); },
            [](RunConfig& c, auto f, const json& v) {
              c.optimizer.kind = read_name(f, v, &math::optimizer_from_name);
            }},
      Field{"learning_rate", [](const RunConfig& c) { return number(c.optimizer.learning_rate); },
            [](RunConfig& c, auto f, const json& v) {
              c.optimizer.learning_rate = read_float(f, v);
            }},
      Field{"learning_rate_decay",
            [](const RunConfig& c) { return json(rate_decay_name(c.rate_decay)); },
            [](RunConfig& c, auto f, const json& v) {
              c.rate_decay = read_name(f, v, &rate_decay_from_name);
            }},
      Field{"momentum", [](const RunConfig& c) { return number(c.optimizer.momentum); },
            [](RunConfig& c, auto f, const json& v) { c.optimizer.momentum = read_float(f, v); }},
      Field{"isa", [](const RunConfig& c) { return json(math::isa_name(c.isa)); },
            [](RunConfig& c, auto f, const json& v) {
              c.isa = read_name(f, v, &math::isa_from_name);
            }},
      Field{"compute_dtype",
            [](const RunConfig& c) { return json(math::compute_dtype_name(c.compute_dtype)); },
            [](RunConfig& c, auto f, const json& v) {
              c.compute_dtype = read_name(f, v, &math::compute_dtype_from_name);
            }},
      Field{"batch_size", [](const RunConfig& c) { return json(c.batch_size); },
            [](RunConfig& c, auto f, const json& v) { c.batch_size = read_count(f, v); }},
      Field{"train_steps", [](const RunConfig& c) { return json(c.train_steps); },
            [](RunConfig& c, auto f, const json& v) { c.train_steps = read_count(f, v); }},
      Field{"sync_replicas", [](const RunConfig& c) { return json(c.sync_replicas); },
            [](RunConfig& c, auto f, const json& v) {
              if (!v.is_boolean()) {
                refuse(f, shown(v), "true or false");
              }
              c.sync_replicas = v.get<bool>();
            }},
      Field{
          "replicas_to_aggregate", [](const RunConfig& c) { return json(c.replicas_to_aggregate); },
          [](RunConfig& c, auto f, const json& v) { c.replicas_to_aggregate = read_count(f, v); }},
      Field{"max_staleness",
            [](const RunConfig& c) { return c.max_staleness ? json(*c.max_staleness) : json(); },
            [](RunConfig& c, auto f, const json& v) {
              c.max_staleness.reset();
              if (!v.is_null()) {
                c.max_staleness = read_count(f, v);
              }
            }},
      Field{"trainers", [](const RunConfig& c) { return json(c.trainers); },
            [](RunConfig& c, auto f, const json& v) { c.trainers = read_count(f, v); }},
      Field{"micro_batches", [](const RunConfig& c) { return json(c.micro_batches); },
            [](RunConfig& c, auto f, const json& v) { c.micro_batches = read_count(f, v); }},
      Field{"min_workers", [](const RunConfig& c) { return json(c.min_workers); },
            [](RunConfig& c, auto f, const json& v) { c.min_workers = read_count(f, v); }},
      Field{"ps_replicas", [](const RunConfig& c) { return json(c.ps_replicas); },
            [](RunConfig& c, auto f, const json& v) { c.ps_replicas = read_count(f, v); }},
      Field{"wire_dtype", [](const RunConfig& c) { return json(wire_dtype_name(c.wire_dtype)); },
            [](RunConfig& c, auto f, const json& v) {
              c.wire_dtype = read_name(f, v, &wire_dtype_from_name);
            }},
      Field{"compress", [](const RunConfig& c) { return json(compress_name(c.top_k)); },
            [](RunConfig& c, auto f, const json& v) {
              c.top_k = read_name(f, v, &compress_from_name);
            }},
      Field{"seed", [](const RunConfig& c) { return json(c.seed); },
            [](RunConfig& c, auto f, const json& v) { c.seed = read_count(f, v); }},
      Field{"eval_every", [](const RunConfig& c) { return json(c.eval_every); },
            [](RunConfig& c, auto f, const json& v) { c.eval_every = read_count(f, v); }},
  };
  return kFields;
}

// What makes a model large: "--hidden_units 100,50", or "--inputs 784" where there are none.
std::string size_text(const math::ModelSpec& model) {
  if (model.kind != math::ModelKind::kMlp) {
    return "--inputs " + std::to_string(model.inputs);
  }
  std::string units_text;
  for (const std::size_t units : model.hidden) {
    units_text += (units_text.empty() ? "" : ",") + std::to_string(units);
  }
  return "--hidden_units " + units_text;
}

// A trainer's memory for one row: its pixels, what each layer makes of it, and the loss by that.
// At most: some of it is smaller where the processor allows it.
std::size_t row_bytes(const math::ModelSpec& model) {
  std::size_t floats = model.inputs + 2 * model.classes;
  if (model.kind == math::ModelKind::kMlp) {
    for (const std::size_t units : model.hidden) {
      floats += 2 * units;
    }
  }
  return floats * sizeof(float) + 1;  // and the label
}

// Each field alone may be as large as it is; together they may not. REQUIRES: each is in its range.
void check_memory(const RunConfig& config) {
  const math::ModelSpec& model = config.model;
  const std::size_t most_rows = kMaxActivationBytes / row_bytes(model);
  if (config.batch_size > most_rows) {
    refuse("batch_size", std::to_string(config.batch_size),
           "from 1 to " + std::to_string(most_rows) + " with " + size_text(model) +
               ": a batch and the outputs of all layers take 8 GiB of a trainer's memory at most");
  }
  const std::size_t gradient_bytes = math::layout_of(model).size() * sizeof(float);
  if (config.micro_batches > kMaxMicroBatchBytes / gradient_bytes) {
    refuse("micro_batches", std::to_string(config.micro_batches),
           "from 0 to " + std::to_string(kMaxMicroBatchBytes / gradient_bytes) + " with " +
               size_text(model) +
               ": the gradients of a step take 64 GiB of the memory of all ps at most");
  }
}

}  // namespace

std::string to_json(const RunConfig& config) {
  nlohmann::ordered_json out;
  for (const Field& field : fields()) {
    out[field.flag] = field.get(config);
  }
  return out.dump();
}

RunConfig run_config_from_json(std::string_view text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    throw std::invalid_argument("the published configuration is not a JSON object");
  }
  RunConfig config;
  for (const Field& field : fields()) {
    const auto found = parsed.find(field.flag);
    if (found == parsed.end()) {
      throw std::invalid_argument("the published configuration lacks --" + std::string(field.flag));
    }
    field.set(config, field.flag, *found);
  }
  return config;
}

void validate(const RunConfig& config) {
  const std::size_t trainers = config.trainers;
  if (trainers < 1 || trainers > kMaxTrainers) {
    refuse("worker_hosts", std::to_string(trainers) + " trainers", "from 1 to 10000 trainers");
  }
  if (config.batch_size < 1 || config.batch_size > kMaxBatchSize) {
    refuse("batch_size", std::to_string(config.batch_size), "from 1 to 1048576");
  }
  if (config.train_steps < 1) {
    refuse("train_steps", "0", "at least 1");
  }
  if (config.ps_replicas < 1 || config.ps_replicas > 2) {
    refuse("ps_replicas", std::to_string(config.ps_replicas), "1 or 2");
  }
  if (config.ps_replicas == 2 && config.elastic()) {
    refuse("ps_replicas", "2", "allowed with --min_workers, --max_workers or --micro_batches");
  }
  check_count("train_steps", config.train_steps);
  check_count("seed", config.seed);
  check_count("eval_every", config.eval_every);
  check_count("max_staleness", config.max_staleness.value_or(0));
  const std::size_t layers = config.model.hidden.size();
  if (config.model.kind == math::ModelKind::kMlp &&
      (layers < 1 || layers > math::kMaxHiddenLayers)) {
    refuse("hidden_units", std::to_string(layers) + " layers", "from 1 to 16 layers");
  }
  math::validate(config.optimizer);
  math::validate(config.model);
  if (math::layout_of(config.model).size() > kMaxParameters) {
    refuse("hidden_units", std::to_string(math::layout_of(config.model).size()) + " parameters",
           "within 2147483648 parameters in all");
  }
  if (!math::can_multiply(config.isa, config.compute_dtype)) {
    refuse("compute_dtype", std::string(math::compute_dtype_name(config.compute_dtype)),
           "allowed with --isa generic, which lacks fused multiply-adds");
  }
  if (config.replicas_to_aggregate > trainers) {
    refuse("replicas_to_aggregate", std::to_string(config.replicas_to_aggregate),
           "from 0 to the number of trainers, " + std::to_string(trainers));
  }
  if (!config.sync_replicas && config.replicas_to_aggregate != 0) {
    refuse("replicas_to_aggregate", std::to_string(config.replicas_to_aggregate),
           "allowed with --sync_replicas=false");
  }
  if (config.micro_batches > kMaxTrainers) {
    refuse("micro_batches", std::to_string(config.micro_batches), "from 0 to 10000");
  }
  check_memory(config);
  if (config.elastic() && (!config.sync_replicas || config.replicas_to_aggregate != 0)) {
    refuse("micro_batches", std::to_string(config.micro_batches),
           "allowed with --sync_replicas=false or --replicas_to_aggregate");
  }
  if (config.elastic() && config.top_k != 0) {
    refuse("compress", compress_name(config.top_k),
           "allowed with --min_workers, --max_workers or --micro_batches: whoever computes a "
           "micro-batch must come to the same gradient");
  }
  if (config.min_workers > trainers) {
    refuse("min_workers", std::to_string(config.min_workers),
           "from 1 to the number of trainers, " + std::to_string(trainers));
  }
  if (config.sync_replicas && config.max_staleness) {
    refuse("max_staleness", std::to_string(*config.max_staleness),
           "allowed without --sync_replicas=false");
  }
}

void validate_for_images(const RunConfig& config, std::size_t pixels, std::size_t classes) {
  if (config.model.inputs != pixels) {
    refuse("inputs", std::to_string(config.model.inputs),
           std::to_string(pixels) + ", the pixels of an image");
  }
  if (config.model.classes != classes) {
    refuse("classes", std::to_string(config.model.classes),
           std::to_string(classes) + ", the digits");
  }
}

std::optional<std::string> contradiction(const RunConfig& mine,
                                         const std::set<std::string>& explicit_flags,
                                         const RunConfig& published) {
  for (const Field& field : fields()) {
    if (!explicit_flags.contains(field.flag)) {
      continue;
    }
    const json own = field.get(mine);
    const json theirs = field.get(published);
    if (own != theirs) {
      return "--" + std::string(field.flag) + ": this task was given " + shown(own) +
             ", the chief published " + shown(theirs) +
             "; leave the flag out or give the chief's value";
    }
  }
  return std::nullopt;
}

std::optional<std::string> difference(const RunConfig& config, std::string_view saved_json) {
  RunConfig saved;
  try {
    saved = run_config_from_json(saved_json);
  } catch (const std::invalid_argument& error) {
    return std::string("the checkpoint's configuration is of another release: ") + error.what();
  }
  for (const Field& field : fields()) {
    const json own = field.get(config);
    const json other = field.get(saved);
    const std::string_view flag = field.flag;
    if (own != other && flag != "eval_every" && flag != "ps_replicas") {
      return "--" + std::string(field.flag) + " is " + shown(own) + ", the checkpoint's run had " +
             shown(other) + ": the weights will not be those of either";
    }
  }
  return std::nullopt;
}

std::optional<std::string> missing_isa(const RunConfig& published,
                                       std::span<const math::Isa> supported) {
  if (std::find(supported.begin(), supported.end(), published.isa) != supported.end()) {
    return std::nullopt;
  }
  return "--isa: the chief computes with " + std::string(math::isa_name(published.isa)) +
         ", which this CPU lacks; start the chief with --isa " +
         std::string(math::isa_name(supported.front()));
}

std::string_view rate_decay_name(RateDecay decay) noexcept {
  return decay == RateDecay::kLinear ? "linear" : "none";
}

std::optional<RateDecay> rate_decay_from_name(std::string_view name) noexcept {
  for (const RateDecay decay : {RateDecay::kNone, RateDecay::kLinear}) {
    if (name == rate_decay_name(decay)) {
      return decay;
    }
  }
  return std::nullopt;
}

std::string_view wire_dtype_name(WireDtype dtype) noexcept {
  switch (dtype) {
    case WireDtype::kF32:
      break;
    case WireDtype::kBf16:
      return "bf16";
    case WireDtype::kInt8:
      return "int8";
    case WireDtype::kInt4:
      return "int4";
  }
  return "f32";
}

std::optional<WireDtype> wire_dtype_from_name(std::string_view name) noexcept {
  for (const WireDtype dtype :
       {WireDtype::kF32, WireDtype::kBf16, WireDtype::kInt8, WireDtype::kInt4}) {
    if (name == wire_dtype_name(dtype)) {
      return dtype;
    }
  }
  return std::nullopt;
}

std::string compress_name(float top_k) { return top_k == 0 ? "none" : kTopK + shortest(top_k); }

std::optional<float> compress_from_name(std::string_view name) noexcept {
  if (name == "none") {
    return 0.0F;
  }
  if (!name.starts_with(kTopK)) {
    return std::nullopt;
  }
  name.remove_prefix(std::string_view(kTopK).size());
  float share = 0;
  const auto [stopped, error] = std::from_chars(name.data(), name.data() + name.size(), share);
  if (error != std::errc() || stopped != name.data() + name.size() || !(share > 0) || share >= 1) {
    return std::nullopt;
  }
  return share;
}

}  // namespace disttf::roles
