// What the trainers of a host group (net/wire/cluster.h) say to each other, so that one of them,
// the leader, can push the sum of all their gradients, and the others, its members, read the
// parameters that it is answered with where it leaves them. When they do that, and what the ps are
// told, is roles/trainer/shell/host_sum.h's to decide.
//
// The leader listens at a rendezvous (net/transport/handover.h); where that is, the ps tells its
// members, who are not on this host if they do not find it. A member connects and hands over memory
// that it copies its gradients to; the leader hands over, in the same way, memory that it copies
// parameters to. Each reads the other's, and writes its own alone. What has been left there is said
// over the socket, so whoever waits can sleep, and one that has died is known at once.
//
//   leader                                     member
//   gather(name) ............................. offer(name, gradient): copies it, says so, waits
//   reads gradient(i), then stands()           |
//   tell({name, ranges}) ..................... returns
//   publish(range, name, parameters) ......... take(range, name, into)
//
// Whoever waits does so until a deadline. A member that has not been answered by then, or has been
// told what makes no sense, leaves for good, and the leader sees that; a leader goes on without
// those who are late. A member may then offer something else to somebody else, while the leader,
// which may have been frozen, still reads: what it reads is torn, and stands() says so.
//
// Not thread-safe: the computing thread owns either.
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

#include "net/transport/descriptor.h"
#include "net/transport/eager_wait.h"
#include "net/transport/handover.h"
#include "net/transport/interrupt.h"
#include "net/transport/shared_memory.h"
#include "net/wire/generation.h"

namespace disttf::net {

// Which gradient: that of the state that is `step` of `generation`. Later states have higher ones.
struct StateOf {
  Generation generation = 0;
  std::uint64_t step = 0;
  friend bool operator==(const StateOf&, const StateOf&) = default;
};

// Which parameters: of a ps's range, after so many steps. The run's result may differ from those of
// its last step, as it does with averages. REQUIRES of who takes them: range < kMostSummedRanges.
struct PublishedParameters {
  std::size_t range = 0;
  StateOf of;
  bool is_result = false;
};

// Where members find their leader, as it is told by way of a ps. 0, 0: nowhere.
struct Introduction {
  std::uint64_t rendezvous = 0;
  std::uint64_t token = 0;
  friend bool operator==(const Introduction&, const Introduction&) = default;
};

// What becomes of the gradients of a step.
struct GroupVerdict {
  StateOf of;
  // A bit for each ps that is sent the sum of the group: bit i for ps i. 0: each pushes its own.
  std::uint64_t summed = 0;
  friend bool operator==(const GroupVerdict&, const GroupVerdict&) = default;
};
// Further ps are sent each gradient.
inline constexpr std::size_t kMostSummedRanges = 64;

struct GroupMessage;  // between the two

class GroupLeader {
 public:
  // For vectors of so many bytes. nullptr, and `error` set, where the system has no memory to
  // share, or no such sockets.
  [[nodiscard]] static std::unique_ptr<GroupLeader> open(std::size_t bytes, std::size_t members,
                                                         std::error_code& error);

  [[nodiscard]] Introduction introduction() const noexcept;
  [[nodiscard]] std::size_t present() const noexcept;  // members that are here

  // Waits until each member has offered its gradient of that state. False: not all of them were
  // here before this call (who has come meanwhile counts from the next one on), one has gone, or
  // has offered another, or the deadline has passed, or the interrupt is set.
  [[nodiscard]] bool gather(const StateOf& of, const Interrupt& interrupt, Deadline deadline);
  // After one that has returned true: what that member has offered, [bytes]. Members are numbered
  // from 0, in the order of their ranks.
  [[nodiscard]] std::span<const std::byte> gradient(std::size_t member) const;
  // What gradient() returned has stayed as it was since: to be asked once all have been read.
  [[nodiscard]] bool stands() const noexcept;
  // All members that are here. One that cannot be told at once, as it does not read, has gone.
  void tell(const GroupVerdict& verdict);
  // Parameters of a ps's range, which begin so many bytes from the vector's: copies them to where
  // members read them, and tells these.
  void beat();  // members hear that the leader runs
  void publish(const PublishedParameters& what, std::size_t offset,
               std::span<const std::byte> parameters);

 private:
  struct Member {
    // The state that it has offered, and not been told of.
    [[nodiscard]] std::optional<StateOf> waits_for() const;

    Descriptor peer;
    // Is kept until the next gather(), even if the member goes before.
    std::shared_ptr<const SharedView> memory;
    std::optional<StateOf> offered{};  // the newest
    std::uint64_t ticket = 0;          // of that
    std::optional<StateOf> told{};
  };
  // Has yet to say which member it is.
  struct Newcomer {
    Descriptor peer;
    std::shared_ptr<const SharedView> memory;
  };
  GroupLeader(std::unique_ptr<Rendezvous> rendezvous, std::uint64_t token,
              std::unique_ptr<SharedMemory> memory, std::size_t bytes, std::size_t members);

  // True: somebody is a member now who was not before.
  [[nodiscard]] bool admit();
  [[nodiscard]] bool settle();
  // False: it has not said who it is.
  [[nodiscard]] bool settle(Newcomer& newcomer, bool& has_joined);
  static void hear(Member& member);
  void tell_all(const GroupMessage& message);
  [[nodiscard]] bool have_all_offered(const StateOf& of) const;
  [[nodiscard]] bool may_all_offer(const StateOf& of) const;
  [[nodiscard]] bool wait(const Interrupt& interrupt, Deadline deadline);

  const std::unique_ptr<Rendezvous> rendezvous_;
  const std::uint64_t token_;
  const std::unique_ptr<SharedMemory> memory_;  // the parameters, and a sequence word a range
  const std::size_t bytes_;
  std::vector<Member> members_;
  std::vector<Newcomer> newcomers_;  // the oldest first, as many as there are members at most
  std::vector<pollfd> waited_for_;
  EagerWait eager_;
};

class GroupMember {
 public:
  // Connects to the leader. `member`: which one, numbered as the leader's are. nullptr, and `error`
  // set: there is none of this user on this host, or it does not take anybody any more, or the
  // system has no memory to share. A leader that looks just then may not let it in: closed soon
  // after, it may meet again.
  [[nodiscard]] static std::unique_ptr<GroupMember> meet(const Introduction& leader,
                                                         std::size_t bytes, std::size_t member,
                                                         std::error_code& error);

  // It has not left, and as far as is known neither has the leader.
  [[nodiscard]] bool is_open() const noexcept;
  // The leader expects offers of it. Does not wait.
  [[nodiscard]] bool is_taken_in();
  // Becomes readable when there is something to be read, or the leader has gone; -1: closed.
  [[nodiscard]] int fd() const noexcept;
  // Reads what has come. False: the leader has gone; closed.
  bool look();

  // Copies the gradient, [bytes], and waits for what becomes of it. nullopt: it was not said until
  // the deadline, or the interrupt is set, or the leader has gone: closed. Where the leader has
  // said already what becomes of a newer state's, there is no sum of this one's. REQUIRES:
  // is_taken_in().
  [[nodiscard]] std::optional<GroupVerdict> offer(const StateOf& of,
                                                  std::span<const std::byte> gradient,
                                                  const Interrupt& interrupt, Deadline deadline);
  // Waits for the parameters of that range and state, and copies them. False as above, or others
  // have taken their place; closed. REQUIRES: range < kMostSummedRanges.
  [[nodiscard]] bool take(const PublishedParameters& what, std::size_t offset,
                          std::span<std::byte> into, const Interrupt& interrupt, Deadline deadline);
  // As far as has been read: parameters of a later state have been left. REQUIRES: as above.
  [[nodiscard]] bool has_newer(std::size_t range, const StateOf& of) const;
  // Something has been read since this was last asked.
  [[nodiscard]] bool has_heard() noexcept { return std::exchange(has_heard_, false); }
  // Leaves, and keeps what has been read.
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
  // False: it makes no sense.
  [[nodiscard]] bool hear(const GroupMessage& message);
  // Of what has been read.
  [[nodiscard]] std::optional<GroupVerdict> verdict_on(const StateOf& of) const;
  [[nodiscard]] bool is_past(const PublishedParameters& what) const;
  // False: there is nothing more to wait for. What had come by then has been read.
  [[nodiscard]] bool wait(EagerWait& eager, const Interrupt& interrupt, Deadline deadline);

  Descriptor peer_;
  const std::uint64_t token_;
  const std::unique_ptr<SharedMemory> memory_;  // the gradient, and its ticket
  const std::size_t bytes_;
  std::shared_ptr<const SharedView> parameters_;  // null: has not been taken in
  std::optional<GroupVerdict> verdict_;           // the newest
  bool has_heard_ = false;
  std::array<std::optional<Announcement>, kMostSummedRanges> announced_;  // the newest of each
  EagerWait for_verdict_;
  EagerWait for_parameters_;
};

}  // namespace disttf::net
