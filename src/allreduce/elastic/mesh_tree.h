// The template of Mesh that both of its sources use. Internal.
#pragma once

#include "allreduce/elastic/mesh.h"

namespace lockstep::allreduce::elastic {

template <class Action>
void Mesh::with_relay(const Action& action) {
  const base::MutexLock order(order_);
  std::vector<News> all;
  {
    const base::MutexLock lock(mutex_);
    const int parent = relay_.parent();
    action(relay_);
    send_frames();
    all = relay_.take_news();
    if (relay_.parent() != parent) changed_.notify_all();
  }
  for (const News& news : all) {
    if (!stopping_) pass_on(news);
  }
}

}  // namespace lockstep::allreduce::elastic
