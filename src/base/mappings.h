// What is mapped from files, so that pages can be let go of where, and only where, they come back.
#pragma once

#include <cstddef>

namespace ge {

void remember_mapping(const std::byte* data, size_t size);
void forget_mapping(const std::byte* data);

}  // namespace ge
