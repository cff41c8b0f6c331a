// What is mapped from files, so that pages can be let go of where, and only where, they come back.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace ge {

void remember_mapping(const std::byte* data, size_t size);
void forget_mapping(const std::byte* data);
// What mmap gave of a file: remembered, and unmapped in the end.
std::shared_ptr<std::byte> mapped_block(void* data, size_t size);

// The same pages of a mapped file appear a second time, at `to`, in place of plain memory that the caller has mapped there;
// false: they are no such pages, or stand askew, and nothing changed.
bool map_again(std::byte* to, std::span<const std::byte> from);

}  // namespace ge
