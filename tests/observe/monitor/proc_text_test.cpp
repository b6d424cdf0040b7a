// Parsing of /proc files from given texts: no text breaks the parsers, and nothing is invented.
#include "observe/monitor/proc_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace lockstep::observe {
namespace {

constexpr const char* kStat =
    "812 (a) b (c) R 42 812 -1 34816 -1 4194304 101 102 103 104 105 106 107 108 20 -5 7 0 99000 1000000 2500 "
    "18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

TEST(ProcText, AProcesssFiguresAreFoundWhateverItsNameHolds) {
  const auto stat = parse_process_stat(kStat);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 42);
  EXPECT_EQ(stat->minor_faults, 101U);
  EXPECT_EQ(stat->waited_minor_faults, 102U);
  EXPECT_EQ(stat->major_faults, 103U);
  EXPECT_EQ(stat->waited_major_faults, 104U);
  EXPECT_EQ(stat->user, 105U);
  EXPECT_EQ(stat->system, 106U);
  EXPECT_EQ(stat->waited_user, 107U);
  EXPECT_EQ(stat->waited_system, 108U);
  EXPECT_EQ(stat->threads, 7U);
  EXPECT_EQ(stat->begun, 99000U);
  EXPECT_EQ(stat->rss_pages, 2500U);
}

TEST(ProcText, APartOfAProcesssFiguresIsNone) {
  const std::string whole = kStat;
  const size_t needed = whole.find(" 2500 ") + 5;
  for (size_t length = 0; length < needed - 4; ++length) {
    EXPECT_FALSE(parse_process_stat(whole.substr(0, length))) << whole.substr(0, length);
  }
  EXPECT_TRUE(parse_process_stat(whole.substr(0, needed)));
}

TEST(ProcText, PeakMemoryAndSwitchesAreInTheStatus) {
  const ProcessStatus status = parse_process_status(
      "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nvoluntary_ctxt_switches:\t12\n"
      "nonvoluntary_ctxt_switches:\t34\n");
  EXPECT_EQ(status.peak_rss_bytes, 2048U * 1024);
  EXPECT_EQ(status.voluntary_switches, 12U);
  EXPECT_EQ(status.involuntary_switches, 34U);
  const ProcessStatus zombie = parse_process_status("Name:\tx\nVmHWM:\tmany kB\nvoluntary_ctxt_switches:\t-3\n");
  EXPECT_FALSE(zombie.peak_rss_bytes);
  EXPECT_FALSE(zombie.voluntary_switches);
  EXPECT_FALSE(zombie.involuntary_switches);
}

TEST(ProcText, DiskBytesOfAProcessAreThoseThatReachedTheDisk) {
  const ProcessIo io = parse_process_io(
      "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n");
  EXPECT_EQ(io.read_bytes, 4096U);
  EXPECT_EQ(io.written_bytes, 8192U);
  EXPECT_FALSE(parse_process_io("").read_bytes);
}

TEST(ProcText, TheNodesTimeIsThatOfAllCores) {
  const auto stat =
      parse_node_stat("cpu  100 20 30 4000 50 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 5 0 0\nctxt 12345\nbtime 1\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->user, 120U);
  EXPECT_EQ(stat->system, 43U);
  EXPECT_EQ(stat->idle, 4000U);
  EXPECT_EQ(stat->iowait, 50U);
  EXPECT_EQ(stat->steal, 8U);
  EXPECT_EQ(stat->all(), 100U + 20 + 30 + 4000 + 50 + 6 + 7 + 8);  // guests' time is part of user time already
  EXPECT_EQ(stat->context_switches, 12345U);
  EXPECT_FALSE(parse_node_stat("cpu0 1 2 3 4\n"));
  EXPECT_FALSE(parse_node_stat("cpu 1 2 x\n"));
}

TEST(ProcText, UsedMemoryIsWhatIsNotToBeHadAnyMore) {
  EXPECT_EQ(parse_memory_used("MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n"), 600U * 1024);
  EXPECT_FALSE(parse_memory_used("MemTotal:       1000 kB\n"));
  EXPECT_FALSE(parse_memory_used("MemTotal:       1000 kB\nMemAvailable:    2000 kB\n"));
}

TEST(ProcText, InterfacesAreReadWithBytesAndPackets) {
  const auto interfaces = parse_interfaces(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
      "compressed\n"
      "    lo: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n"
      "eth0:1:3000 30 0 0 0 0 0 0 4000 40 0 0 0 0 0 0\n"
      "  bad: 1 2 3\n");
  ASSERT_EQ(interfaces.size(), 2U);
  EXPECT_EQ(interfaces[0].name, "lo");
  EXPECT_EQ(interfaces[0].received_bytes, 1000U);
  EXPECT_EQ(interfaces[0].received_packets, 10U);
  EXPECT_EQ(interfaces[0].sent_bytes, 2000U);
  EXPECT_EQ(interfaces[0].sent_packets, 20U);
  EXPECT_EQ(interfaces[1].name, "eth0:1");
  EXPECT_EQ(interfaces[1].sent_bytes, 4000U);
}

TEST(ProcText, OnlyWholeDisksAreAddedUp) {
  const auto disks = parse_disks(
      "   8       0 sda 1 0 10 0 1 0 20 0 0 0 0\n"
      "   8       1 sda1 1 0 9 0 1 0 19 0 0 0 0\n"
      "  65     160 sdaa 1 0 100 0 1 0 200 0 0 0 0\n"
      " 259       0 nvme0n1 1 0 1000 0 1 0 2000 0 0 0 0\n"
      " 259       1 nvme0n1p1 1 0 999 0 1 0 1999 0 0 0 0\n"
      " 259       2 nvme0n10 1 0 10000 0 1 0 20000 0 0 0 0\n"
      " 202       1 xvda1 1 0 100000 0 1 0 200000 0 0 0 0\n"
      "   7       0 loop0 1 0 7 0 1 0 7 0 0 0 0\n"
      "   1       0 ram0 1 0 7 0 1 0 7 0 0 0 0\n"
      " 253       0 dm-0 1 0 7 0 1 0 7 0 0 0 0\n"
      "   9       0 md127 1 0 7 0 1 0 7 0 0 0 0\n");
  ASSERT_TRUE(disks);
  EXPECT_EQ(disks->read, 111110U * 512);
  EXPECT_EQ(disks->written, 222220U * 512);
  EXPECT_FALSE(parse_disks("what is this\n"));
}

TEST(ProcText, GarbageIsNothing) {
  std::mt19937 random(7);
  const std::string bits = "0123456789 \n\t:()-.cpuMemTotalVmHWMxyz\xff";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t length = random() % 200; length > 0; --length) text += bits[random() % bits.size()];
    if (round % 2 == 0) text = std::string(kStat).substr(0, random() % 100) + text;
    static_cast<void>(parse_process_stat(text));
    static_cast<void>(parse_process_status(text));
    static_cast<void>(parse_process_io(text));
    static_cast<void>(parse_node_stat("cpu " + text));
    static_cast<void>(parse_memory_used("MemTotal:" + text));
    static_cast<void>(parse_interfaces("x:" + text));
    static_cast<void>(parse_disks("8 0 " + text));
  }
  EXPECT_FALSE(parse_process_stat("1 (x) R 99999999999999999999 1"));
  EXPECT_FALSE(parse_process_status("VmHWM: 99999999999999999999999 kB\n").peak_rss_bytes);
}

}  // namespace
}  // namespace lockstep::observe
