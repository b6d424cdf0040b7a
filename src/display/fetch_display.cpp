#include "display/fetch_display.h"

#include <memory>

#include "terminal/output.h"
#include "terminal/text.h"
#include "terminal/ticker.h"

namespace lockstep::display {
namespace {

class FetchDisplay {
 public:
  explicit FetchDisplay(const terminal::Terminal& terminal) : terminal_(terminal) {}

  void show(const data::FetchProgress& progress) {
    switch (progress.phase) {
      case data::FetchProgress::Phase::kWaiting:
        terminal::print("another process is fetching the data; waiting for it\n");
        break;
      case data::FetchProgress::Phase::kDownloading:
        downloading(progress);
        break;
      case data::FetchProgress::Phase::kDone:
        terminal::print("{}fetched {} from {}\n", terminal_.interactive ? "\r\x1b[K" : "", progress.file, progress.url);
        break;
    }
    terminal::flush_out();
  }

 private:
  void downloading(const data::FetchProgress& progress) {
    if (!terminal_.interactive || !ticker_.due()) return;
    const double total = static_cast<double>(progress.total);
    const double done = progress.total == 0 ? 0 : static_cast<double>(progress.bytes) / total;
    constexpr size_t kColumns = 30;
    terminal::print("\r{}  {}  {}{}\x1b[K", terminal_.bar(done, kColumns), progress.file,
                    terminal::bytes_text(progress.bytes),
                    progress.total == 0 ? "" : " of " + terminal::bytes_text(progress.total));
  }

  terminal::Terminal terminal_;
  terminal::Ticker ticker_{std::chrono::milliseconds(100)};
};

}  // namespace

data::FetchCallback fetch_display(const terminal::Terminal& terminal, bool quiet) {
  if (quiet) return {};
  return [display = std::make_shared<FetchDisplay>(terminal)](const data::FetchProgress& progress) {
    display->show(progress);
  };
}

}  // namespace lockstep::display
