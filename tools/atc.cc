// atc: ATC's command line. Argument parsing only; messages and exit status are ATC's.
#include <cstdio>
#include <string>
#include <vector>

#include "driver/atc.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  ge::AtcOutcome outcome = ge::atc(arguments);
  std::fputs(outcome.out.c_str(), stdout);
  std::fputs(outcome.err.c_str(), stderr);
  return outcome.status;
}
