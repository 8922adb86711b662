// How a gradient reaches the ps where there are other trainers on this host: see host_sum.h.
#include <system_error>
#include <utility>

#include "roles/trainer/shell/ps_client.h"

namespace disttf::roles {

using net::FrameHeader;

std::error_code PsClient::push(const SendRequest& effect) {
  PsLink& link = links_[effect.range];
  if (effect.header.kind == net::FrameKind::kPushPull && host_sum_.is_possible()) {
    if (const auto error = choose_way(effect)) {
      return error;
    }
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
  for (std::size_t index = 0; index < links_.size() && index < GroupWay::kMostRanges; ++index) {
    ranges |= links_[index].is_in_place() ? 0 : HostSum::Ranges{1} << index;
  }
  return ranges;
}

std::error_code PsClient::choose_way(const SendRequest& effect) {
  if (effect.range == 0 && host_sum_.is_to_meet(effect.header)) {
    check_awake(links_.front().settle_until());
    const auto error = meet_neighbours();
    check_awake();
    if (error) {
      return error;
    }
  }
  check_awake(host_sum_.wait_until());
  host_sum_.choose(effect.header, gradients_.current(), remote(),
                   std::exchange(is_sent_ahead_, false));
  check_awake();
  return {};
}

std::error_code PsClient::meet_neighbours() { return host_sum_.meet(links_.front(), remote()); }

void PsClient::push_without_leader() {
  const HostSum::Ranges ranges = host_sum_.lost();
  for (std::size_t index = 0; ranges >> index != 0; ++index) {
    if ((ranges >> index & 1U) != 0 && session_.reads(index)) {
      links_[index].close();
      session_.lost(index, std::make_error_code(std::errc::connection_aborted), awake_.now());
    }
  }
}

}  // namespace disttf::roles
