// A newer process of a trainer replaces the older one at all ranges; one of the chief may be a
// candidate first.
#include <cstdint>

#include "net/wire/handshake.h"
#include "roles/ps/core/ps_core.h"

namespace disttf::roles {

void PsCore::fence_replaced(Clock::time_point now) {
  if (!order_.take_replacement()) {
    return;
  }
  // Connections are only marked here. Their readers call closed(), which erases them.
  for (auto&& [id, connection] : connections_) {
    if (connection.is_fenced || !is_replaced(connection.hello)) {
      continue;
    }
    connection.is_fenced = true;
    if (connection.hello.purpose == net::ChannelPurpose::kView) {
      // Refused with a reason, so that its chief does not count this host as lost and act on that.
      const net::TaskId& chief = connection.hello.from;
      out_.add(RefuseConnection{.id = id,
                                .exit_code = static_cast<std::uint8_t>(kLostPeers),
                                .sentence = replaced_text(chief),
                                .replaced_by = order_.newest(task_.cluster.rank_of(chief))});
    } else {
      out_.add(CloseConnection{id});  // at once: the memory that it is being sent from may change
    }
  }
  let_candidate_in(now);
}

bool PsCore::is_candidate(const net::Hello& hello) const {
  // A chief opens its other channels after it has published.
  const bool is_first =
      hello.purpose == net::ChannelPurpose::kStep || hello.purpose == net::ChannelPurpose::kControl;
  return is_first && task_.cluster.is_chief(hello.from) && ranges_.front()->host().is_led() &&
         hello.incarnation > order_.newest(0);
}

void PsCore::replace_lost_chief(Clock::time_point now) {
  if (ranges_.front()->host().trainers[0].alive()) {
    return;
  }
  for (auto&& [id, connection] : connections_) {
    if (connection.is_candidate) {
      order_.learn(0, connection.hello.incarnation);
    }
  }
  fence_replaced(now);
}

void PsCore::let_candidate_in(Clock::time_point now) {
  for (auto&& [id, connection] : connections_) {
    if (!connection.is_candidate || connection.hello.incarnation != order_.newest(0)) {
      continue;
    }
    connection.is_candidate = false;
    if (connection.hello.purpose == net::ChannelPurpose::kControl) {
      for (const auto& range : ranges_) {
        range->attach_control(id, connection.hello, now);
      }
    } else {
      ranges_[connection.hello.replica]->let_in(id, now);
    }
  }
}

}  // namespace disttf::roles
