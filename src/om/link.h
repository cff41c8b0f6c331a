// Linking: models that were compiled apart, each a part of one model, become one Package with one main program. The
// parts' task lists follow one another; a value that one part gives and others take becomes a buffer of the one
// arena; sizes are expressions over the symbols of the whole; equal weights lie there once.
#pragma once

#include <string>
#include <vector>

#include "om/program.h"

namespace ge::om {

struct LinkPart {
  std::string name;
  Package package;                    // its weights are let go once they are taken over; its file may become the linked one's
  std::vector<int> inputs, outputs;   // for each port the number of the value that it takes or gives
};

struct LinkJob {
  std::vector<LinkPart> parts;        // in the order in which they run
  std::vector<int> inputs;            // the model's, as numbers of values; each is taken by some part
  std::vector<int> outputs;           // no number stands twice, and none is an input's
  std::vector<std::string> output_names;
};

struct Linked {
  Package package;
  int64_t shared_weights = 0;         // bytes of weights that stand in several parts and are stored once
};

Result<Linked> link(LinkJob job);

}  // namespace ge::om
