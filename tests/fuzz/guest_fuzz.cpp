// The readers of what other programs write must answer any bytes with a value or a typed error: logs of monitors, CSV
// files, printed lines, event files. The first byte chooses the reader.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "guest/csv_columns.h"
#include "guest/figures.h"
#include "guest/usage_log.h"
#include "lockstep/error.h"
#include "observe/tensorboard/crc32c.h"
#include "observe/tensorboard/event_reader.h"

namespace {

/// Frames bytes as an event's record, so that the fuzzer gets behind the checksums.
std::string framed(const std::string& data) {
  namespace observe = lockstep::observe;
  const uint64_t length = data.size();
  std::string head(sizeof length, '\0');
  std::memcpy(head.data(), &length, sizeof length);
  const auto sum = [](const std::string& bytes) {
    const uint32_t crc =
        observe::masked(observe::crc32c({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    std::string text(sizeof crc, '\0');
    std::memcpy(text.data(), &crc, sizeof crc);
    return text;
  };
  return head + sum(head) + data + sum(data);
}

void read_events(const std::string& text, bool frame) {
  const std::string bytes = frame ? framed(text) : text;
  (void)lockstep::observe::read_scalars({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "loss",
                                        "events");
}

/// The first line is a regular expression, the others are printed by a program.
void read_output(const std::string& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  lockstep::guest::OutputReader reader({lockstep::guest::parse_source("loss=output:" + text.substr(0, end))});
  for (size_t at = end; at < text.size();) {
    const size_t next = std::min(text.find('\n', at + 1), text.size());
    reader.read(text.substr(at, next - at), 1);
    at = next;
  }
  (void)lockstep::guest::join(reader.points());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace guest = lockstep::guest;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    switch (data[0] % 5) {
      case 0:
        (void)guest::monitor_csv(guest::parse_usage_log(text, "log", data[0] < 128 ? 0 : 1));
        break;
      case 1:
        (void)guest::parse_columns(text, {"epoch", "loss"}, "csv");
        break;
      case 2:
        read_output(text);
        break;
      default:
        read_events(text, data[0] % 5 == 3);
    }
  } catch (const lockstep::DataError&) {
  } catch (const lockstep::UsageError&) {
  }
  return 0;
}
