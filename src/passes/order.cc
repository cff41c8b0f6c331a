#include "passes/order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "ops/op.h"
#include "ops/physical.h"
#include "tensor/limits.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;
using Order = std::vector<NodeId>;

constexpr int64_t kGuess = 64;    // of a size that may change, within its limits
constexpr size_t kWeighed = 32;   // ready nodes that the greedy order looks at
constexpr int64_t kWorth = 32;    // a peak lower by less than this part does not make up for leaving the model's order

size_t at(NodeId n) { return static_cast<size_t>(n.v); }
size_t at(ValueId v) { return static_cast<size_t>(v.v); }

// Which values share memory, and how much of it there is. Memory of the caller and of weights counts nothing.
class Memory {
 public:
  explicit Memory(const ir::Graph& g) : g_(g), root_(g.value_capacity()), bytes_(g.value_capacity(), 0), begin_(g.node_capacity() + 1, 0) {
    std::iota(root_.begin(), root_.end(), 0);
    auto order = g.order();
    share_parts(order);
    share_views(order);
    size_values();
    for (size_t n = 0; n < g.node_capacity(); ++n) {
      touch(NodeId{static_cast<int32_t>(n)});
      begin_[n + 1] = touched_.size();
    }
  }
  // The pieces of memory that a node reads or writes, each once.
  std::span<const int> touched(NodeId n) const { return std::span(touched_).subspan(begin_[at(n)], begin_[at(n) + 1] - begin_[at(n)]); }
  int64_t bytes(int piece) const { return bytes_[static_cast<size_t>(piece)]; }
  int64_t bytes(ValueId v) const { return v ? bytes(piece(v)) : 0; }
  int64_t peak(const Order& order) const;

 private:
  int piece(ValueId v) const {
    int r = v.v;
    while (root_[static_cast<size_t>(r)] != r) r = root_[static_cast<size_t>(r)];
    return r;
  }
  bool apart(ValueId v) const { return root_[at(v)] == v.v && !g_.is_output(v); }

  void share_parts(const Order& order) {
    for (size_t k = order.size(); k-- > 0;) {
      auto& n = g_.node(order[k]);
      auto* op = ops::find(n.op);
      if (!op || !op->place || n.outputs.size() != 1 || !n.outputs[0]) continue;
      std::map<ValueId, int> count;
      for (ValueId in : n.inputs) ++count[in];
      for (size_t i = 0; i < n.inputs.size(); ++i) {
        ValueId in = n.inputs[i];
        if (!in || !g_.value(in).producer || !apart(in) || count[in] > 1) continue;
        auto* maker = ops::find(g_.node(g_.value(in).producer).op);
        if (maker && maker->view) continue;
        if (ops::placed_in(*op, g_, n, static_cast<int>(i), ops::storage_view(g_.value(n.outputs[0])))) root_[at(in)] = piece(n.outputs[0]);
      }
    }
  }

  void share_views(const Order& order) {
    for (NodeId id : order) {
      auto& n = g_.node(id);
      auto* op = ops::find(n.op);
      if (!op || !op->view || n.inputs.empty() || !n.inputs[0]) continue;
      for (size_t i = 0; i < n.outputs.size(); ++i)
        if (ValueId v = n.outputs[i]; v && apart(v) && piece(n.inputs[0]) != v.v && ops::seen_through(*op, g_, n, static_cast<int>(i), ops::storage_view(g_.value(n.inputs[0]))))
          root_[at(v)] = piece(n.inputs[0]);
    }
  }

  void size_values() {
    auto guess = [&](std::string_view name) -> std::optional<int64_t> {
      auto it = g_.symbols.find(name);
      return it == g_.symbols.end() ? kGuess : std::max(it->second.min, std::min(kGuess, it->second.max));
    };
    std::vector<bool> others(bytes_.size());
    for (size_t i = 0; i < bytes_.size(); ++i) {
      ValueId v{static_cast<int32_t>(i)};
      auto& x = g_.value(v);
      auto p = static_cast<size_t>(piece(v));
      if (x.constant || g_.is_input(v) || g_.is_output(v)) others[p] = true;
      if (!x.producer || !x.type.ranked || g_.elements(v)) continue;
      int64_t size = size_of(x.type.dtype);
      for (auto& d : x.type.dims) {
        auto n = d.eval(guess);
        if (!n.ok() || *n < 0 || __builtin_mul_overflow(size, *n, &size)) size = 0;
      }
      bytes_[p] = std::max(bytes_[p], std::min(size, kMaxTensorBytes));   // so that sums of many stay within 64 bits
    }
    for (size_t p = 0; p < bytes_.size(); ++p)
      if (others[p]) bytes_[p] = 0;
  }

  void touch(NodeId id) {
    auto& n = g_.node(id);
    if (n.dead) return;
    for (auto* list : {&n.inputs, &n.outputs})
      for (ValueId v : *list)
        if (v && bytes(v) > 0 && std::find(touched_.begin() + static_cast<std::ptrdiff_t>(begin_[at(id)]), touched_.end(), piece(v)) == touched_.end())
          touched_.push_back(piece(v));
  }

  const ir::Graph& g_;
  std::vector<int> root_;
  std::vector<int64_t> bytes_;   // of the pieces
  std::vector<size_t> begin_;
  std::vector<int> touched_;
};

int64_t Memory::peak(const Order& order) const {
  std::vector<int> last(bytes_.size(), -1);
  for (size_t k = 0; k < order.size(); ++k)
    for (int p : touched(order[k])) last[static_cast<size_t>(p)] = static_cast<int>(k);
  enum : uint8_t { unborn, alive, handed };
  std::vector<uint8_t> state(bytes_.size(), unborn);
  int64_t now = 0, most = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    auto pieces = touched(order[k]);
    auto* op = ops::find(g_.node(order[k]).op);
    bool in_place = op && op->vector_kind == ops::VectorKind::elementwise;
    auto ends = [&](int p) { return last[static_cast<size_t>(p)] == static_cast<int>(k); };
    for (int p : pieces) {
      if (state[static_cast<size_t>(p)] != unborn) continue;
      auto heir_of = std::find_if(pieces.begin(), pieces.end(), [&](int q) {
        return in_place && state[static_cast<size_t>(q)] == alive && ends(q) && bytes(q) == bytes(p);
      });
      if (heir_of != pieces.end()) state[static_cast<size_t>(*heir_of)] = handed;
      else now += bytes(p);
      state[static_cast<size_t>(p)] = alive;
    }
    most = std::max(most, now);
    for (int p : pieces)
      if (ends(p) && state[static_cast<size_t>(p)] == alive) now -= bytes(p);
  }
  return most;
}

// Always the ready node that leaves the least memory behind.
Order greedy(const ir::Graph& g, const Memory& memory, const Order& model) {
  std::vector<int> waiting(g.node_capacity(), 0), place(g.node_capacity(), 0), left(g.value_capacity(), 0);
  std::vector<bool> alive(g.value_capacity());
  std::set<std::pair<int, int32_t>> ready;   // by place in the model's order
  for (size_t k = 0; k < model.size(); ++k) {
    place[at(model[k])] = static_cast<int>(k);
    for (ValueId v : g.node(model[k]).inputs) waiting[at(model[k])] += v && g.value(v).producer;
    for (int p : memory.touched(model[k])) ++left[static_cast<size_t>(p)];
    if (!waiting[at(model[k])]) ready.insert({static_cast<int>(k), model[k].v});
  }
  Order out;
  while (!ready.empty()) {
    auto best = ready.begin();
    std::pair<int64_t, int64_t> best_key{INT64_MAX, 0};
    size_t weighed = 0;
    for (auto it = ready.begin(); it != ready.end() && weighed < kWeighed; ++it, ++weighed) {
      int64_t taken = 0, freed = 0;
      for (int p : memory.touched(NodeId{it->second})) {
        if (!alive[static_cast<size_t>(p)]) taken += memory.bytes(p);
        if (left[static_cast<size_t>(p)] == 1) freed += memory.bytes(p);
      }
      if (std::pair key{taken - freed, taken}; key < best_key) best = it, best_key = key;
    }
    NodeId id{best->second};
    ready.erase(best);
    out.push_back(id);
    for (int p : memory.touched(id)) alive[static_cast<size_t>(p)] = true, --left[static_cast<size_t>(p)];
    for (ValueId v : g.node(id).outputs)
      if (v)
        for (auto& u : g.value(v).uses)
          if (--waiting[at(u.node)] == 0) ready.insert({place[at(u.node)], u.node.v});
  }
  return out;
}

// Depth first from the outputs, operands before their node; the operand that needs most beyond what it leaves comes
// first, as in evaluating an expression with few registers, or they come as the node names them.
Order depth_first(const ir::Graph& g, const Memory& memory, const Order& model, bool by_need) {
  std::vector<int64_t> need(g.node_capacity(), 0);
  auto operands = [&](NodeId id) {
    std::vector<std::tuple<int64_t, int64_t, NodeId>> list;   // need beyond the result, result, maker
    for (ValueId v : g.node(id).inputs)
      if (v && g.value(v).producer) list.push_back({need[at(g.value(v).producer)] - memory.bytes(v), memory.bytes(v), g.value(v).producer});
    if (by_need) std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return std::get<0>(a) > std::get<0>(b); });
    return list;
  };
  for (NodeId id : model) {
    int64_t held = 0, most = 0;
    for (auto& [beyond, bytes, maker] : operands(id)) {
      most = std::max(most, held + beyond + bytes);
      held += bytes;
    }
    for (ValueId v : g.node(id).outputs) held += memory.bytes(v);
    need[at(id)] = std::max(most, held);
  }
  std::vector<bool> seen(g.node_capacity());
  struct Visit {
    NodeId id;
    std::vector<std::tuple<int64_t, int64_t, NodeId>> operands;
    size_t next = 0;
  };
  std::vector<Visit> stack;   // models are deep
  Order out;
  auto push = [&](NodeId id) {
    if (seen[at(id)]) return;
    seen[at(id)] = true;
    stack.push_back({id, operands(id)});
  };
  auto drain = [&] {
    while (!stack.empty()) {
      if (stack.back().next < stack.back().operands.size()) {
        push(std::get<2>(stack.back().operands[stack.back().next++]));
        continue;
      }
      out.push_back(stack.back().id);
      stack.pop_back();
    }
  };
  for (ValueId v : g.outputs)
    if (g.value(v).producer) push(g.value(v).producer), drain();
  for (NodeId id : model) push(id), drain();   // what no output needs
  return out;
}

}  // namespace

int64_t memory_peak(const ir::Graph& g, const std::vector<NodeId>& order) { return Memory(g).peak(order); }

Result<bool> order(ir::Graph& g, PassContext&) {
  const Order model = g.order();
  const Memory memory(g);
  int64_t before = memory.peak(model), least = before - before / kWorth;
  const Order* best = nullptr;
  const Order candidates[] = {greedy(g, memory, model), depth_first(g, memory, model, true), depth_first(g, memory, model, false)};
  for (auto& c : candidates) {
    GE_CHECK(c.size() == model.size(), "an order lost nodes");
    if (int64_t peak = memory.peak(c); peak < least) least = peak, best = &c;
  }
  if (!best) return false;
  for (size_t i = 0; i < best->size(); ++i) g.node((*best)[i]).rank = static_cast<int64_t>(i);
  return true;
}

}  // namespace ge::passes
