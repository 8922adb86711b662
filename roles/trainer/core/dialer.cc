#include "roles/trainer/core/dialer.h"

#include <string>
#include <system_error>

namespace disttf::roles {
namespace {

// Hosts of the range answer, but none of them has it: the chief has chosen the one that does not
// answer, or has not said yet which it is.
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

// One host of a range that has two: one that swallows packets must not keep the link from the
// other.
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
           .attempt = ++attempt_,
           .host = session.host(),
           .replica = session.replica(),
           .last = session.last_answer(),
           .until = context_.replicated ? std::min(until_, now + kHostAttempt) : until_});
}

Dialer::Result Dialer::dialed(std::size_t range, std::uint64_t attempt, const DialAnswer& answer,
                              Clock::time_point now) {
  const auto* welcome = std::get_if<net::Welcome>(&answer);
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
    const bool has_begun = context_.has_connected ||
                           context_.welcomed_by.contains(context_.ranges[range].host().index);
    replaced_by_ = refusal->replaced_by;
    const Result result = refused(context_.failure_of(range, *refusal));
    return replaced_by_ != 0 && !has_begun ? Result::kReplaced : result;
  }
  return failed(std::get<std::error_code>(answer), now);
}

Dialer::Result Dialer::welcomed(RangeSession& session, const net::Welcome& welcome,
                                Clock::time_point now) {
  context_.welcomed_by.insert(session.host().index);
  context_.replicated = context_.replicated || welcome.standing != net::Standing::kOnly;
  const RangeSession::Fit fit = session.welcomed(welcome, context_.replicated);
  if (fit == RangeSession::Fit::kElsewhere || fit == RangeSession::Fit::kNoReplicas) {
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

Dialer::Result Dialer::failed(std::error_code error, Clock::time_point now) {
  if (context_.replicated) {
    context_.ranges[*range_].try_other_host();
    if (!asks_other_) {
      asks_other_ = true;
      dial(now);
      return Result::kUnderWay;
    }
  }
  range_.reset();
  error_ = error;
  return Result::kFailed;
}

Dialer::Result Dialer::refused(const Failure& failure) {
  range_.reset();
  failure_ = failure;
  return Result::kRefused;
}

}  // namespace disttf::roles
