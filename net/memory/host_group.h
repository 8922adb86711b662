// The protocol between the trainers of a host group (net/wire/cluster.h). One of them, the leader,
// pushes the sum of all their gradients. The others, its members, read the parameters of the
// leader's answer where the leader leaves them. roles/trainer/shell/host_sum.h decides when they do
// so and what the ps are sent.
//
// The leader has a peer listener (net/memory/handover.h). Its members learn the name by way
// of the ps; a member on another host does not find it. A member connects and hands over memory
// that it copies its gradients to; the leader hands over memory that it copies parameters to in the
// same way. Each writes only its own memory and reads the other's. Notifications go over the
// socket, so a waiting process can sleep, and a peer's death is detected at once.
//
//  leader                                     member
//  gather(name) ............................. offer(name, gradient): copies, notifies, waits
//  reads gradient(i), then stands()           |
//  tell({name, ranges}) ..................... returns
//  publish(range, name, parameters) ......... take(range, name, into)
//
// Every wait has a deadline. A member that has no answer by its deadline, or receives an invalid
// message, leaves for good, and the leader detects that. A leader continues without late members. A
// member may then offer a new gradient while the leader, which may have been frozen, still reads
// the old one: what it reads is torn, and stands() returns false.
//
// Not thread-safe: the computing thread owns either end.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "net/memory/handover.h"
#include "net/memory/shared_memory.h"
#include "net/waiting/descriptor.h"
#include "net/waiting/interrupt.h"
#include "net/waiting/spin_then_park.h"
#include "net/wire/frame.h"

namespace disttf::net {

// The state from which a gradient was computed: `step` of `generation`. Later states compare
// higher.
struct StateOf {
  Generation generation = 0;
  std::uint64_t step = 0;
  friend bool operator==(const StateOf&, const StateOf&) = default;
};

// Parameters of a ps's range at a state. The run's result may differ from the parameters of its
// last step, for example with averages. REQUIRES for take(): range < kMostSummedRanges.
struct PublishedParameters {
  std::size_t range = 0;
  StateOf of;
  bool is_result = false;
};

// How members find their leader; a ps passes it on. 0, 0: there is none.
struct LeaderAddress {
  std::uint64_t listener_name = 0;
  std::uint64_t token = 0;
  friend bool operator==(const LeaderAddress&, const LeaderAddress&) = default;
};

// What happens to the gradients of a step.
struct GroupVerdict {
  StateOf of;
  // Bit i: ps i is sent the sum of the group. 0: each trainer pushes its own gradient.
  std::uint64_t summed = 0;
  friend bool operator==(const GroupVerdict&, const GroupVerdict&) = default;
};
// Ps beyond these are sent each gradient separately.
inline constexpr std::size_t kMostSummedRanges = 64;

struct GroupMessage;  // between the two ends

class GroupLeader {
 public:
  // For vectors of `bytes` bytes. Returns nullptr, and sets `error`, where the system has no memory
  // to share, or no such sockets.
  [[nodiscard]] static std::unique_ptr<GroupLeader> open(std::size_t bytes, std::size_t members,
                                                         std::error_code& error);

  [[nodiscard]] LeaderAddress leader_address() const noexcept;
  [[nodiscard]] std::size_t present() const noexcept;  // members that are connected

  // Waits until each member has offered its gradient of that state. False: not all members were
  // connected before this call (those that connect during it count from the next call on), one has
  // disconnected or offered another state, the deadline has passed, or the interrupt is set.
  [[nodiscard]] bool gather(const StateOf& of, const Interrupt& interrupt, Deadline deadline);
  // After a gather() that returned true: the gradient of that member, [bytes]. Members are numbered
  // from 0, in the order of their ranks.
  [[nodiscard]] std::span<const std::byte> gradient(std::size_t member) const;
  // Whether what gradient() returned has stayed unchanged since. Call it after all have been read.
  [[nodiscard]] bool stands() const noexcept;
  // Sends the verdict to all connected members. A member whose socket is full, because it does not
  // read, is disconnected.
  void tell(const GroupVerdict& verdict);
  void beat();  // notifies members that the leader runs
  // Copies parameters of a ps's range to where members read them, and notifies the members.
  // `offset`: in bytes from the beginning of the vector.
  void publish(const PublishedParameters& what, std::size_t offset,
               std::span<const std::byte> parameters);

 private:
  struct Member {
    // The state that it has offered and has no verdict for.
    [[nodiscard]] std::optional<StateOf> waits_for() const;

    Descriptor peer;
    // Kept until the next gather(), even if the member disconnects before.
    std::shared_ptr<const SharedView> memory;
    std::optional<StateOf> offered{};  // the newest
    std::uint64_t ticket = 0;          // the sequence word of that offer
    std::optional<StateOf> told{};
  };
  // A connection that has not yet sent which member it is.
  struct Newcomer {
    Descriptor peer;
    std::shared_ptr<const SharedView> memory;
  };
  GroupLeader(std::unique_ptr<PeerListener> peer_listener, std::uint64_t token,
              std::unique_ptr<SharedMemory> memory, std::size_t bytes, std::size_t members);

  // Returns true if there is a new member.
  [[nodiscard]] bool admit();
  [[nodiscard]] bool settle();
  // Returns false if the newcomer has not yet sent which member it is.
  [[nodiscard]] bool settle(Newcomer& newcomer, bool& has_joined);
  static void receive(Member& member);
  void notify_all(const GroupMessage& message);
  [[nodiscard]] bool have_all_offered(const StateOf& of) const;
  [[nodiscard]] bool may_all_offer(const StateOf& of) const;
  [[nodiscard]] bool wait(const Interrupt& interrupt, Deadline deadline);

  const std::unique_ptr<PeerListener> peer_listener_;
  const std::uint64_t token_;
  const std::unique_ptr<SharedMemory> memory_;  // the parameters, and a sequence word a range
  const std::size_t bytes_;
  std::vector<Member> members_;
  std::vector<Newcomer> newcomers_;  // oldest first, at most as many as there are members
  std::vector<pollfd> waited_for_;
  SpinThenPark spin_;
};

class GroupMember {
 public:
  // Connects to the leader. `member`: its number, as the leader counts. Returns nullptr, and sets
  // `error`, where no leader of this user is on this host, or the leader accepts no more, or the
  // system has no memory to share. A leader that polls just then may refuse; the member is closed
  // soon after and may connect again.
  [[nodiscard]] static std::unique_ptr<GroupMember> connect(const LeaderAddress& leader,
                                                            std::size_t bytes, std::size_t member,
                                                            std::error_code& error);

  // Whether it has not left, and has not detected that the leader has.
  [[nodiscard]] bool is_open() const noexcept;
  // Whether the leader has accepted this member and expects its offers. Does not block.
  [[nodiscard]] bool is_taken_in();
  // Becomes readable when there is a message, or when the leader has disconnected; -1: closed.
  [[nodiscard]] int fd() const noexcept;
  // Reads all messages. False: the leader has disconnected; this end is closed.
  bool look();

  // Copies the gradient, [bytes], and waits for the verdict. nullopt: no verdict came by the
  // deadline, the interrupt is set, or the leader has disconnected; this end is closed. If the
  // leader has already sent the verdict on a newer state, there is no sum for this one. REQUIRES:
  // is_taken_in().
  [[nodiscard]] std::optional<GroupVerdict> offer(const StateOf& of,
                                                  std::span<const std::byte> gradient,
                                                  const Interrupt& interrupt, Deadline deadline);
  // Waits for the parameters of that range and state, and copies them. False: as above, or newer
  // parameters have replaced them; this end is closed. REQUIRES: range < kMostSummedRanges.
  [[nodiscard]] bool take(const PublishedParameters& what, std::size_t offset,
                          std::span<std::byte> into, const Interrupt& interrupt, Deadline deadline);
  // Whether a message read so far announces parameters of a later state. REQUIRES: as above.
  [[nodiscard]] bool has_newer(std::size_t range, const StateOf& of) const;
  // Whether a message was read since the last call.
  [[nodiscard]] bool has_received() noexcept { return std::exchange(has_received_, false); }
  // Disconnects, and keeps what has been read.
  void stop() noexcept { peer_.reset(); }
  void close() noexcept;

 private:
  struct Announcement {
    StateOf of;
    bool is_result = false;
    std::uint64_t sequence = 0;
  };
  GroupMember(Descriptor peer, std::uint64_t token, std::unique_ptr<SharedMemory> memory,
              std::size_t bytes);

  void be_taken_in();
  // Returns false if the message is invalid.
  [[nodiscard]] bool receive(const GroupMessage& message);
  // Computed from the messages read so far.
  [[nodiscard]] std::optional<GroupVerdict> verdict_on(const StateOf& of) const;
  [[nodiscard]] bool is_past(const PublishedParameters& what) const;
  // Returns false if there is nothing more to wait for. What had come by then has been read.
  [[nodiscard]] bool wait(SpinThenPark& spin, const Interrupt& interrupt, Deadline deadline);

  Descriptor peer_;
  const std::uint64_t token_;
  const std::unique_ptr<SharedMemory> memory_;  // the gradient, and its ticket
  const std::size_t bytes_;
  std::shared_ptr<const SharedView> parameters_;  // null: not accepted by the leader yet
  std::optional<GroupVerdict> verdict_;           // the newest
  bool has_received_ = false;
  std::array<std::optional<Announcement>, kMostSummedRanges> announced_;  // the newest of each
  SpinThenPark for_verdict_;
  SpinThenPark for_parameters_;
};

}  // namespace disttf::net
