// Kernel: one way to compute one task. Kernels see strided views and plain numbers; they know no graph,
// allocate nothing while running, and never write an input. A task is cut into chunks; the cutting
// depends on sizes alone, so results are the same for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/view.h"

namespace ge::kernels {

enum class Unit : uint8_t { cube = 0, vector = 1, host = 2 };

// One task's operands. During prepare() the views carry sizes, strides and types, and null data.
struct Call {
  std::span<const View> in, out;     // an absent optional input has dtype none
  std::span<const int64_t> ints;     // parameters, in the order that the kernel's comment gives
  std::span<const double> floats;
  std::span<const std::byte> blob;   // e.g. a vector program
  // Work::state of this task; when it is prepared, what it was for other sizes (parts of it may be shared), or null.
  const void* state = nullptr;
  std::byte* shared = nullptr;       // Work::shared bytes, 64-byte aligned, one for all workers
  std::byte* scratch = nullptr;      // Work::scratch bytes, 64-byte aligned, the worker's own
};

// What prepare() says of a task of these sizes. Depends on the Call alone, never on the thread count.
struct Work {
  int64_t chunks = 1;                  // 0: nothing to do
  int64_t scratch = 0;                 // bytes for each worker
  int64_t shared = 0;                  // bytes for the task, alive only while it runs
  std::shared_ptr<const void> state;   // made once for each Binding, read by every chunk
  // What it writes is the same for all sizes and worth keeping: where its inputs are weights, it stays in the arena, and
  // later runs leave the task out. Said or not said for all sizes alike.
  bool once = false;
};

struct Kernel {
  std::string_view name;               // stable: it stands in .om files
  Unit unit = Unit::vector;
  // Checks arity, types, ranks and parameters (a damaged .om must get an error here, never a crash in
  // run), and says how the task is cut. Total: any Call is answered.
  Result<Work> (*prepare)(const Call&) = nullptr;
  // Runs one chunk, 0 <= chunk < Work::chunks. Errors are for data only (an index out of range).
  Status (*run)(const Call&, int64_t chunk) = nullptr;
  // Bit i: output 0 may be the same memory as input i when sizes and strides are equal and no input whose
  // bit is not set lies in that memory.
  uint32_t in_place = 0;
  // Floating-point operations of a Call that prepare() accepted, as its definition counts them (a faster
  // algorithm may do fewer). For reports; null: none worth counting.
  double (*operations)(const Call&) = nullptr;
  // Run by the runtime itself, which alone knows programs and values that are no tensors: control flow and
  // sequences. prepare() then gives no chunks, and operands may lack sizes.
  bool executor = false;
};

// Chunks and scratch are cut with these.
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round64(int64_t bytes) { return ceil_div(bytes, 64) * 64; }

// The table of all kernels. Registration happens before main(); lookup is read-only afterwards.
struct Register {
  explicit Register(const Kernel& k);
};
const Kernel* find(std::string_view name);
std::vector<const Kernel*> all();  // sorted by name

}  // namespace ge::kernels
