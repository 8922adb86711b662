// Measures the cost of a secret. Over shared memory tensors are not encrypted, so it is close to
// zero. Over TLS it is the cipher's time for the bytes of a step, each four times: encrypted and
// decrypted on the way to the ps, and on the way back.
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/exchange.h"
#include "bench/launch.h"
#include "bench/outsider.h"
#include "net/tls/tls_socket.h"

namespace disttf::bench {
namespace {

constexpr std::size_t kTag = 16;
constexpr const char* kSecret = "a secret that only this benchmark uses";

// AES-128-GCM over a vector, in records as in TLS 1.3, and decryption; one after the other on one
// core, without transport.
class CipherPasses {
 public:
  explicit CipherPasses(std::size_t bytes)
      : cipher_(EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr)),
        context_(EVP_CIPHER_CTX_new()),
        plain_(bytes, 1),
        secret_(bytes),
        back_(bytes),
        tags_((bytes + net::kRecordBytes - 1) / net::kRecordBytes) {}
  ~CipherPasses() {
    EVP_CIPHER_CTX_free(context_);
    EVP_CIPHER_free(cipher_);
  }
  CipherPasses(const CipherPasses&) = delete;
  CipherPasses& operator=(const CipherPasses&) = delete;

  // Encrypts and decrypts the vector.
  void step() {
    for (int direction = 0; direction < 2; ++direction) {
      pass(true, plain_, secret_);
      pass(false, secret_, back_);
    }
  }
  [[nodiscard]] std::optional<std::string> fault() const {
    if (!is_right_ || back_ != plain_ || secret_ == plain_) {
      return "what was decrypted is not what was encrypted";
    }
    return std::nullopt;
  }

 private:
  using Bytes = std::vector<unsigned char>;

  void pass(bool encrypts, const Bytes& from, Bytes& to) {
    const std::array<unsigned char, 16> key{};
    is_right_ &=
        EVP_CipherInit_ex2(context_, cipher_, key.data(), nullptr, encrypts ? 1 : 0, nullptr) == 1;
    for (std::size_t record = 0; record < tags_.size(); ++record) {
      const std::size_t begin = record * net::kRecordBytes;
      const auto size = static_cast<int>(std::min(net::kRecordBytes, from.size() - begin));
      std::array<unsigned char, 12> nonce{};
      nonce[0] = static_cast<unsigned char>(record);
      nonce[1] = static_cast<unsigned char>(record >> 8U);
      const std::array<unsigned char, 5> header{};
      int written = 0;
      is_right_ &= EVP_CipherInit_ex2(context_, nullptr, nullptr, nonce.data(), -1, nullptr) == 1;
      if (!encrypts) {
        EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_SET_TAG, kTag, tags_[record].data());
      }
      is_right_ &= EVP_CipherUpdate(context_, nullptr, &written, header.data(), header.size()) == 1;
      is_right_ &=
          EVP_CipherUpdate(context_, to.data() + begin, &written, from.data() + begin, size) == 1;
      is_right_ &= EVP_CipherFinal_ex(context_, to.data() + begin + written, &written) == 1;
      if (encrypts) {
        EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, kTag, tags_[record].data());
      }
    }
  }

  EVP_CIPHER* cipher_;
  EVP_CIPHER_CTX* context_;
  Bytes plain_;
  Bytes secret_;
  Bytes back_;
  std::vector<std::array<unsigned char, kTag>> tags_;
  bool is_right_ = true;
};

double median_of_pairs(const Side& one, const Side& other, const Side* added = nullptr) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < one.times.size(); ++round) {
    ratios.push_back(one.times[round] /
                     (other.times[round] + (added != nullptr ? added->times[round] : 0.0)));
  }
  return median(ratios);
}

// Starts new processes for each repetition: the cache placement of their memory accounts for a
// third of the figure, and does not change while they live.
std::vector<Side> measure_exchange(const math::ModelSpec& model, const JobOptions& options) {
  constexpr int kRoundsOfOne = 4;
  const ClusterShape shape{.model = model};
  std::vector<Side> all;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    Exchange tcp(shape, roles::Transport::kTcp);
    Exchange tls(shape, roles::Transport::kTcp, std::make_shared<net::Secrets>(kSecret, "bench"));
    CipherPasses cipher(math::layout_of(model).size() * sizeof(float));
    const std::vector<Side> sides =
        measure_in_turn({runner_of("tcp", tcp), runner_of("tls", tls), runner_of("cipher", cipher)},
                        options.quick ? 1 : kRoundsOfOne, options.quick);
    if (all.empty()) all.resize(sides.size());
    for (std::size_t each = 0; each < sides.size(); ++each) {
      all[each].name = sides[each].name;
      const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(all[each].times, sides[each].times);
      append(all[each].to_raw, sides[each].to_raw);
    }
  }
  return all;
}

void run_exchange(const std::string& name, const math::ModelSpec& model, const JobOptions& options,
                  Reporter& reporter) {
  const std::vector<Side> sides = measure_exchange(model, options);
  const std::string floor = name + "/tcp";
  for (const Side& side : sides) {
    Figure figure = side.figure(name + "/" + side.name, floor);
    if (side.name == "tls") {
      figure.extras["to_cipher"] = median_of_pairs(side, sides[2]);
      figure.extras["to_tcp_and_cipher"] = median_of_pairs(side, sides[0], &sides[2]);
    }
    reporter.add(figure);
  }
}

const std::string kMlpFlags = "--workers 2 --ps 1 --print_weights_hash";
const std::string kWideFlags = kMlpFlags + " --hidden_units 1024 --batch_size 128";
struct SecretJob {
  const char* name;
  std::string arguments;
};
const std::array kSecretJobs = {
    SecretJob{"secret/shm/mlp_100", kMlpFlags + " --transport shm"},
    SecretJob{"secret/shm/mlp_1024", kWideFlags + " --transport shm"},
    SecretJob{"secret/tcp/mlp_100", kMlpFlags + " --transport tcp"},
    SecretJob{"secret/tcp/mlp_1024", kWideFlags + " --transport tcp"},
    SecretJob{"secret/elastic/mlp_100", kMlpFlags + " --min_workers 1 --micro_batches 2"},
    SecretJob{"secret/tcp_int8/mlp_100", kMlpFlags + " --transport tcp --wire_dtype int8"},
    SecretJob{"secret/tcp_int8/mlp_1024", kWideFlags + " --transport tcp --wire_dtype int8"},
};

// Measures the run with and without an attacker, in turn, both over TLS.
void run_outsider(const JobOptions& options, Reporter& reporter) {
  constexpr int kLonger = 5;  // times longer than others, so that all silent connections are open
  JobOptions longer = options;
  longer.train_steps = std::to_string(kLonger * std::stoi(options.train_steps));
  const std::string name = "secret/outsider/mlp_100";
  const std::string arguments = kMlpFlags + " --transport tcp";
  Results with;
  Results without;
  std::string weights;
  Outsider::Tally all;
  double seconds = 0;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    const bool plain_first = repetition % 2 == 0;
    for (const bool plain : {plain_first, !plain_first}) {
      std::optional<Outsider> outsider;
      if (!plain) outsider.emplace();
      const Result result = run_launch(arguments, false, longer);
      if (weights.empty()) weights = result.weights;
      if (result.weights != weights) throw std::runtime_error(name + ": the weights differ");
      (plain ? without : with).add(result);
      if (plain) continue;
      const Outsider::Tally tally = outsider->end();
      if (tally.got_in != 0) throw std::runtime_error(name + ": an attacker was accepted");
      if (tally.attempts == 0 && !options.quick) throw std::runtime_error(name + ": no attempts");
      all.attempts += tally.attempts;
      all.silent += tally.silent;
      all.cpu_seconds += tally.cpu_seconds;
      seconds += result.wall_seconds;
    }
  }
  reporter.add(without.figure(name + "/plain", {}));
  Figure figure = with.figure(name, name + "/plain");
  figure.ratio = ratio_of_pairs(with.rates, without.rates);
  figure.extras["attempts_per_second"] = static_cast<double>(all.attempts) / seconds;
  figure.extras["silent_connections"] = static_cast<double>(all.silent) / options.repetitions;
  // The attacker on this machine also takes processor time from the run, unlike one on another
  // machine.
  const double share =
      all.cpu_seconds / seconds / std::max(1U, std::thread::hardware_concurrency());
  figure.extras["outsiders_cpu_share"] = share;
  figure.extras["of_what_it_left"] = *figure.ratio / (1 - share);
  reporter.add(figure);
}

}  // namespace

void run_secret(const JobOptions& options, Reporter& reporter) {
  const std::array exchanges = {std::pair("secret/exchange/318144", bench_model("mlp_100")),
                                std::pair("secret/exchange/40000000", model_of(10'000'000))};
  for (const auto& [name, model] : exchanges) {
    if (options.wants(name)) run_exchange(name, model, options, reporter);
  }
  for (const SecretJob& job : kSecretJobs) {
    if (!options.wants(job.name)) continue;
    run_pairs({.name = job.name, .plain = job.arguments + " --insecure", .with = job.arguments},
              options, reporter);
  }
  if (options.wants("secret/outsider/mlp_100")) run_outsider(options, reporter);
}

}  // namespace disttf::bench
