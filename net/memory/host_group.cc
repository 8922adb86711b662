#include "net/memory/host_group.h"

#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <tuple>
#include <utility>

#include "net/waiting/descriptor.h"

namespace disttf::net {

enum class GroupSays : std::uint64_t {
  kHello = 1,   // member: its number
  kOffer,       // member: its gradient of that state is in its memory
  kVerdict,     // leader: the verdict on that state
  kParameters,  // leader: the parameters of that state are in its memory
  kResult,      // leader: the same, and they are the run's result
  kBeat         // leader: heartbeat
};

// Both ends are on one machine, so the struct crosses the socket as it is.
struct GroupMessage {
  GroupSays says{};
  StateOf of{};
  std::uint64_t number = 0;    // the member's; the verdict's bits; the range's
  std::uint64_t sequence = 0;  // value of the word in memory while the message holds
};
static_assert(sizeof(GroupMessage) == 40, "no byte is left unset");

namespace {

constexpr std::size_t kGroupLineBytes = 64;  // a processor's cache line
// The most messages of one peer that are read before the clock is read: far more than a correct
// peer has under way.
constexpr int kMostReceivedAtOnce = 256;
// All connections that wait at a peer listener, and some that arrive meanwhile.
constexpr int kMostAdmittedAtOnce = 32;
// Attempts to connect: a leader that polls between connect() and the handover refuses.
constexpr int kDiscoveryAttempts = 3;

bool is_newer_state(const StateOf& one, const StateOf& other) noexcept {
  return std::tie(one.generation, one.step) > std::tie(other.generation, other.step);
}

// ------------------------------------------------------------------------------------- the memory

// Offset of the sequence words, each on a cache line of its own.
std::size_t words_behind(std::size_t bytes) noexcept {
  return (bytes + kGroupLineBytes - 1) / kGroupLineBytes * kGroupLineBytes;
}
std::size_t gradient_memory_bytes(std::size_t bytes) noexcept {
  return words_behind(bytes) + kGroupLineBytes;
}
std::size_t parameter_memory_bytes(std::size_t bytes) noexcept {
  return words_behind(bytes) + kMostSummedRanges * kGroupLineBytes;
}
std::size_t word_of_range(std::size_t bytes, std::size_t range) noexcept {
  return words_behind(bytes) + range * kGroupLineBytes;
}

void fence_words(int order) noexcept {
// ThreadSanitizer does not support fences. It does not see what two mappings share either, so it
// misses no race by ignoring them.
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
  __atomic_thread_fence(order);
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic pop
#endif
}

// A seqlock: copies, and returns the value of the sequence word afterwards, which is even. During
// the copy it is odd.
std::uint64_t leave_in(std::span<std::byte> memory, std::size_t offset,
                       std::span<const std::byte> what, std::size_t word) noexcept {
  auto* const at = reinterpret_cast<std::uint64_t*>(memory.subspan(word).data());
  const std::uint64_t before = __atomic_load_n(at, __ATOMIC_RELAXED);
  __atomic_store_n(at, before + 1, __ATOMIC_RELAXED);
  fence_words(__ATOMIC_RELEASE);  // a reader that sees part of the copy also sees the odd word
  std::copy(what.begin(), what.end(), memory.subspan(offset).begin());
  __atomic_store_n(at, before + 2, __ATOMIC_RELEASE);
  return before + 2;
}

// Whether the memory that was read before this call has been stable, which it is as long as the
// word has that value.
bool still_says(std::span<const std::byte> memory, std::size_t word,
                std::uint64_t sequence) noexcept {
  fence_words(__ATOMIC_ACQUIRE);
  const auto* const at = reinterpret_cast<const std::uint64_t*>(memory.subspan(word).data());
  return __atomic_load_n(at, __ATOMIC_RELAXED) == sequence;
}

std::shared_ptr<const SharedView> view_of_peer(Descriptor memory, std::size_t size) {
  std::error_code error;  // any error means: reject the peer
  return SharedView::map(std::move(memory), {.size = size}, size, error);
}

// ----------------------------------------------------------------------------------- the messages

// Returns false if the peer has disconnected, or its socket is full.
bool say(const Descriptor& peer, const GroupMessage& message) noexcept {
  return ::send(peer.number(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         sizeof message;
}

bool is_nothing_yet(ssize_t received) noexcept {
  return received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

// Calls `makes_sense` for each message. Closes the peer if it has disconnected, or if a message is
// invalid.
template <typename MakesSense>
void receive_all(Descriptor& peer, const MakesSense& makes_sense) {
  GroupMessage message;
  for (int i = 0; i < kMostReceivedAtOnce && peer.is_open(); ++i) {
    // MSG_TRUNC returns the real length, so a message that is too long is detected and not cut.
    const ssize_t length =
        ::recv(peer.number(), &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
    if (is_nothing_yet(length)) return;
    if (length != sizeof message || !makes_sense(message)) {
      peer.reset();
    }
  }
}

}  // namespace

// ------------------------------------------------------------------------------------- the leader

GroupLeader::GroupLeader(std::unique_ptr<PeerListener> peer_listener, std::uint64_t token,
                         std::unique_ptr<SharedMemory> memory, std::size_t bytes,
                         std::size_t members)
    : peer_listener_(std::move(peer_listener)),
      token_(token),
      memory_(std::move(memory)),
      bytes_(bytes),
      members_(members),
      waited_for_(members + 1) {
  newcomers_.reserve(members);
}

std::unique_ptr<GroupLeader> GroupLeader::open(std::size_t bytes, std::size_t members,
                                               std::error_code& error) {
  const std::optional<std::uint64_t> token = draw_token();
  if (!token) {
    error = std::make_error_code(std::errc::resource_unavailable_try_again);
    return nullptr;
  }
  auto peer_listener = PeerListener::open(error);
  auto memory =
      peer_listener ? SharedMemory::create(parameter_memory_bytes(bytes), error) : nullptr;
  if (!memory) {
    return nullptr;
  }
  error.clear();
  return std::unique_ptr<GroupLeader>(
      new GroupLeader(std::move(peer_listener), *token, std::move(memory), bytes, members));
}

LeaderAddress GroupLeader::leader_address() const noexcept {
  return {.listener_name = peer_listener_->name(), .token = token_};
}

std::size_t GroupLeader::present() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(members_, [](const Member& member) { return member.peer.is_open(); }));
}

// A newcomer that never sends its number is evicted by later ones.
bool GroupLeader::admit() {
  // Newcomers of earlier calls first, so that they do not fill the list below.
  bool has_joined = settle();
  for (int i = 0; i < kMostAdmittedAtOnce; ++i) {
    std::optional<HandedOver> handed = peer_listener_->admit(token_);
    if (!handed) {
      break;
    }
    // A peer without memory of the right size is dropped here: its socket closes with `handed`.
    auto memory = view_of_peer(std::move(handed->what), gradient_memory_bytes(bytes_));
    if (!memory) {
      continue;
    }
    if (newcomers_.size() == members_.size()) {
      newcomers_.erase(newcomers_.begin());
    }
    newcomers_.push_back({.peer = std::move(handed->peer), .memory = std::move(memory)});
    has_joined = settle() || has_joined;
  }
  return has_joined;
}

bool GroupLeader::settle() {
  bool has_joined = false;
  std::size_t unsettled = 0;
  for (Newcomer& newcomer : newcomers_) {
    if (!settle(newcomer, has_joined)) {
      newcomers_[unsettled++] = std::move(newcomer);
    }
  }
  newcomers_.erase(newcomers_.begin() + static_cast<std::ptrdiff_t>(unsettled), newcomers_.end());
  return has_joined;
}

bool GroupLeader::settle(Newcomer& newcomer, bool& has_joined) {
  GroupMessage hello;
  const ssize_t length =
      ::recv(newcomer.peer.number(), &hello, sizeof hello, MSG_DONTWAIT | MSG_TRUNC);
  if (is_nothing_yet(length)) {
    return false;
  }
  // The leader's memory is handed over last, because it is how the member learns that it is
  // accepted. Any other message drops the newcomer: true without a member closes its socket.
  if (length == sizeof hello && hello.says == GroupSays::kHello && hello.number < members_.size() &&
      !hand_over(newcomer.peer, token_, memory_->descriptor())) {
    // A member of that number has disconnected unnoticed and connected again.
    members_[hello.number] = {.peer = std::move(newcomer.peer),
                              .memory = std::move(newcomer.memory)};
    has_joined = true;
  }
  return true;
}

void GroupLeader::receive(Member& member) {
  receive_all(member.peer, [&member](const GroupMessage& message) {
    member.offered = message.of;
    // An odd number would name a copy that is still under way; a correct member sends none.
    member.ticket = message.sequence;
    return message.says == GroupSays::kOffer && message.sequence % 2 == 0;
  });
}

// An offer that came too late has its answer already: the verdict was under way.
std::optional<StateOf> GroupLeader::Member::waits_for() const {
  return told && offered && !is_newer_state(*offered, *told) ? std::nullopt : offered;
}

bool GroupLeader::have_all_offered(const StateOf& of) const {
  return std::ranges::all_of(members_, [&of](const Member& member) {
    return member.peer.is_open() && member.waits_for() == of;
  });
}

// A member that waits for the verdict on another state does not offer this one.
bool GroupLeader::may_all_offer(const StateOf& of) const {
  return std::ranges::all_of(members_, [&of](const Member& member) {
    return member.peer.is_open() && member.waits_for().value_or(of) == of;
  });
}

bool GroupLeader::gather(const StateOf& of, const Interrupt& interrupt, Deadline deadline) {
  const bool was_whole = present() == members_.size();
  const bool is_as_before = !admit();
  for (Member& member : members_) {
    receive(member);
    if (!member.peer.is_open()) {
      // The memory is kept until here: the last step's sum may still have been read from it.
      member.memory.reset();
    }
  }
  // `was_whole` was read before admit(), so members that connect during this call count from the
  // next call on.
  if (!was_whole || !is_as_before) {
    return false;
  }
  while (may_all_offer(of) && !have_all_offered(of) && wait(interrupt, deadline)) {
  }
  return have_all_offered(of);
}

// Ends at the deadline even if a member sends messages all the time.
bool GroupLeader::wait(const Interrupt& interrupt, Deadline deadline) {
  std::ranges::transform(members_, waited_for_.begin(), [](const Member& member) {
    return pollfd{.fd = member.peer.number(), .events = POLLIN, .revents = 0};
  });
  if (spin_.wait_for_any(waited_for_, interrupt, deadline)) {
    return false;
  }
  for (Member& member : members_) {
    receive(member);
  }
  // A ready descriptor takes precedence over the interrupt in wait_for_any(), so the interrupt is
  // read here as well.
  return waited_for_.back().revents == 0 && Clock::now() < deadline;
}

std::span<const std::byte> GroupLeader::gradient(std::size_t member) const {
  return members_[member].memory->bytes().first(bytes_);
}

bool GroupLeader::stands() const noexcept {
  // One torn gradient spoils the whole sum, so every member's copy must have stayed unchanged.
  return std::ranges::all_of(members_, [this](const Member& member) {
    return member.memory && still_says(member.memory->bytes(), words_behind(bytes_), member.ticket);
  });
}

void GroupLeader::tell(const GroupVerdict& verdict) {
  notify_all({.says = GroupSays::kVerdict, .of = verdict.of, .number = verdict.summed});
  for (Member& member : members_) {
    // Set for disconnected members, too: connecting again replaces the whole entry.
    member.told = verdict.of;
  }
}

void GroupLeader::publish(const PublishedParameters& what, std::size_t offset,
                          std::span<const std::byte> parameters) {
  const std::size_t range = what.range;
  // There is no sequence word for such a range. Members receive its parameters from the ps.
  if (range >= kMostSummedRanges) {
    return;
  }
  assert(offset <= bytes_ && parameters.size() <= bytes_ - offset);
  const std::uint64_t sequence =
      leave_in(memory_->bytes(), offset, parameters, word_of_range(bytes_, range));
  // The message follows the copy, so a member that receives it finds all of the parameters.
  notify_all({.says = what.is_result ? GroupSays::kResult : GroupSays::kParameters,
              .of = what.of,
              .number = range,
              .sequence = sequence});
}

void GroupLeader::beat() { notify_all({.says = GroupSays::kBeat}); }

void GroupLeader::notify_all(const GroupMessage& message) {
  for (Member& member : members_) {
    if (member.peer.is_open() && !say(member.peer, message)) {
      member.peer.reset();
    }
  }
}

// ------------------------------------------------------------------------------------- the member

GroupMember::GroupMember(Descriptor peer, std::uint64_t token, std::unique_ptr<SharedMemory> memory,
                         std::size_t bytes)
    : peer_(std::move(peer)), token_(token), memory_(std::move(memory)), bytes_(bytes) {}

// The memory is allocated once there is a leader, because mostly the leader is on another host. The
// allocation takes so long that the leader may have polled meanwhile and refused a peer without a
// message; hence the retries.
std::unique_ptr<GroupMember> GroupMember::connect(const LeaderAddress& leader, std::size_t bytes,
                                                  std::size_t member, std::error_code& error) {
  std::unique_ptr<SharedMemory> memory;
  for (int i = 0; i < kDiscoveryAttempts; ++i) {
    Descriptor peer = net::connect_to_peer_listener(leader.listener_name, error);
    if (peer.is_open() && !memory) {
      memory = SharedMemory::create(gradient_memory_bytes(bytes), error);
    }
    if (!peer.is_open() || !memory) {
      return nullptr;
    }
    error = hand_over(peer, leader.token, memory->descriptor());
    if (!error && !say(peer, {.says = GroupSays::kHello, .number = member})) {
      error = last_error();
    }
    if (!error) {
      return std::unique_ptr<GroupMember>(
          new GroupMember(std::move(peer), leader.token, std::move(memory), bytes));
    }
  }
  return nullptr;
}

bool GroupMember::is_open() const noexcept { return peer_.is_open(); }
int GroupMember::fd() const noexcept { return peer_.number(); }
bool GroupMember::is_taken_in() { return look() && parameters_ != nullptr; }

// Messages that came before the leader disconnected are still valid.
bool GroupMember::look() {
  if (is_open() && !parameters_) {
    be_taken_in();
  }
  if (parameters_) {
    receive_all(peer_, [this](const GroupMessage& message) { return receive(message); });
  }
  return is_open();
}

void GroupMember::be_taken_in() {
  // Only peeks: the message with the descriptor is read by take_over().
  char byte = 0;
  if (is_nothing_yet(::recv(peer_.number(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT))) {
    return;
  }
  Descriptor theirs = take_over(peer_, token_);
  parameters_ =
      theirs.is_open() ? view_of_peer(std::move(theirs), parameter_memory_bytes(bytes_)) : nullptr;
  // Without the leader's memory this member could read no answer, so it leaves.
  if (!parameters_) {
    peer_.reset();
  }
}

bool GroupMember::receive(const GroupMessage& message) {
  has_received_ = true;
  if (message.says == GroupSays::kBeat) {
    return true;
  }
  if (message.says == GroupSays::kVerdict) {
    verdict_ = {.of = message.of, .summed = message.number};
    return true;
  }
  // The number indexes announced_ and comes from the peer, so it is checked before use.
  const bool is_result = message.says == GroupSays::kResult;
  if ((message.says != GroupSays::kParameters && !is_result) ||
      message.number >= announced_.size() || message.sequence % 2 != 0) {
    return false;
  }
  announced_[message.number] = {
      .of = message.of, .is_result = is_result, .sequence = message.sequence};
  return true;
}

// Verdicts come in the order of the states. After a verdict on a newer state there will be none on
// this one, so it has no sum.
std::optional<GroupVerdict> GroupMember::verdict_on(const StateOf& of) const {
  if (!verdict_ || is_newer_state(of, verdict_->of)) {
    return std::nullopt;
  }
  return verdict_->of == of ? *verdict_ : GroupVerdict{.of = of};
}

// These parameters have been announced, or others that replace them. A leader that was answered
// with the parameters of a step is sent the run's result, if that differs, in answer to its next
// push.
bool GroupMember::is_past(const PublishedParameters& what) const {
  const std::optional<Announcement>& newest = announced_[what.range];
  return newest && !is_newer_state(what.of, newest->of);
}

bool GroupMember::has_newer(std::size_t range, const StateOf& of) const {
  return announced_[range] && is_newer_state(announced_[range]->of, of);
}

bool GroupMember::wait(SpinThenPark& spin, const Interrupt& interrupt, Deadline deadline) {
  if (!is_open()) {
    return false;
  }
  std::array<pollfd, 2> waited_for{pollfd{.fd = fd(), .events = POLLIN, .revents = 0}};
  if (spin.wait_for_any(waited_for, interrupt, deadline)) {
    return false;
  }
  return look() && waited_for.back().revents == 0 && Clock::now() < deadline;
}

std::optional<GroupVerdict> GroupMember::offer(const StateOf& of,
                                               std::span<const std::byte> gradient,
                                               const Interrupt& interrupt, Deadline deadline) {
  assert(gradient.size() == bytes_);
  // A member that is late may find the verdict here already; then no process reads its gradient and
  // the copy is saved. Otherwise the message follows the copy: the leader reads as soon as it has
  // the ticket.
  if (const bool may_offer = is_taken_in(); may_offer && !verdict_on(of)) {
    const std::uint64_t ticket = leave_in(memory_->bytes(), 0, gradient, words_behind(bytes_));
    if (!say(peer_, {.says = GroupSays::kOffer, .of = of, .sequence = ticket})) {
      close();
    }
  }
  while (!verdict_on(of) && wait(for_verdict_, interrupt, deadline)) {
  }
  const std::optional<GroupVerdict> verdict = verdict_on(of);
  // A member that missed a verdict leaves for good. The leader detects that and continues without
  // it.
  if (!verdict) {
    close();
  }
  return verdict;
}

bool GroupMember::take(const PublishedParameters& what, std::size_t offset,
                       std::span<std::byte> into, const Interrupt& interrupt, Deadline deadline) {
  const std::size_t range = what.range;
  assert(range < kMostSummedRanges && offset <= bytes_ && into.size() <= bytes_ - offset);
  // Newer parameters end the wait, too: those that were awaited will not come any more.
  while (!is_past(what) && wait(for_parameters_, interrupt, deadline)) {
  }
  if (is_past(what) && announced_[range]->of == what.of &&
      announced_[range]->is_result == what.is_result) {
    // The copy may be torn if the leader publishes again meanwhile; the sequence word tells.
    const std::span<const std::byte> theirs = parameters_->bytes().subspan(offset, into.size());
    std::copy(theirs.begin(), theirs.end(), into.begin());
    if (still_says(parameters_->bytes(), word_of_range(bytes_, range),
                   announced_[range]->sequence)) {
      return true;
    }
  }
  close();
  return false;
}

void GroupMember::close() noexcept {
  peer_.reset();
  verdict_.reset();
  announced_.fill(std::nullopt);
}

}  // namespace disttf::net
