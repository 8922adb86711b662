#include "roles/trainer/core/dialer.h"

#include <string>
#include <system_error>

namespace disttf::roles {
namespace {

// Hosts of the range answer, but none is its primary: the chief has chosen one that does not
// answer, or has not chosen yet.
class NoPrimary final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "disttf trainer"; }
  [[nodiscard]] std::string message(int /*code*/) const override {
    return "no primary has answered";
  }
};

std::error_code no_primary() {
  static const NoPrimary category;
  return {1, category};
}

// The limit for one host of a range that has two: a host that drops packets must not delay the link
// to the other one.
constexpr std::chrono::seconds kHostAttempt{1};

}  // namespace

void Dialer::begin(std::size_t range, Clock::time_point until, Clock::time_point now) {
  range_ = range;
  until_ = until;
  asks_other_ = false;
  dial(now);
}

void Dialer::dial(Clock::time_point now) {
  const RangeSession& session = context_.ranges[*range_];
  context_.out.add(
      Dial{.range = *range_,
           // Each dial has a number of its own, so that the answer of an abandoned one is
           // recognized.
           .attempt = ++attempt_,
           .host = session.host(),
           .replica = session.replica(),
           .last = session.last_answer(),
           // With one host only, nothing is gained by a shorter limit.
           .until = context_.replicated ? std::min(until_, now + kHostAttempt) : until_});
}

Dialer::Result Dialer::dialed(std::size_t range, std::uint64_t attempt, const DialAnswer& answer,
                              Clock::time_point now) {
  const auto* welcome = std::get_if<net::Welcome>(&answer);
  // A late answer: the caller has moved on, so a link that opened after all is closed.
  if (range_ != range || attempt != attempt_) {
    if (welcome != nullptr) {
      context_.out.add(CloseLink{range});
    }
    return Result::kUnderWay;
  }
  if (welcome != nullptr) {
    return welcomed(context_.ranges[range], *welcome, now);
  }
  if (const auto* refusal = std::get_if<net::Refusal>(&answer)) {
    // Once any ps has welcomed this process, a higher incarnation elsewhere is a later process.
    const bool has_begun = context_.has_connected ||
                           context_.welcomed_by.contains(context_.ranges[range].host().index);
    replaced_by_ = refusal->replaced_by;
    const Result result = refused(context_.failure_of(range, *refusal));
    // A process that no ps has welcomed yet may only have a clock that is behind: it takes a higher
    // incarnation and tries again.
    return replaced_by_ != 0 && !has_begun ? Result::kReplaced : result;
  }
  return failed(std::get<std::error_code>(answer), now);
}

Dialer::Result Dialer::welcomed(RangeSession& session, const net::Welcome& welcome,
                                Clock::time_point now) {
  // Whatever the checks below find, this host has recorded this incarnation.
  context_.welcomed_by.insert(session.host().index);
  const bool says_replicated = welcome.replica_role != net::ReplicaRole::kOnly;
  // Until the configuration is known, the hosts' reports decide.
  if (!context_.is_replication_known) {
    context_.replicated = context_.replicated || says_replicated;
  }
  RangeSession::Fit fit = session.welcomed(welcome, context_.replicated);
  if (fit == RangeSession::Fit::kNoReplicas && !context_.is_replication_known) {
    // This host trains a run without replicas. The hosts that reported replicas hold no state; they
    // have views of a chief that this one has refused.
    context_.replicated = false;
    context_.use_own_hosts();
    fit = session.welcomed(welcome, /*replicated=*/false);
  }
  if (is_of_another_run(fit, welcome)) {
    context_.is_other_configuration = true;
    context_.close(session.index());
    return failed_for_good(no_primary());
  }
  if (context_.is_replication_known && !context_.replicated &&
      welcome.replica_role == net::ReplicaRole::kBackup) {  // which serves no trainer
    context_.close(session.index());
    return refused(Failure(kUsage, "--ps_replicas: 1 is not allowed here: " + session.name() +
                                       " has a part in a run that has replicas"));
  }
  if (fit == RangeSession::Fit::kElsewhere || fit == RangeSession::Fit::kNoReplicas) {
    // The link is of no use: this host serves no trainer of this run.
    context_.out.add(CloseLink{session.index()});
    if (fit == RangeSession::Fit::kNoReplicas) {
      return refused(Failure(kUsage, "--ps_replicas: 2 is not allowed here: " + session.name() +
                                         " trains a run that has none"));
    }
    return failed(no_primary(), now);
  }
  range_.reset();
  return fit == RangeSession::Fit::kOtherState ? Result::kOtherState : Result::kOpen;
}

// A worker computes with a configuration that has replicas, and the ps trains a run that has none;
// or the other way round, where a backup serves no trainer. The worker has to read the
// configuration again.
bool Dialer::is_of_another_run(RangeSession::Fit fit, const net::Welcome& welcome) const {
  if (!context_.is_replication_known || context_.configuration == 0 ||
      // A chief does not adopt a configuration; the ps refuse it instead.
      context_.task.cluster.rank_of(context_.task.self) == 0) {
    return false;
  }
  return fit == RangeSession::Fit::kNoReplicas ||
         (!context_.replicated && welcome.replica_role == net::ReplicaRole::kBackup);
}

Dialer::Result Dialer::failed_for_good(std::error_code error) {
  range_.reset();
  error_ = error;
  return Result::kFailed;
}

Dialer::Result Dialer::failed(std::error_code error, Clock::time_point now) {
  if (context_.replicated) {
    // The other host is tried at once, and first in the next attempt.
    context_.ranges[*range_].try_other_host();
    if (!asks_other_) {
      asks_other_ = true;
      dial(now);
      return Result::kUnderWay;
    }
  }
  return failed_for_good(error);
}

Dialer::Result Dialer::refused(const Failure& failure) {
  range_.reset();
  failure_ = failure;
  return Result::kRefused;
}

}  // namespace disttf::roles
