// Package -> bytes of an .om file. Same package, same bytes: nothing of time, place or machine enters.
#pragma once

#include <string>
#include <vector>

#include "om/program.h"

namespace ge::om {

// Everything but the weights; the weights follow at the page-aligned offset `weights_at`.
std::vector<std::byte> head_bytes(const Package& p);
std::vector<std::byte> to_bytes(const Package& p);
// Written beside the path and renamed.
Status write(const Package& p, const std::string& path);

}  // namespace ge::om
