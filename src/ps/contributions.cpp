#include "ps/contributions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::ps {

ContributionsFile::ContributionsFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (!file_.open()) base::throw_io_error("create", path_, errno);
  cut_torn_row();
  if (::lseek(file_.get(), 0, SEEK_END) == 0) write("version,row,rows,member,examples,loss_sum,batches\n");
}

/// Removes a last row without an end, which a full disk or a kill leaves: the next row would continue it.
void ContributionsFile::cut_torn_row() const {
  off_t end = ::lseek(file_.get(), 0, SEEK_END);
  for (char last = 0; end > 0 && ::pread(file_.get(), &last, 1, end - 1) == 1 && last != '\n';) --end;
  if (::ftruncate(file_.get(), end) != 0) base::throw_io_error("write", path_, errno);
}

void ContributionsFile::add(uint64_t version, const std::vector<Contributed>& contributions) {
  std::string text;
  size_t row = 0;
  for (const Contributed& one : contributions) {
    std::string batches;
    for (const data::PassPart& part : one.parts) {
      batches += fmt::format("{}{}:", batches.empty() ? "" : " ", part.pass);
      for (size_t i = 0; i < part.ranges.size(); ++i) {
        batches += fmt::format("{}{}-{}", i == 0 ? "" : "+", part.ranges[i].begin, part.ranges[i].end);
      }
    }
    text += fmt::format("{},{},{},{},{},{},{}\n", version, ++row, contributions.size(), one.member, one.examples,
                        one.loss_sum, batches);
  }
  write(text);
}

void ContributionsFile::write(const std::string& text) const {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t got = ::write(file_.get(), text.data() + written, text.size() - written);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) base::throw_io_error("write", path_, errno);
    written += static_cast<size_t>(got);
  }
}

}  // namespace lockstep::ps
