// TLS between tasks with certificates, over real sockets: which peers are accepted or refused, and
// the messages on each side.
#include "net/tls/task_certificates.h"

#include <gmock/gmock.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <asio/co_spawn.hpp>
#include <asio/use_future.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

#include "net/tcp/dial.h"
#include "net/tls/certificate_files.h"
#include "net/tls/secrets.h"
#include "tests/data/scratch.h"
#include "tests/net/test_server.h"
#include "tests/support/made_identities.h"
#include "tests/support/thrown.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr TaskId kPs0{.job = Job::kPs, .index = 0};
constexpr TaskId kWorker1{.job = Job::kWorker, .index = 1};

class TaskCertificate : public ::testing::Test {
 protected:
  TaskCertificate() {
    const std::string command = test_support::identity_maker() + " tasks " + at("");
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return (scratch_.path() / name).string();
  }
  [[nodiscard]] std::unique_ptr<TaskCertificates> certificates(const std::string& name,
                                                               const TaskId& self,
                                                               const std::string& ca = "ca.pem") {
    return std::make_unique<TaskCertificates>(
        TaskCertificateFiles{
            .certificate = at(name + ".pem"), .key = at(name + ".key"), .authorities = at(ca)},
        self, [this](std::string_view sentence) {
          const std::lock_guard lock(mutex_);
          warned_ = sentence;
        });
  }
  [[nodiscard]] std::string refused(const std::string& name, const std::string& ca = "ca.pem") {
    return sentence_of([&] { return certificates(name, kWorker1, ca); }, "");
  }
  void serve(Credentials* credentials) {
    ListenerOptions options = ps0_options();
    options.credentials = credentials;
    server_.emplace(&echo_bodies, std::move(options));
  }
  OpenedChannel open(Credentials* credentials, const Hello& hello = hello_of_worker_1()) {
    return open_channel(server_->address(), hello, interrupt_, patience(), credentials);
  }
  std::string refused_of(Credentials* credentials, const Hello& hello = hello_of_worker_1()) {
    const OpenedChannel opened = open(credentials, hello);
    EXPECT_EQ(opened.error, WireError::kRefused) << opened.error.message();
    EXPECT_EQ(opened.refusal.exit_code, kExitMisconfigured);
    return opened.refusal.sentence;
  }
  // Replaces a file by rename, as a user would.
  void replace(const std::string& name, const std::string& by) {
    std::filesystem::copy_file(at(by), at("next"));
    std::filesystem::rename(at("next"), at(name));
  }
  void concatenate(const std::string& made, const std::string& one, const std::string& other) {
    std::ofstream(at(made)) << std::ifstream(at(one)).rdbuf() << std::ifstream(at(other)).rdbuf();
  }
  std::string warned() {
    const std::lock_guard lock(mutex_);
    return warned_;
  }

  const data::test::ScratchDirectory scratch_;
  Interrupt interrupt_;
  std::mutex mutex_;
  std::string warned_;  // guarded by mutex_
  std::optional<LiveServer> server_;
};

TEST_F(TaskCertificate, OfTheTaskThatItSaysItIsIsServed) {
  const auto ps = certificates("ps-0", kPs0);
  const auto worker = certificates("worker-1", kWorker1);
  serve(ps.get());
  for (const std::string name : {"worker-1", "worker"}) {
    const auto mine = certificates(name, kWorker1);
    const OpenedChannel opened = open(mine.get());
    ASSERT_TRUE(opened.channel) << opened.error.message() << opened.refusal.sentence;
    EXPECT_EQ(opened.welcome.step, 9U);
    const std::vector<std::byte> body(100'000, std::byte{7});
    ASSERT_FALSE(opened.channel->send({.kind = FrameKind::kPushPull}, body, patience()));
    FrameHeader header;
    ASSERT_FALSE(opened.channel->receive_header(header, patience()));
    std::vector<std::byte> back(header.body_size);
    ASSERT_FALSE(opened.channel->receive_body(back, patience()));
    EXPECT_EQ(back, body);
  }
}

// A secret cannot distinguish this: with it each member could pretend to be any other.
TEST_F(TaskCertificate, OfAnotherTaskIdentifiesThatTaskAlone) {
  const auto ps = certificates("ps-0", kPs0);
  const auto worker_0 = certificates("worker-0", {.job = Job::kWorker, .index = 0});
  serve(ps.get());
  EXPECT_EQ(refused_of(worker_0.get()),
            "ps 0 (ps0:2222) got a HELLO of worker 1 of spiffe://test/mnist, and the certificate "
            "that came with it is of spiffe://test/mnist/worker/0");
  Hello as_chief = hello_of_worker_1();
  as_chief.from = {.job = Job::kChief, .index = 0};
  EXPECT_THAT(refused_of(worker_0.get(), as_chief), HasSubstr("a HELLO of chief 0"));
  const auto other_run = certificates("other-run", kWorker1);
  EXPECT_EQ(refused_of(other_run.get()),
            "127.0.0.1:" + std::to_string(server_->address().port) +
                " is not the expected task of spiffe://test/other: its certificate is of "
                "spiffe://test/mnist/ps/0");
}

TEST_F(TaskCertificate, OfAPeerIsThatOfTheTaskThatIsMeant) {
  const auto worker_0 = certificates("worker-0", {.job = Job::kWorker, .index = 0});
  const auto worker_1 = certificates("worker-1", kWorker1);
  serve(worker_0.get());  // instead of a ps
  EXPECT_EQ(refused_of(worker_1.get()),
            "127.0.0.1:" + std::to_string(server_->address().port) +
                " is not the expected task of spiffe://test/mnist: its certificate is of "
                "spiffe://test/mnist/worker/0");
}

TEST_F(TaskCertificate, OfAnotherAuthorityIsRefusedByEitherSide) {
  concatenate("both.pem", "ca.pem", "foreign-ca.pem");
  const auto foreign = certificates("foreign", kWorker1, "both.pem");
  const auto own = certificates("worker-1", kWorker1);
  const auto ps = certificates("ps-0", kPs0);
  serve(ps.get());
  EXPECT_THAT(refused_of(foreign.get()), HasSubstr("rejects the certificate"));
  EXPECT_TRUE(server_->events().wait_for(
      "its certificate is rejected by ps 0 (ps0:2222): unable to get local issuer certificate"));
  EXPECT_TRUE(open(own.get()).channel);
  const auto only_foreign = certificates("foreign", kWorker1, "foreign-ca.pem");
  EXPECT_THAT(refused_of(only_foreign.get()),
              HasSubstr("does not accept: its certificate is rejected by this task: unable to "
                        "get local issuer certificate"));
}

TEST_F(TaskCertificate, AndASecretDoNotSpeakWithEachOtherNorWithWhoHasNeither) {
  Secrets secret(std::string(32, 's'), "secret");
  const auto ps = certificates("ps-0", kPs0);
  const auto worker = certificates("worker-1", kWorker1);
  serve(ps.get());
  EXPECT_THAT(refused_of(&secret), HasSubstr("did not agree to TLS 1.3 with a shared secret"));
  EXPECT_EQ(refused_of(nullptr),
            "ps 0 (ps0:2222) accepts only peers that have a certificate: give this task its own "
            "(--task_cert, --task_key, --task_ca)");
  serve(&secret);
  EXPECT_THAT(refused_of(worker.get()), HasSubstr("did not agree to TLS 1.3 with certificates"));
  serve(nullptr);
  EXPECT_THAT(refused_of(worker.get()), HasSubstr("speaks without TLS"));
}

TEST_F(TaskCertificate, IsShownByTheEventLoopToo) {
  const auto ps = certificates("ps-0", kPs0);
  concatenate("both.pem", "ca.pem", "foreign-ca.pem");
  serve(ps.get());
  asio::io_context context;
  NameLookup lookup;
  const auto dialed_with = [&](Credentials* credentials) {
    auto future = asio::co_spawn(
        context,
        dial(context, server_->address(), hello_of_worker_1(), {}, 30s, lookup, credentials),
        asio::use_future);
    context.restart();
    // Runs until the work is done; an open connection has its timer.
    while (future.wait_for(0s) != std::future_status::ready && context.run_one_for(30s) != 0) {
    }
    return future.get();
  };
  EXPECT_TRUE(dialed_with(certificates("worker-1", kWorker1).get()).connection);
  for (const auto& [name, ca, why] :
       {std::tuple{"foreign", "both.pem", "rejects the certificate"},
        {"foreign", "foreign-ca.pem", "does not accept: its certificate is rejected"},
        {"other-run", "ca.pem", "is not the expected task"}}) {
    const auto mine = certificates(name, kWorker1, ca);
    const Dialed dialed = dialed_with(mine.get());
    EXPECT_EQ(dialed.error, WireError::kRefused) << name;
    EXPECT_THAT(dialed.refusal.sentence, HasSubstr(why));
  }
}

// A disttf task does not start with such a certificate, so the test uses its own class.
TEST_F(TaskCertificate, ThatHasExpiredIsNotTakenNowAndMayBeLater) {
  class Expired final : public Credentials {
   public:
    Expired(TaskCertificates& like, const std::string& certificate, const std::string& key)
        : like_(like), certificate_(certificate), key_(key) {}
    std::unique_ptr<Proof> to_say(const Hello& hello) override {
      return std::make_unique<Shown>(like_.to_say(hello), certificate_, key_);
    }
    std::unique_ptr<Proof> to_accept() override { return nullptr; }
    std::vector<std::string> files() const override { return {}; }
    std::optional<Refusal> refusal(std::error_code error, const std::string& whom,
                                   const std::string& detail) override {
      return like_.refusal(error, whom, detail);
    }
    std::string wanted_by(const std::string& whom) const override { return whom; }

   private:
    class Shown final : public Proof {
     public:
      Shown(std::unique_ptr<Proof> like, const std::string& certificate, const std::string& key)
          : like_(std::move(like)), certificate_(certificate), key_(key) {}
      SSL* make() override {
        SSL* const ssl = like_->make();
        SSL_use_certificate_chain_file(ssl, certificate_.c_str());
        SSL_use_PrivateKey_file(ssl, key_.c_str(), SSL_FILETYPE_PEM);
        return ssl;
      }
      std::error_code check(SSL& ssl) override { return like_->check(ssl); }
      std::error_code why_not_shaken(SSL& ssl, int reason) override {
        return like_->why_not_shaken(ssl, reason);
      }
      std::error_code why_ended(int reason) const override { return like_->why_ended(reason); }
      std::optional<std::string> misfit(const Hello& hello) const override {
        return like_->misfit(hello);
      }
      bool may_drive() const override { return like_->may_drive(); }
      std::string detail(std::error_code error, const std::string& self) const override {
        return like_->detail(error, self);
      }

     private:
      const std::unique_ptr<Proof> like_;
      const std::string certificate_;
      const std::string key_;
    };
    TaskCertificates& like_;
    const std::string certificate_;
    const std::string key_;
  };
  const auto ps = certificates("ps-0", kPs0);
  const auto worker = certificates("worker-1", kWorker1);
  for (const std::string name : {"expired", "later"}) {
    serve(ps.get());
    Expired expired(*worker, at(name + ".pem"), at(name + ".key"));
    const OpenedChannel opened = open(&expired);
    EXPECT_EQ(opened.error, make_error_code(TlsError::kNotValidNow)) << opened.error.message();
    EXPECT_TRUE(server_->events().wait_for("it has expired, or is not valid yet"));
  }
}

TEST_F(TaskCertificate, IsRefusedAtTheStartWhereNoPeerWouldAcceptIt) {
  EXPECT_EQ(refused("worker-1"), "");
  EXPECT_EQ(refused("worker"), "");
  const std::string of_test = "--task_cert: \"" + at("");
  EXPECT_EQ(refused("worker-0"), of_test +
                                     "worker-0.pem\" is of spiffe://test/mnist/worker/0, and "
                                     "this task is worker 1");
  EXPECT_EQ(refused("ps-0"), of_test +
                                 "ps-0.pem\" is of spiffe://test/mnist/ps/0, and this task is "
                                 "worker 1");
  EXPECT_EQ(refused("dns"), of_test +
                                "dns.pem\" names no task: its URI is missing; expected one like "
                                "spiffe://example.org/mnist/worker/1");
  EXPECT_THAT(refused("two"), HasSubstr("names no task: its URI is one of 2"));
  EXPECT_THAT(refused("expired"), HasSubstr("certificate has expired"));
  EXPECT_THAT(refused("later"), HasSubstr("certificate is not yet valid"));
  EXPECT_THAT(refused("for-servers"), testing::AnyOf(HasSubstr("unsupported certificate purpose"),
                                                     HasSubstr("unsuitable certificate purpose")));
  EXPECT_EQ(refused("foreign"), of_test +
                                    "foreign.pem\" is rejected by tasks that trust --task_ca \"" +
                                    at("ca.pem") + "\": unable to get local issuer certificate");
  EXPECT_THAT(refused("worker-1", "none.pem"),
              HasSubstr("--task_ca: \"" + at("none.pem") + "\" cannot be read: No such file"));
  EXPECT_THAT(refused("worker-1", "ps-0.key"), HasSubstr("is not a PEM file with certificates"));
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refused("worker-1", "pipe"), HasSubstr("pipe\" is not a regular file"));
  EXPECT_THAT(refused("none"), HasSubstr("--task_cert: \"" + at("none.pem") + "\" cannot be read"));
  std::filesystem::permissions(at("worker-1.key"), std::filesystem::perms(0604));
  EXPECT_THAT(refused("worker-1"), HasSubstr("its mode must be 0640, 0600 or 0400"));
  replace("worker-1.key", "worker-0.key");
  EXPECT_THAT(refused("worker-1"), HasSubstr("is not the key of the certificate"));
}

TEST_F(TaskCertificate, IsRenewedAndSoAreItsAuthorities) {
  concatenate("both.pem", "ca.pem", "foreign-ca.pem");
  const auto ps = certificates("ps-0", kPs0);
  const auto worker = certificates("worker-1", kWorker1, "both.pem");
  serve(ps.get());
  const OpenedChannel stays = open(worker.get());
  ASSERT_TRUE(stays.channel) << stays.refusal.sentence;
  // From the next authority, which the ps must trust first.
  replace("worker-1.pem", "foreign.pem");
  replace("worker-1.key", "foreign.key");
  EXPECT_THAT(refused_of(worker.get()), HasSubstr("rejects the certificate"));
  replace("ca.pem", "both.pem");
  EXPECT_TRUE(open(worker.get()).channel);
  EXPECT_EQ(warned(), "");
  // Existing connections keep their certificates.
  ASSERT_FALSE(stays.channel->send({.kind = FrameKind::kPull}, {}, patience()));
  FrameHeader header;
  EXPECT_FALSE(stays.channel->receive_header(header, patience()));
}

TEST_F(TaskCertificate, IsNotRenewedByOneThatCannotBeUsed) {
  concatenate("both.pem", "ca.pem", "foreign-ca.pem");
  const auto ps = certificates("ps-0", kPs0);
  const auto worker = certificates("worker-1", kWorker1, "both.pem");
  serve(ps.get());
  const auto stays_after = [&](const std::string& certificate, const std::string& key) {
    if (!certificate.empty()) replace("worker-1.pem", certificate);
    if (!key.empty()) replace("worker-1.key", key);
    EXPECT_TRUE(open(worker.get()).channel);
    EXPECT_THAT(warned(), HasSubstr("; the previous certificates stay in use"));
    return warned();
  };
  EXPECT_THAT(stays_after("other-run.pem", ""), HasSubstr("is not the key of the certificate"));
  EXPECT_THAT(stays_after("", "other-run.key"),
              HasSubstr("is of the run spiffe://test/other, and this task is of "
                        "spiffe://test/mnist"));
  EXPECT_THAT(stays_after("worker-0.pem", "worker-0.key"), HasSubstr("and this task is worker 1"));
  EXPECT_THAT(stays_after("expired.pem", "expired.key"), HasSubstr("certificate has expired"));
  // Corrected files are read again although their texts are the same.
  std::filesystem::permissions(at("foreign.key"), std::filesystem::perms(0644));
  EXPECT_THAT(stays_after("foreign.pem", "foreign.key"),
              HasSubstr("its mode must be 0640, 0600 or 0400"));
  std::filesystem::permissions(at("worker-1.key"), std::filesystem::perms(0600));
  EXPECT_THAT(refused_of(worker.get()), HasSubstr("rejects the certificate"))
      << "the one of the other, new authority";
}

TEST_F(TaskCertificate, OfTheChiefAloneMayDrive) {
  const auto ps = certificates("ps-0", kPs0);
  std::atomic<bool> may_drive = false;
  ListenerOptions options = ps0_options();
  options.credentials = ps.get();
  server_.emplace(
      [&may_drive](Connection connection) {
        may_drive = connection->may_drive();
        return echo_bodies(std::move(connection));
      },
      options);
  Hello hello = hello_of_worker_1();
  hello.from = {.job = Job::kEvaluator, .index = 0};
  for (const auto& [name, self, expected] :
       {std::tuple{"chief-0", TaskId{.job = Job::kChief, .index = 0}, true},
        {"evaluator-0", TaskId{.job = Job::kEvaluator, .index = 0}, false}}) {
    const auto mine = certificates(name, self);
    const OpenedChannel opened = open(mine.get(), hello);
    ASSERT_TRUE(opened.channel) << opened.refusal.sentence;
    ASSERT_FALSE(opened.channel->send({.kind = FrameKind::kPull}, {}, patience()));
    FrameHeader header;
    ASSERT_FALSE(opened.channel->receive_header(header, patience()));
    EXPECT_EQ(may_drive, expected) << name;
  }
  const auto worker = certificates("worker-1", kWorker1);
  EXPECT_THAT(refused_of(worker.get(), hello), HasSubstr("a HELLO of evaluator 0"));
}

const Secret kKeyOne{std::string(32, '1')};
const Secret kKeyTwo{std::string(32, '2')};
constexpr Peer kFirstPs{.cluster = {1}, .task = {.job = Job::kPs, .index = 0}};
constexpr Peer kSecondPs{.cluster = {1}, .task = {.job = Job::kPs, .index = 1}};
constexpr Peer kOfAnotherRun{.cluster = {2}, .task = {.job = Job::kPs, .index = 0}};

TEST(Keyring, OffersTheFirstAndAcceptsEach) {
  Keyring keys({kKeyTwo, kKeyOne});
  EXPECT_EQ(keys.offered().fingerprint(), kKeyTwo.fingerprint());
  EXPECT_TRUE(keys.find(kKeyOne.fingerprint()));
  EXPECT_TRUE(keys.find(kKeyTwo.fingerprint()));
  keys.set({kKeyOne});
  EXPECT_EQ(keys.offered().fingerprint(), kKeyOne.fingerprint());
  EXPECT_FALSE(keys.find(kKeyTwo.fingerprint()));
}

TEST(Keyring, APeerThatHasNeverTakenItsSecretNeverWill) {
  Keyring keys({kKeyOne, kKeyTwo});
  EXPECT_FALSE(keys.may_be_changing(kKeyOne.fingerprint(), kFirstPs));
  keys.agreed(kSecondPs);
  keys.agreed(kOfAnotherRun);
  EXPECT_FALSE(keys.may_be_changing(kKeyOne.fingerprint(), kFirstPs));
}

TEST(Keyring, APeerThatHasTakenItBeforeMayDoSoAgain) {
  Keyring keys({kKeyOne});
  keys.agreed(kFirstPs);
  EXPECT_TRUE(keys.may_be_changing(kKeyOne.fingerprint(), kFirstPs));
  keys.set({kKeyTwo});
  EXPECT_TRUE(keys.may_be_changing(kKeyTwo.fingerprint(), kFirstPs));
}

// The key was offered before the file changed and refused after it.
TEST(Keyring, APeerMayTakeAnotherOneThanItWasOffered) {
  Keyring keys({kKeyOne});
  keys.set({kKeyTwo});
  EXPECT_TRUE(keys.may_be_changing(kKeyOne.fingerprint(), kFirstPs));
  EXPECT_FALSE(keys.may_be_changing(kKeyTwo.fingerprint(), kFirstPs));
}

}  // namespace
}  // namespace disttf::net
