// How a gradient reaches the ps if other trainers run on this host: see host_sum.h.
#include <system_error>
#include <utility>

#include "roles/trainer/shell/ps_client.h"

namespace disttf::roles {

using net::FrameHeader;

std::error_code PsClient::push(const SendRequest& effect) {
  PsLink& link = links_[effect.range];
  if (effect.header.kind == net::FrameKind::kPushPull && host_sum_.is_possible()) {
    choose_way(effect.header);
    const GroupWay& way = host_sum_.way();
    if (way.is_summed(effect.range)) {
      const FrameHeader header = way.marked(effect.header, effect.range);
      return way.leads() ? link.push(header, part_of(host_sum_.sum(), effect.range))
                         : link.send(header, {});
    }
  }
  return link.push(effect.header, part_of(gradients_.current(), effect.range));
}

HostSum::Ranges PsClient::remote() const noexcept {
  HostSum::Ranges ranges = 0;
  // Ps beyond the 64th receive each gradient separately.
  for (std::size_t index = 0; index < links_.size() && index < GroupWay::kMostRanges; ++index) {
    ranges |= links_[index].is_in_place() ? 0 : HostSum::Ranges{1} << index;
  }
  return ranges;
}

void PsClient::choose_way(const FrameHeader& push) {
  check_awake(host_sum_.wait_until());
  // A push of which a part has been sent cannot become a sum any more.
  host_sum_.choose(push, gradients_.current(), remote(), std::exchange(is_sent_ahead_, false));
  check_awake();
}

// To be called before any of the gradient is sent ahead.
void PsClient::discover_neighbours_again() {
  const PsLink& link = links_.front();
  if (!link.is_open() || !link.is_settled() || link.has_frame() || !host_sum_.is_discovery_due()) {
    return;
  }
  check_awake(link.settle_until());
  static_cast<void>(discover_neighbours());  // an error here recurs when the gradient is pushed
  check_awake();
}

std::error_code PsClient::discover_neighbours() {
  return host_sum_.discover_peers(links_.front(), remote());
}

void PsClient::push_without_leader() {
  const HostSum::Ranges ranges = host_sum_.lost(awake_.now());
  for (std::size_t index = 0; index < links_.size() && index < GroupWay::kMostRanges; ++index) {
    // Closed and lost: the push is repeated over a new connection, with a body this time.
    if ((ranges >> index & 1U) != 0 && session_.reads(index)) {
      links_[index].close();
      session_.lost(index, std::make_error_code(std::errc::connection_aborted), awake_.now());
    }
  }
}

}  // namespace disttf::roles
