// The authority over who may train: one register that holds the latest group of a job. It changes by compare-and-swap
// only, from the latest group to one with a higher number. So of several members that would start the next group, one
// wins, and a single survivor may go on. Who holds the register: the launcher (launcher_register.h), etcd
// (etcd_register.h), or this process (memory_register.h, for tests).
//
// A Register is a client. Questions never wait: the answer comes on the client's one thread, never inside the question,
// within kAnswerWithin. Groups without a thread or network, such as simulations, use a Cell (cell.h) in place of it.
//
// A swap that is `unanswered` may have happened, or may yet happen while its message is under way; a read that shows
// the old group does not rule that out. The way out is to ask the same swap again: it is won if the register holds its
// group already. A read with a number of at least the swap's also tells, as it holds the winner's id.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "authority/group.h"
#include "base/result.h"

namespace lockstep::authority {

/// Longest time from a question to its answer.
constexpr std::chrono::milliseconds kAnswerWithin{5000};

struct Swap {
  Group expected;
  Group next;
};

enum class Outcome : uint8_t {
  present,     ///< of a read: `group` is the register's
  won,         ///< of a swap: the register holds the new group, which is `group`
  lost,        ///< of a swap: `group` is there instead, and never again what the swap expected
  unanswered,  ///< no answer: ask again; see above
  refused      ///< asking again does not help: wrong password, no such authority, or its register is lost
};

struct Answer {
  Outcome outcome = Outcome::unanswered;
  Group group = {};
  base::Failure failure = {};  ///< of unanswered and refused: one line that begins with the authority's name
  bool vacant = false;         ///< the authority knows that no process of `group` lives: any group may follow it
};

class Register {
 public:
  using Done = std::function<void(const Answer& answer)>;

  /// Gives up questions under way: their `done` is not called any more.
  virtual ~Register() = default;

  /// Reads the latest group; number 0 if there was none. Any thread.
  virtual void read(Done done) = 0;
  /// Puts `next` in the place of `expected`, if that is the register's group. `next.number` is higher and
  /// `next.id` is not 0, else it is refused. Any thread.
  virtual void swap(const Group& expected, const Group& next, Done done) = 0;

  /// "etcd at 10.0.0.1:2379, 10.0.0.2:2379", for lines to people. Constant; any thread.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Returns why this process must not count on the register any more, so that its group has to end: the authority may
  /// have forgotten it. Empty: it may. Any thread.
  [[nodiscard]] virtual std::string why_void() const { return {}; }
};

/// Reads and waits for the answer. Not on a Register's own thread.
Answer read_now(Register& from);
/// Swaps and waits for the answer, likewise.
Answer swap_now(Register& from, const Group& expected, const Group& next);

}  // namespace lockstep::authority
