#include "wire/refusal.h"

#include <memory>
#include <span>

#include "base/limits.h"

namespace lockstep::wire {

RefusalReason refusal_for(const std::exception& error) {
  RefusalReason refusal{RefusalKind::other, base::error_text(error)};
  if (const auto* refused = dynamic_cast<const RefusedError*>(&error)) {
    refusal.kind = refused->kind();
  } else if (dynamic_cast<const IoError*>(&error) != nullptr || base::is_limit(error)) {
    refusal.kind = RefusalKind::failed;
  } else if (dynamic_cast<const Error*>(&error) != nullptr) {
    refusal.kind = RefusalKind::message;
  }
  return refusal;
}

base::Status send_refusal(transport::Stream& stream, transport::Header header, const RefusalReason& refusal) {
  header.extra = static_cast<uint64_t>(refusal.kind);
  const auto text = std::make_shared<const std::string>(refusal.text);
  return stream.write(header, std::as_bytes(std::span(*text)), text);
}

RefusalReason read_refusal(const transport::Frame& frame) {
  const bool known = frame.header.extra <= static_cast<uint64_t>(RefusalKind::failed);
  return {known ? static_cast<RefusalKind>(frame.header.extra) : RefusalKind::other, frame.text()};
}

}  // namespace lockstep::wire
