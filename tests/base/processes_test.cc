#include "base/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace ge {
namespace {

TEST(Processes, EachSaysHowItWent) {
  auto done = in_processes({[] { return ok(); },
                            [] { return Status(node_error(code::kUnsupportedOp, "conv_7", "It cannot be run.")); },
                            [] {
                              raise(SIGKILL);
                              return ok();
                            },
                            []() -> Status { _exit(0); },
                            [] { return ok(); }},
                           2);
  ASSERT_EQ(done.size(), 5u);
  EXPECT_TRUE(done[0].ok());
  EXPECT_TRUE(done[4].ok());
  ASSERT_FALSE(done[1].ok());
  EXPECT_EQ(done[1].error().node, "conv_7");
  EXPECT_EQ(done[1].error().code, code::kUnsupportedOp);
  for (size_t ended : {2, 3}) {
    ASSERT_FALSE(done[ended].ok());
    EXPECT_EQ(done[ended].error().code, code::kInternal);
  }
  EXPECT_NE(done[2].error().message.find("signal 9"), std::string::npos);
  EXPECT_NE(done[2].error().cause.find("memory"), std::string::npos);
}

}  // namespace
}  // namespace ge
