#include "authority/launcher_register.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "authority/launcher_lines.h"

namespace lockstep::authority {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLookMilliseconds = 100;  ///< between checks for the end
constexpr size_t kLongestLine = size_t{1} << 20U;

}  // namespace

LauncherRegister::LauncherRegister(std::function<void(const std::string&)> tell, int input)
    : tell_(std::move(tell)), input_(input), thread_([this](const Question& question) { return answer(question); }) {}

LauncherRegister::~LauncherRegister() {
  thread_.end();
  ending_ = true;
}

Answer LauncherRegister::answer(const Question& question) {
  const Clock::time_point until = Clock::now() + kAnswerWithin * 9 / 10;
  const uint64_t number = ++asked_;
  tell_(question_line({number, question.swap}));
  while (const std::optional<std::string> line = next_line(until)) {
    std::optional<LauncherAnswer> given = parse_answer(*line);
    if (!given || given->number != number) continue;
    if (given->answer.outcome == Outcome::refused) {
      given->answer.failure = {.kind = base::FailureKind::usage, .text = name_ + " refuses the group"};
    }
    return given->answer;
  }
  if (gone_) return {Outcome::refused, {}, {.kind = base::FailureKind::gone, .text = name_ + " is gone"}, false};
  return {Outcome::unanswered, {}, {.kind = base::FailureKind::timeout, .text = name_ + " does not answer"}, false};
}

std::optional<std::string> LauncherRegister::next_line(Clock::time_point until) {
  while (!ending_) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (gone_ || Clock::now() >= until) return std::nullopt;
    pollfd input{input_, POLLIN, 0};
    if (poll(&input, 1, kLookMilliseconds) <= 0) continue;
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(input_, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    gone_ = count <= 0;
    if (count > 0) unread_.append(bytes.data(), static_cast<size_t>(count));
    if (unread_.size() > kLongestLine) unread_.clear();
  }
  return std::nullopt;
}

}  // namespace lockstep::authority
