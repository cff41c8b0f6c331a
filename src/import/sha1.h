// SHA-1 (FIPS 180-4): only to compare the checksums that ONNX keeps for external data files.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ge::onnx {

std::string sha1_hex(std::span<const std::byte> bytes);  // 40 lower-case digits

}  // namespace ge::onnx
