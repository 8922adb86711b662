#include <array>
#include <utility>

#include "math/model.h"
#include "net/transport/answer_slot.h"
#include "net/transport/interrupt.h"
#include "roles/process/tensor_memory.h"
#include "roles/ps/shell/ps_process.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

Arena RangeServer::make_arena(std::size_t floats, std::size_t trainers) {
  answers_.reset();  // its memory is needed for the new one
  answers_ = AnswerMemory::create(floats, trainers);
  return answers_ ? answers_->arena() : Arena{};
}

// Reads gradients of this trainer in its own memory from now on, if that can be had, and says where
// the parameters lie.
asio::awaitable<bool> RangeServer::share(std::size_t rank, const ConnectionPtr& connection,
                                         const FrameHeader& header) {
  std::array<std::byte, net::kSharedOfferBytes> body{};
  if (header.body_size != body.size()) {
    co_return refuse(connection, header, kError, "no offer of shared memory");
  }
  net::SharedOffer offer;
  if (co_await connection->read_body(body, task_.timeouts.silence) || net::decode(body, offer)) {
    co_return false;
  }
  core_.offered(rank, Clock::now());
  process_.do_effects();
  FrameHeader answer{.kind = FrameKind::kShared, .request_id = header.request_id};
  std::vector<std::byte> answer_body;
  const Shard* const shard = core_.shard();
  if (shard != nullptr && !shard->config().elastic() && answers_ &&
      task_.transport != Transport::kTcp) {
    Sharing& sharing = sharing_[rank];
    std::error_code error;  // whatever it is, frames will do
    if (offer.size >= shard->range().end * sizeof(float)) {
      const std::size_t most = most_of_trainer(math::layout_of(shard->config().model).size());
      sharing.gradient = net::SharedView::open(offer, most, error);
    }
    if (sharing.gradient) {
      answer_body = net::encode(answers_->offer());
      answer.sequence = watch_sleep(rank, header.sequence);
      core_.set_shares(rank);
    }
  }
  connection->send(answer, std::move(answer_body));
  co_return true;
}

// From now on this trainer finds answers in the ps's memory, where this says, unless it sleeps, as
// the word says that lies `at` bytes from where its gradients do. 0: it goes on with frames.
std::uint64_t RangeServer::watch_sleep(std::size_t rank, std::uint64_t at) {
  Sharing& sharing = sharing_[rank];
  const std::size_t size = sharing.gradient->bytes().size();
  if (at == 0 || at % net::kSleepWordBytes != 0 || size < net::kSleepWordBytes ||
      at > size - net::kSleepWordBytes) {
    return 0;
  }
  sharing.sleep_word = at;
  return answers_->slot_offset(rank);
}

// The whole vector's gradient lies there.
SharedGradient RangeServer::shared_gradient(std::size_t rank, const FrameHeader& header) const {
  const std::shared_ptr<const net::SharedView>& memory = sharing_[rank].gradient;
  if ((header.flags & net::kFlagShared) == 0 || !memory) {
    return {};
  }
  const auto bytes = memory->bytes();
  return {.vector = {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)},
          .owner = memory};
}

// In memory for a trainer that looks there, with a ring where it sleeps; else as a frame.
void RangeServer::apply(LeaveAnswer& effect) {
  const Sharing& sharing = sharing_[effect.rank];
  net::ServerConnection* const connection = process_.find(effect.to);
  if (connection == nullptr) {
    return;
  }
  effect.header.sequence = answers_->offset_of(effect.parameters);
  if (sharing.sleep_word == 0) {
    connection->send(effect.header);
    return;
  }
  net::leave_answer(answers_->slot(effect.rank), effect.header);
  const auto word = sharing.gradient->bytes().subspan(sharing.sleep_word, net::kSleepWordBytes);
  if (net::is_asleep(net::SleepWordView(word))) {
    connection->send({.kind = FrameKind::kHeartbeat});
  }
}

void RangeServer::apply(const ForgetSharing& effect) { sharing_[effect.rank] = {}; }

}  // namespace disttf::roles
