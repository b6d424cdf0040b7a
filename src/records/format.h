// Numbers as text for sentences about runs; "?" if the number is not known. Free functions; any thread.
#pragma once

#include <string>

namespace lockstep::records {

/// 0.716 -> "72 %", 0.0431 -> "4.3 %".
std::string share_text(double share);
/// CPU in the monitor's unit, percent of a core: 97.3 -> "97 %".
std::string percent_text(double percent);
/// 0.00124 -> "1.24 ms", 0.0000853 -> "85.3 us", 1.5 -> "1.5 s".
std::string time_text(double seconds);
/// 3.1e8 -> "310 MB".
std::string amount_text(double bytes);
/// 3.1e8 -> "310 MB/s".
std::string speed_text(double bytes_per_second);
/// 12345 -> "12,345".
std::string count_text(double count);
/// 2.43 -> "2.4 times".
std::string times_text(double factor);

}  // namespace lockstep::records
