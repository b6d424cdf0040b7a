#include "observe/trace/role_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/host.h"
#include "lockstep/error.h"

namespace lockstep::observe {
namespace {

using base::TraceEvent;
using nlohmann::ordered_json;

constexpr size_t kBuffer = size_t{1} << 20;
constexpr double kMicrosecond = 1e3;  ///< in nanoseconds

std::string quoted(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// Formats microseconds with all their digits.
std::string time(int64_t nanoseconds) {
  const int64_t rest = nanoseconds < 0 ? -nanoseconds : nanoseconds;
  return fmt::format("{}{}.{:03}", nanoseconds < 0 ? "-" : "", rest / 1000, rest % 1000);
}

/// Writes lines of events, with a comma before each except the first.
class Lines {
 public:
  explicit Lines(base::WholeFile& file) : file_(file) { text_.reserve(kBuffer); }

  void add(std::string_view line) {
    if (!first_) text_ += ",\n";
    first_ = false;
    text_ += line;
    if (text_.size() > kBuffer / 2) flush();
  }
  void flush() {
    file_.write(text_);
    text_.clear();
  }

 private:
  base::WholeFile& file_;
  std::string text_;
  bool first_ = true;
};

std::string arguments(const TraceEvent& event) {
  const base::TraceLabel& label = *event.label;
  std::string text;
  for (const auto& [name, value] : label.details) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", quoted(name), quoted(value));
  }
  if (!label.number.empty()) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", quoted(label.number), event.number);
  }
  return text.empty() ? "" : fmt::format(",\"args\":{{{}}}", text);
}

std::string line_of(const TraceEvent& event, size_t track) {
  const base::TraceLabel& label = *event.label;
  const std::string place = fmt::format("\"pid\":1,\"tid\":{},\"ts\":{},\"name\":{},\"cat\":{}", track,
                                        time(event.begin), quoted(label.name), quoted(label.category));
  switch (event.kind) {
    case TraceEvent::Kind::span:
      return fmt::format("{{\"ph\":\"X\",{},\"dur\":{}{}}}", place, time(event.end - event.begin), arguments(event));
    case TraceEvent::Kind::flow_begin:
      return fmt::format("{{\"ph\":\"s\",{},\"id\":\"{:016x}\"}}", place, event.number);
    case TraceEvent::Kind::flow_end:
      break;
  }
  return fmt::format("{{\"ph\":\"f\",\"bp\":\"e\",{},\"id\":\"{:016x}\"}}", place, event.number);
}

std::string metadata(size_t track, std::string_view what, const std::string& name) {
  return fmt::format("{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"{}\",\"args\":{{\"name\":{}}}}}", track, what,
                     quoted(name));
}

/// Returns the description of the file in its first line.
ordered_json about(const base::Tracer& tracer, const std::string& role, const std::string& host) {
  ordered_json other;
  other["role"] = role;
  other["host"] = host;
  other["began_ns"] = tracer.made_epoch();
  other["ended_ns"] = tracer.since_epoch(base::Tracer::Clock::now());
  other["clock_offset_us"] = 0.0;
  ordered_json clocks = ordered_json::object();
  for (const auto& [name, offset] : tracer.offsets()) {
    clocks[name] = static_cast<double>(offset) / kMicrosecond;
    // With several servers, the first one is the reference for all.
    if (!other.contains("clock_reference") || name == "ps:0") {
      other["clock_reference"] = name;
      other["clock_offset_us"] = clocks[name];
    }
  }
  other["clocks"] = clocks;
  uint64_t dropped = 0;
  for (const base::TraceTrack* track : tracer.tracks()) dropped += track->dropped();
  other["dropped"] = dropped;
  return other;
}

}  // namespace

void write_trace(const std::string& path, const base::Tracer& tracer, const std::string& role) {
  const std::string host = base::host_name();
  const ordered_json other = about(tracer, role, host);
  base::WholeFile file(path);
  file.write(fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[\n",
                         other.dump(-1, ' ', false, ordered_json::error_handler_t::replace)));
  Lines lines(file);
  lines.add(metadata(0, "process_name", host.empty() ? role : role + " @ " + host));
  const std::vector<const base::TraceTrack*> tracks = tracer.tracks();
  for (size_t i = 0; i < tracks.size(); ++i) {
    const size_t events = tracks[i]->size();
    if (events == 0) continue;
    lines.add(metadata(i + 1, "thread_name", tracks[i]->name()));
    for (size_t k = 0; k < events; ++k) lines.add(line_of((*tracks[i])[k], i + 1));
  }
  lines.flush();
  file.write("\n]}\n");
  file.commit();
}

std::string RoleTrace::write(const std::string& path) const {
  try {
    write_trace(path, tracer_, role_);
  } catch (const Error& error) {
    return fmt::format("no trace: {}", error.what());
  }
  return "";
}

}  // namespace lockstep::observe
