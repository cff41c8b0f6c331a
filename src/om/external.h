// Weights outside of the .om file, in files beside it. The metadata name and sum them; in memory they lie one
// after another, so that a weight is found by its offset as in a weights section.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "om/program.h"

namespace ge::om {

inline constexpr const char* kWeightFolder = "weight";

// The metadata with weight_files and the weights' offsets among them, and what each file holds.
struct Apart {
  ModelT model;
  std::vector<std::span<const std::byte>> contents;
};
// Names: weight/weight_<SHA-256> for one file each, so that models share equal weights; or the .om file's
// name without its suffix and _weight_combined.
Result<Apart> set_apart(const Package& p, const std::string& om_name);

// Maps the files that p.model names; folder absent: an error that says why.
Status open_weight_files(Package& p, const std::optional<std::string>& folder, bool check_sums);

}  // namespace ge::om
