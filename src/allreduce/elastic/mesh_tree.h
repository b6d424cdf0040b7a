// The templates of Mesh that both of its sources use. Internal.
#pragma once

#include <system_error>

#include "allreduce/elastic/mesh.h"
#include "base/limits.h"

namespace lockstep::allreduce::elastic {

template <class Work>
void Mesh::run_thread(const Work& work) {
  try {
    work();
  } catch (const std::system_error& error) {
    owner_.on_failed(base::error_text(error));
  }
}

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
