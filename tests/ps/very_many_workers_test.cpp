// A server with 256 workers.
#include "many_workers.h"

namespace lockstep::ps {
namespace {

TEST(VeryManyWorkers, TwoHundredAndFiftySixNeedNoMoreThreadsThanFour) { testing::serve(256); }

}  // namespace
}  // namespace lockstep::ps
