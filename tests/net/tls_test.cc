// TLS between tasks with a shared secret, over real sockets: which peers are accepted or refused,
// and the messages on each side.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/use_future.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "net/tcp/dial.h"
#include "net/tcp/sockets.h"
#include "net/tls/secrets.h"
#include "net/tls/tls_stream.h"
#include "tests/net/test_server.h"
#include "tests/support/thrown.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kOne(32, '1');
const std::string kTwo(32, '2');

std::vector<std::byte> numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

class Tls : public ::testing::Test {
 protected:
  void serve(Secrets* secrets, ListenerOptions options = ps0_options()) {
    options.credentials = secrets;
    server_.emplace(&echo_bodies, std::move(options));
  }
  OpenedChannel open(Secrets* secrets, const Hello& hello = hello_of_worker_1()) {
    return open_channel(server_->address(), hello, interrupt_, patience(), secrets);
  }
  std::uint64_t unauthenticated_peers() {
    return server_->ask([](Listener& listener) { return listener.unauthenticated_peers(); });
  }

  Interrupt interrupt_;
  Secrets one_{kOne, "one"};
  Secrets two_{kTwo, "two"};
  std::optional<LiveServer> server_;
};

// A relay in the middle, which sees all bytes and can change them.
class Middle {
 public:
  explicit Middle(const Address& to)
      : acceptor_(listen_on(context_, 0, ListenScope::kLoopback)),
        client_(context_),
        server_(context_) {
    server_.connect({asio::ip::make_address(to.host), to.port});
  }
  Address address() { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }
  void accept() { acceptor_.accept(client_); }
  static std::vector<std::byte> some(asio::ip::tcp::socket& from) {
    std::vector<std::byte> bytes(64 * 1024);
    std::error_code error;
    bytes.resize(from.read_some(asio::buffer(bytes), error));
    return bytes;
  }
  asio::ip::tcp::socket& client() { return client_; }
  asio::ip::tcp::socket& server() { return server_; }

 private:
  asio::io_context context_;
  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket client_;
  asio::ip::tcp::socket server_;
};

TEST_F(Tls, WhoHasTheSecretIsServedAndBigFramesGoBothWays) {
  serve(&one_);
  Secrets same(kOne, "same");
  OpenedChannel opened = open(&same);
  ASSERT_TRUE(opened.channel) << opened.error.message() << opened.refusal.sentence;
  EXPECT_EQ(opened.welcome.step, 9U);
  for (const std::size_t size : {0UL, 1UL, 16'000UL, 16'320UL, 16'321UL, 318'040UL, 9'000'001UL}) {
    const auto body = numbered(size);
    std::thread sender([&] {
      EXPECT_FALSE(opened.channel->send({.kind = FrameKind::kPushPull, .request_id = size}, body,
                                        patience()));
    });
    sender.join();
    FrameHeader header;
    ASSERT_FALSE(opened.channel->receive_header(header, patience()));
    EXPECT_EQ(header.request_id, size);
    std::vector<std::byte> back(header.body_size);
    ASSERT_FALSE(opened.channel->receive_body(back, patience()));
    EXPECT_EQ(back, body);
  }
}

TEST_F(Tls, AFrameIsSentAheadAsWithout) {
  serve(&one_);
  OpenedChannel opened = open(&one_);
  ASSERT_TRUE(opened.channel);
  const auto body = numbered(20'000'000);  // more than a socket accepts
  const FrameHeader header{.kind = FrameKind::kPushPull, .request_id = 3};
  for (const std::size_t ready : {10UL, 5000UL, 10'000'000UL}) {
    ASSERT_FALSE(opened.channel->send_ahead(header, body, ready));
  }
  ASSERT_FALSE(opened.channel->send(header, body, patience()));
  FrameHeader reply;
  ASSERT_FALSE(opened.channel->receive_header(reply, patience()));
  std::vector<std::byte> back(reply.body_size);
  ASSERT_FALSE(opened.channel->receive_body(back, patience()));
  EXPECT_EQ(back, body);
}

// Bytes that a frame's reader has not taken must stay in the kernel, where poll() sees them: a
// thread that waits for several channels relies only on poll().
TEST_F(Tls, NothingBeyondTheFrameThatIsReadIsTaken) {
  serve(&one_);
  const OpenedChannel opened = open(&one_);
  ASSERT_TRUE(opened.channel) << opened.error.message();
  const std::array<std::size_t, 7> sizes{0,       1, 16 * 1024 - kHeaderBytes, 16 * 1024, 40'000,
                                         400'000, 3};
  for (const std::size_t size : sizes) {
    ASSERT_FALSE(opened.channel->send({.kind = FrameKind::kPushPull}, numbered(size), patience()));
  }
  for (const std::size_t size : sizes) {
    EXPECT_FALSE(opened.channel->has_frame()) << size;
    ASSERT_FALSE(wait_for(opened.channel->fd(), POLLIN, interrupt_, patience())) << size;
    FrameHeader header;
    ASSERT_FALSE(opened.channel->receive_header(header, patience()));
    ASSERT_EQ(header.body_size, size);
    std::vector<std::byte> body(size);
    // In two pieces, as a run with several ps reads the parameters of one.
    const auto front = std::span(body).first(size / 3);
    ASSERT_FALSE(opened.channel->receive_body(front, patience()));
    ASSERT_FALSE(opened.channel->receive_body(std::span(body).subspan(size / 3), patience()));
    EXPECT_EQ(body, numbered(size));
  }
  EXPECT_FALSE(opened.channel->has_frame());
}

TEST(RecordBorder, IsFoundHoweverTheBytesCome) {
  std::vector<std::byte> stream;
  std::vector<std::size_t> borders{0};
  for (const std::size_t size : std::array<std::size_t, 5>{1, 0, 255, 256, 16'384 + 17}) {
    const std::size_t before = stream.size();
    stream.resize(before + kRecordHeaderBytes + size, std::byte{0xEE});
    stream[before + 3] = static_cast<std::byte>(size >> 8U);
    stream[before + 4] = static_cast<std::byte>(size & 0xFFU);
    borders.push_back(stream.size());
  }
  for (const std::size_t step : std::array<std::size_t, 7>{1, 2, 3, 5, 7, 300, 100'000}) {
    RecordBorders found;
    for (std::size_t at = 0; at < stream.size();) {
      EXPECT_EQ(found.at_border(), std::ranges::binary_search(borders, at)) << step << " " << at;
      const std::size_t part = std::min(step, stream.size() - at);
      found.pass(std::span(stream).subspan(at, part));
      at += part;
    }
    EXPECT_TRUE(found.at_border());
  }
}

TEST_F(Tls, AnotherSecretIsRefusedWithBothFingerprints) {
  serve(&one_);
  const OpenedChannel opened = open(&two_);
  EXPECT_EQ(opened.error, WireError::kRefused);
  EXPECT_EQ(opened.refusal.exit_code, kExitMisconfigured);
  EXPECT_THAT(opened.refusal.sentence, HasSubstr("fingerprint " + two_.fingerprints()));
  EXPECT_TRUE(server_->events().wait_for("fingerprint " + two_.fingerprints() +
                                         ", and that of ps 0 (ps0:2222) " + one_.fingerprints()));
  EXPECT_EQ(unauthenticated_peers(), 1U);
}

TEST_F(Tls, WhoSpeaksWithoutIsRefusedWithASentence) {
  serve(&one_);
  const OpenedChannel opened = open(nullptr);
  EXPECT_EQ(opened.error, WireError::kRefused);
  EXPECT_EQ(opened.refusal.exit_code, kExitMisconfigured);
  EXPECT_THAT(opened.refusal.sentence, HasSubstr("accepts only peers that have its secret"));
}

TEST_F(Tls, WhoHasASecretDoesNotSpeakWithOneWhoHasNone) {
  serve(nullptr);
  const OpenedChannel opened = open(&one_);
  EXPECT_EQ(opened.error, WireError::kRefused);
  EXPECT_EQ(opened.refusal.exit_code, kExitMisconfigured);
  EXPECT_THAT(opened.refusal.sentence, HasSubstr("speaks without TLS"));
  EXPECT_TRUE(server_->events().wait_for("has no secret or certificate for TLS"));
}

TEST_F(Tls, OneOfSeveralSecretsIsEnough) {
  Secrets both(kTwo + "\n" + kOne + "\n", "both");
  serve(&both);
  EXPECT_TRUE(open(&one_).channel);
  EXPECT_TRUE(open(&two_).channel);
  EXPECT_TRUE(open(&both).channel);
}

// Not permanently: one of the two files may be about to change.
TEST_F(Tls, WhoHasAgreedBeforeIsTurnedAwayForNowAlone) {
  const std::string path = testing::TempDir() + "disttf_changing_" + std::to_string(::getpid());
  const auto write = [&path](const std::string& text) {
    std::ofstream(path + ".next") << text;
    ::chmod((path + ".next").c_str(), 0600);
    std::filesystem::rename(path + ".next", path);
  };
  write(kOne);
  Secrets changing(path, [](std::string_view) {});
  serve(&changing);
  EXPECT_TRUE(open(&one_).channel);
  write(kTwo);
  EXPECT_EQ(open(&one_).error, TlsError::kSecretChanges);
  Secrets never(kOne, "never");
  EXPECT_EQ(open(&never).error, WireError::kRefused);
  write(kOne);
  EXPECT_TRUE(open(&one_).channel);
  std::filesystem::remove(path);
}

TEST_F(Tls, TheEventLoopDialsWithItsSecretOrNotAtAll) {
  serve(&one_);
  asio::io_context context;
  NameLookup lookup;
  const auto dialed_with = [&](Secrets* secrets) {
    auto future = asio::co_spawn(
        context, dial(context, server_->address(), hello_of_worker_1(), {}, 30s, lookup, secrets),
        asio::use_future);
    context.restart();
    // Runs until the work is done; an open connection has its timer.
    while (future.wait_for(0s) != std::future_status::ready && context.run_one_for(30s) != 0) {
    }
    return future.get();
  };
  EXPECT_TRUE(dialed_with(&one_).connection);
  const Dialed other = dialed_with(&two_);
  EXPECT_EQ(other.error, WireError::kRefused);
  EXPECT_THAT(other.refusal.sentence, HasSubstr(two_.fingerprints()));
  EXPECT_EQ(dialed_with(nullptr).error, WireError::kRefused);
}

TEST_F(Tls, AHelloThatIsNotItsKeysIsRefused) {
  serve(&one_);
  std::error_code error;
  Hello other = hello_of_worker_1();
  other.from.index = 0;
  std::string detail;
  auto channel =
      connect_tls(server_->address(), one_, other, interrupt_, patience(), error, detail);
  ASSERT_TRUE(channel) << error.message();
  ASSERT_FALSE(channel->send(FrameHeader{.kind = FrameKind::kHello, .request_id = 1},
                             encode(hello_of_worker_1()), patience()));
  FrameHeader header;
  ASSERT_FALSE(channel->receive_header(header, patience()));
  EXPECT_EQ(header.kind, FrameKind::kRefused);
  EXPECT_THAT(receive_refusal(*channel, header, patience()).sentence,
              HasSubstr("a HELLO that does not match its key"));
}

TEST_F(Tls, SilenceAfterHalfAHandshakeIsCutOff) {
  ListenerOptions options = ps0_options();
  options.handshake_timeout = 50ms;
  serve(&one_, options);
  RawClient client(server_->address());
  client.write(std::string_view("\x16\x03\x01\x02\x00\x01", 6));
  EXPECT_TRUE(client.read_to_end().empty());
  EXPECT_TRUE(server_->events().wait_for("timed out"));
}

TEST_F(Tls, AReplayedClientHelloAdmitsNoPeer) {
  ListenerOptions options = ps0_options();
  options.handshake_timeout = 500ms;
  serve(&one_, options);
  Middle middle(server_->address());
  auto opening = std::async(std::launch::async, [&] {
    std::error_code error;
    std::string detail;
    return connect_tls(middle.address(), one_, hello_of_worker_1(), interrupt_, after(1s), error,
                       detail);
  });
  middle.accept();
  const auto hello = Middle::some(middle.client());
  middle.client().close();
  EXPECT_FALSE(opening.get());
  RawClient replay(server_->address());
  replay.write(hello);
  replay.write(frame_bytes({.kind = FrameKind::kHello}, encode(hello_of_worker_1())));
  EXPECT_FALSE(refusal_in(replay.read_to_end()));
  EXPECT_EQ(server_->ask([](Listener& listener) { return listener.refusals(); }), 0U);
  EXPECT_GE(unauthenticated_peers(), 1U);
}

// Relays a handshake through the middle and leaves the rest to the caller.
void relay_welcome(Middle& middle, std::future<OpenedChannel>& opening) {
  while (opening.wait_for(0ms) != std::future_status::ready) {
    for (auto* pair : {&middle.client(), &middle.server()}) {
      std::error_code error;
      if (pair->available(error) == 0) continue;
      auto& other = pair == &middle.client() ? middle.server() : middle.client();
      asio::write(other, asio::buffer(Middle::some(*pair)));
    }
    std::this_thread::yield();
  }
}

TEST_F(Tls, AnEndWithoutCloseNotifyAndAChangedRecordAreErrors) {
  serve(&one_);
  for (const bool cuts : {true, false}) {
    Middle middle(server_->address());
    auto opening = std::async(std::launch::async, [&] {
      return open_channel(middle.address(), hello_of_worker_1(), interrupt_, patience(), &one_);
    });
    middle.accept();
    relay_welcome(middle, opening);
    OpenedChannel opened = opening.get();
    ASSERT_TRUE(opened.channel) << opened.error.message();
    if (cuts) {
      middle.client().close();
    } else {
      ASSERT_FALSE(opened.channel->send({.kind = FrameKind::kPull}, {}, patience()));
      asio::write(middle.server(), asio::buffer(Middle::some(middle.client())));
      auto reply = Middle::some(middle.server());
      reply.back() ^= std::byte{1};
      asio::write(middle.client(), asio::buffer(reply));
    }
    FrameHeader header;
    EXPECT_EQ(opened.channel->receive_header(header, patience()),
              make_error_code(cuts ? TlsError::kCut : TlsError::kBroken));
    EXPECT_FALSE(opened.channel->is_open());
  }
}

TEST_F(Tls, NothingOfAFrameIsSeenOnTheWay) {
  serve(&one_);
  Middle middle(server_->address());
  auto opening = std::async(std::launch::async, [&] {
    return open_channel(middle.address(), hello_of_worker_1(), interrupt_, patience(), &one_);
  });
  middle.accept();
  relay_welcome(middle, opening);
  OpenedChannel opened = opening.get();
  ASSERT_TRUE(opened.channel);
  const std::vector<std::byte> body(400, std::byte{'s'});
  ASSERT_FALSE(opened.channel->send({.kind = FrameKind::kPushPull}, body, patience()));
  const auto seen = Middle::some(middle.client());
  EXPECT_EQ(seen.size(), 5 + kHeaderBytes + body.size() + 1 + 16);  // one record
  EXPECT_EQ(std::ranges::search(seen, frame_bytes({}, {})).size(), 0U);
  EXPECT_EQ(std::ranges::search(seen, std::span(body).first(8)).size(), 0U);
}

TEST_F(Tls, WaitsEndAtTheDeadlineAndByTheInterrupt) {
  asio::io_context context;
  auto silent = listen_on(context, 0, ListenScope::kLoopback);  // stays in the kernel's queue
  const Address address{"127.0.0.1", silent.local_endpoint().port()};
  std::error_code error;
  std::string detail;
  EXPECT_FALSE(
      connect_tls(address, one_, hello_of_worker_1(), interrupt_, after(30ms), error, detail));
  EXPECT_EQ(error, std::errc::timed_out);
  serve(&one_);
  OpenedChannel opened = open(&one_);
  ASSERT_TRUE(opened.channel);
  FrameHeader header;
  EXPECT_EQ(opened.channel->receive_header(header, after(10ms)), std::errc::timed_out);
  EXPECT_FALSE(opened.channel->is_open());
  OpenedChannel second = open(&one_);
  ASSERT_TRUE(second.channel);
  interrupt_.interrupt();
  EXPECT_EQ(second.channel->receive_header(header, patience()), std::errc::operation_canceled);
  EXPECT_FALSE(
      connect_tls(address, one_, hello_of_worker_1(), interrupt_, patience(), error, detail));
  EXPECT_EQ(error, std::errc::operation_canceled);
}

// ---------------------------------------------------------------------------------- the secret
// file

class SecretFile : public Tls {
 protected:
  SecretFile()
      : path_(std::filesystem::temp_directory_path() /
              ("disttf_secret_" + std::to_string(::getpid()))) {}
  ~SecretFile() override { std::filesystem::remove(path_); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;
  // Replaces the file by rename, as a user would.
  void write(const std::string& text, mode_t mode = 0600) {
    const std::string next = path_.string() + ".next";
    std::ofstream(next) << text;
    ::chmod(next.c_str(), mode);
    std::filesystem::rename(next, path_);
  }
  std::string refused() {
    return sentence_of([&] { const Secrets secrets(path_.string(), [](std::string_view) {}); }, "");
  }

  const std::filesystem::path path_;
};

// Kubernetes creates the file of a Secret with these rights in a pod with an fsGroup.
TEST_F(SecretFile, MayBeReadByAGroupOfThisProcess) {
  write(kOne, 0440);
  EXPECT_EQ(refused(), "");
  for (const mode_t mode : {0444U, 0460U, 0450U, 0441U, 0640U}) {
    write(kOne, mode);
    EXPECT_THAT(refused(), HasSubstr("or 0440 with a group of this process")) << std::oct << mode;
  }
}

TEST_F(SecretFile, IsRefusedWhereAnotherGroupMayReadIt) {
  write(kOne, 0440);
  constexpr gid_t kForeign = 54321;
  if (::chown(path_.c_str(), static_cast<uid_t>(-1), kForeign) != 0) {
    GTEST_SKIP() << "this user may not give a file to another group";
  }
  EXPECT_THAT(refused(), HasSubstr("or 0440 with a group of this process"));
}

TEST_F(SecretFile, IsRefusedAtOnceWhereItIsAPipe) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  auto sentence = std::async(std::launch::async, [this] { return refused(); });
  Descriptor writer;  // lets a reader go that waits
  if (sentence.wait_for(30s) != std::future_status::ready) {
    ADD_FAILURE() << "it is waited for";
    writer = Descriptor(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  }
  EXPECT_THAT(sentence.get(), HasSubstr("is not a regular file"));
}

TEST_F(SecretFile, IsRefusedWhereOthersCouldReadItOrItIsNoSecret) {
  EXPECT_THAT(refused(), HasSubstr("cannot be read"));
  write(kOne + "\n");
  EXPECT_EQ(refused(), "");
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U}) {
    write(kOne, mode);
    EXPECT_THAT(refused(), HasSubstr("must be 0600 or 0400"));
  }
  write("");
  EXPECT_THAT(refused(), HasSubstr("has 0 secrets"));
  write(std::string(31, 'x'));
  EXPECT_THAT(refused(), HasSubstr("a secret of 31 bytes"));
  EXPECT_THAT(refused(), testing::Not(HasSubstr("xxx")));
  write(std::string(100'000, 'x'));
  EXPECT_THAT(refused(), HasSubstr("is too long: it has more than"));
}

TEST_F(SecretFile, IsReadAgainWhereItHasChanged) {
  write(kOne);
  std::string warned;
  Secrets secrets(path_.string(), [&](std::string_view sentence) { warned = sentence; });
  serve(&secrets);
  EXPECT_TRUE(open(&one_).channel);
  write(kTwo + "\n" + kOne);
  EXPECT_TRUE(open(&one_).channel);
  EXPECT_TRUE(open(&two_).channel);
  write(kTwo);
  EXPECT_FALSE(open(&one_).channel);
  EXPECT_TRUE(open(&two_).channel);
  write("short");
  EXPECT_TRUE(open(&two_).channel);
  EXPECT_THAT(warned, HasSubstr("the previous secrets stay in use"));
}

TEST(SecretKeys, DependOnTheSecretTheTasksAndTheDirection) {
  const Secret one{kOne};
  const Secret two{kTwo};
  EXPECT_NE(one.fingerprint(), two.fingerprint());
  Hello hello = hello_of_worker_1();
  const auto key = one.key(pair_context(hello));
  EXPECT_EQ(key, Secret{kOne}.key(pair_context(hello)));
  EXPECT_NE(key, two.key(pair_context(hello)));
  std::swap(hello.from, hello.to);
  EXPECT_NE(key, one.key(pair_context(hello)));
  hello = hello_of_worker_1();
  hello.cluster[31] ^= 1U;
  EXPECT_NE(key, one.key(pair_context(hello)));
  hello = hello_of_worker_1();
  hello.purpose = ChannelPurpose::kControl;
  EXPECT_NE(key, one.key(pair_context(hello)));
}

}  // namespace
}  // namespace disttf::net
