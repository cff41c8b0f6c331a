#include "om/link.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "kernels/kernel.h"
#include "om/link_weights.h"
#include "tensor/dtype.h"

namespace ge::om {
namespace {

// The expressions of the linked program; equal ones share a node.
class Expressions {
 public:
  explicit Expressions(ProgramT& p) : p_(p) {}
  int add(ExprOp op, int64_t imm, int a = 0, int b = 0, int c = 0) {
    auto [it, fresh] = known_.emplace(std::tuple(static_cast<int>(op), imm, a, b, c), static_cast<int>(p_.exprs.size()));
    if (fresh) p_.exprs.push_back(Expr(imm, a, b, c, op));
    return it->second;
  }
  int product(const std::vector<int>& factors, int64_t element) {
    int e = add(ExprOp::constant, element);
    for (int f : factors) e = add(ExprOp::mul, 0, f, e);
    return e;
  }

 private:
  ProgramT& p_;
  std::map<std::tuple<int, int64_t, int, int, int>, int> known_;
};

// A value of the whole model: its sizes as expressions of the linked program, and where it lies.
struct Crossing {
  std::vector<int> dims;
  bool sized = false;       // a tensor of known rank
  int buffer = -1;
  std::string name;
};

class Linker {
 public:
  explicit Linker(LinkJob job) : job_(std::move(job)), exprs_(main_) {}

  Result<Linked> run() {
    Linked out;
    auto& model = out.package.model;
    GE_RETURN_IF_ERROR(weights_.plan(job_.parts, model.texts));
    programs_.push_back(nullptr);
    GE_RETURN_IF_ERROR(inputs());
    for (size_t i = 0; i < job_.outputs.size(); ++i) output_at_[job_.outputs[i]] = i;
    main_.outputs.resize(job_.outputs.size());
    for (size_t i = 0; i < job_.parts.size(); ++i) GE_RETURN_IF_ERROR(add(i).context("part " + job_.parts[i].name));
    for (size_t i = 0; i < main_.outputs.size(); ++i)
      if (!main_.outputs[i]) return broken(format("no part gives output '{}'", job_.output_names[i]));
    if (main_.segments.empty()) main_.segments.push_back(std::make_unique<SegmentT>());
    lifetimes();
    programs_[0] = std::make_unique<ProgramT>(std::move(main_));
    model.programs = std::move(programs_);
    model.kernels = std::move(kernels_);
    auto entry = std::make_unique<EntryT>();
    entry->name = "main";
    model.entries.push_back(std::move(entry));
    GE_RETURN_IF_ERROR(weights_.join(job_.parts, out.package));
    out.shared_weights = weights_.shared();
    return out;
  }

 private:
  // A part, while it is added.
  struct Maps {
    size_t part;
    std::vector<int> expr, buffer, kernel;
    std::vector<int> symbol;    // of a symbol that the part's tasks decide: its number in the linked program
    int program0;               // its sub-program i becomes program0 + i
    int task0;
  };

  static Error broken(std::string what) {
    return error(code::kInternal, format("The parts do not fit together: {}.", what), "", "compile without --split, and report this");
  }
  const ProgramT& part_main(size_t i) const { return *job_.parts[i].package.model.programs[0]; }

  // The model's inputs, each as the first part that takes it has it.
  Status inputs() {
    std::map<int, std::pair<size_t, size_t>> taken;
    for (size_t i = 0; i < job_.parts.size(); ++i) {
      auto& part = job_.parts[i];
      if (!part.package.model.states.empty()) return broken(format("part '{}' keeps state", part.name));
      if (part.package.model.entries.empty() || part.package.model.entries[0]->program != 0) return broken(format("part '{}' begins elsewhere", part.name));
      if (part_main(i).inputs.size() != part.inputs.size() || part_main(i).outputs.size() != part.outputs.size()) return broken(format("part '{}' has other ports", part.name));
      for (size_t k = 0; k < part.inputs.size(); ++k) taken.emplace(part.inputs[k], std::pair(i, k));
    }
    for (size_t n = 0; n < job_.inputs.size(); ++n) {
      auto it = taken.find(job_.inputs[n]);
      if (it == taken.end()) return broken(format("no part takes input {}", n));
      auto& program = part_main(it->second.first);
      GE_RETURN_IF_ERROR(input(program, *program.inputs[it->second.second], n));
    }
    return ok();
  }

  Status input(const ProgramT& from, const PortT& port, size_t n) {
    auto& x = values_[job_.inputs[n]];
    x.name = port.name;
    x.sized = port.kind == ValueKind::tensor && !port.unranked;
    for (size_t axis = 0; axis < port.dims.size(); ++axis) {
      const Expr& e = from.exprs[static_cast<size_t>(port.dims[axis])];
      if (e.op() == ExprOp::constant) {
        x.dims.push_back(exprs_.add(ExprOp::constant, e.imm()));
        continue;
      }
      if (e.op() != ExprOp::symbol) return broken(format("a size of input '{}' is an expression", port.name));
      auto& symbol = *from.symbols[static_cast<size_t>(e.imm())];
      auto [it, fresh] = symbols_.emplace(symbol.name, static_cast<int>(main_.symbols.size()));
      if (fresh) {
        auto s = std::make_unique<SymbolT>();
        s->name = symbol.name, s->min = symbol.min, s->max = symbol.max;
        s->input = static_cast<int>(n), s->axis = static_cast<int>(axis);
        main_.symbols.push_back(std::move(s));
      }
      x.dims.push_back(exprs_.add(ExprOp::symbol, it->second));
    }
    auto b = std::make_unique<BufferT>();
    b->kind = BufferKind::input, b->value = port.kind, b->index = static_cast<int>(n);
    x.buffer = static_cast<int>(main_.buffers.size());
    main_.buffers.push_back(std::move(b));
    auto made = std::make_unique<PortT>(port);
    made->dims = x.dims, made->buffer = x.buffer;
    main_.inputs.push_back(std::move(made));
    return ok();
  }

  Status add(size_t i) {
    auto& part = job_.parts[i];
    auto& p = *part.package.model.programs[0];
    Maps m{i, {}, {}, {}, {}, static_cast<int>(programs_.size()) - 1, static_cast<int>(main_.tasks.size())};
    for (auto& k : part.package.model.kernels) {
      auto [it, fresh] = kernel_at_.emplace(k, static_cast<int>(kernels_.size()));
      if (fresh) kernels_.push_back(k);
      m.kernel.push_back(it->second);
    }
    GE_RETURN_IF_ERROR(expressions(p, part, m));
    GE_RETURN_IF_ERROR(buffers(p, part, m));
    GE_RETURN_IF_ERROR(check_views(p, part, m));
    bool waits = reads_data(m.expr);
    for (auto& t : p.tasks) {
      remap(*t, m);
      for (auto& a : t->alternatives)
        for (auto* views : {&a->ins, &a->outs})
          for (auto& v : *views) remap(*v, m);
      for (auto& a : t->alternatives) {
        if (a->condition >= 0) a->condition = m.expr[static_cast<size_t>(a->condition)];
        for (int& e : a->ints) e = m.expr[static_cast<size_t>(e)];
      }
      main_.tasks.push_back(std::move(t));
    }
    for (size_t s = 0; s < p.symbols.size(); ++s) {
      if (m.symbol[s] < 0) continue;
      auto& symbol = *main_.symbols[static_cast<size_t>(m.symbol[s])];
      symbol.buffer = m.buffer[static_cast<size_t>(p.symbols[s]->buffer)];
      symbol.task = p.symbols[s]->task + m.task0;
    }
    main_.reuse &= p.reuse;
    segments(p, m, waits);
    subprograms(part, m);
    return ok();
  }

  // The part's sizes: of values that it takes, what these are; those that its own tasks decide become symbols of the whole.
  Status expressions(const ProgramT& p, const LinkPart& part, Maps& m) {
    std::vector<int> value(p.symbols.size(), -1);
    m.symbol.assign(p.symbols.size(), -1);
    for (size_t s = 0; s < p.symbols.size(); ++s) {
      auto& symbol = *p.symbols[s];
      if (symbol.input >= 0) {
        auto it = values_.find(part.inputs[static_cast<size_t>(symbol.input)]);
        if (it == values_.end() || static_cast<size_t>(symbol.axis) >= it->second.dims.size()) return broken(format("size '{}' comes from nowhere", symbol.name));
        value[s] = it->second.dims[static_cast<size_t>(symbol.axis)];
        continue;
      }
      auto own = std::make_unique<SymbolT>(symbol);
      for (int k = 1; symbols_.count(own->name); ++k) own->name = format("{}.{}", symbol.name, k);
      m.symbol[s] = static_cast<int>(main_.symbols.size());
      symbols_.emplace(own->name, m.symbol[s]);
      value[s] = exprs_.add(ExprOp::symbol, m.symbol[s]);
      main_.symbols.push_back(std::move(own));
    }
    for (auto& e : p.exprs) {
      auto of = [&](int operand) { return m.expr[static_cast<size_t>(operand)]; };
      if (e.op() == ExprOp::symbol) m.expr.push_back(value[static_cast<size_t>(e.imm())]);
      else if (e.op() == ExprOp::constant) m.expr.push_back(exprs_.add(ExprOp::constant, e.imm()));
      else m.expr.push_back(exprs_.add(e.op(), 0, of(e.a()), of(e.b()), e.op() == ExprOp::select ? of(e.c()) : 0));
    }
    for (auto& d : p.demands) {
      auto made = std::make_unique<DemandT>(*d);
      made->a = m.expr[static_cast<size_t>(d->a)], made->b = m.expr[static_cast<size_t>(d->b)];
      main_.demands.push_back(std::move(made));
    }
    return ok();
  }

  Status buffers(ProgramT& p, const LinkPart& part, Maps& m) {
    auto opened = written_by_executors(p, part.package.model);
    for (size_t i = 0; i < p.buffers.size(); ++i) {
      auto& b = p.buffers[i];
      if (b->kind == BufferKind::input) {
        auto it = values_.find(part.inputs[static_cast<size_t>(b->index)]);
        if (it == values_.end()) return broken(format("nobody makes what '{}' takes", p.inputs[static_cast<size_t>(b->index)]->name));
        m.buffer.push_back(it->second.buffer);
        continue;
      }
      m.buffer.push_back(static_cast<int>(main_.buffers.size()));
      if (b->kind == BufferKind::weight) b->weight_offset = weights_.place(m.part, *b);
      if (b->bytes >= 0) b->bytes = m.expr[static_cast<size_t>(b->bytes)];
      if (b->kind == BufferKind::arena || b->kind == BufferKind::pool) b->first += m.task0, b->last += m.task0;
      if (b->kind == BufferKind::output) output(*p.outputs[static_cast<size_t>(b->index)], part.outputs[static_cast<size_t>(b->index)], *b, m, opened.count(static_cast<int32_t>(i)) > 0);
      main_.buffers.push_back(std::move(b));
    }
    return ok();
  }

  // What the part gives: an output of the whole, or a value that crosses.
  void output(const PortT& port, int number, BufferT& b, const Maps& m, bool by_executor) {
    auto& x = values_[number];
    x.name = port.name;
    x.sized = port.kind == ValueKind::tensor && !port.unranked;
    for (int e : port.dims) x.dims.push_back(m.expr[static_cast<size_t>(e)]);
    x.buffer = static_cast<int>(main_.buffers.size());
    if (auto it = output_at_.find(number); it != output_at_.end()) {
      b.index = static_cast<int>(it->second);
      auto made = std::make_unique<PortT>(port);
      made->name = job_.output_names[it->second];
      made->dims = x.dims, made->buffer = x.buffer;
      main_.outputs[it->second] = std::move(made);
      return;
    }
    b.index = -1;
    b.kind = by_executor && (!x.sized || reads_data(x.dims)) ? BufferKind::pool : BufferKind::arena;
    if (x.sized) b.bytes = exprs_.product(x.dims, size_of(static_cast<DType>(port.dtype)));
  }

  std::set<int32_t> written_by_executors(const ProgramT& p, const ModelT& model) const {
    std::set<int32_t> out;
    for (auto& t : p.tasks)
      for (auto& a : t->alternatives) {
        auto* kernel = kernels::find(model.kernels[static_cast<size_t>(a->kernel)]);
        if (!kernel || !kernel->executor) continue;
        for (auto& v : a->outs) out.insert(v->buffer);
      }
    return out;
  }

  // Values whose memory the run takes are handed to executor tasks whole: seen otherwise they would have to be copied first.
  Status check_views(const ProgramT& p, const LinkPart& part, const Maps& m) {
    for (auto& t : p.tasks)
      for (auto& a : t->alternatives) {
        auto* kernel = kernels::find(part.package.model.kernels[static_cast<size_t>(a->kernel)]);
        if (!kernel || !kernel->executor) continue;
        for (auto& v : a->ins) {
          if (v->buffer < 0 || !p.buffers[static_cast<size_t>(v->buffer)] || p.buffers[static_cast<size_t>(v->buffer)]->kind != BufferKind::input) continue;
          auto& input = p.inputs[static_cast<size_t>(p.buffers[static_cast<size_t>(v->buffer)]->index)];
          auto& x = values_.at(part.inputs[static_cast<size_t>(p.buffers[static_cast<size_t>(v->buffer)]->index)]);
          if (main_.buffers[static_cast<size_t>(x.buffer)]->kind != BufferKind::pool || !x.sized || v->dims == input->dims) continue;
          return node_error(code::kUnsupportedOp, t->name, format("Value '{}' crosses from one part to the next with a size that the data decide, and is read in another shape.", x.name),
                            "such a value is handed over whole", "cut the model after this node");
        }
      }
    (void)m;
    return ok();
  }

  // Whether a size in the list is decided by a task of the segment that is still open.
  bool reads_data(const std::vector<int>& list) const {
    int open = main_.segments.empty() ? 0 : main_.segments.back()->first;
    std::vector<bool> seen(main_.exprs.size());
    std::vector<int> stack = list;
    while (!stack.empty()) {
      auto e = static_cast<size_t>(stack.back());
      stack.pop_back();
      if (seen[e]) continue;
      seen[e] = true;
      const Expr& x = main_.exprs[e];
      if (x.op() == ExprOp::constant) continue;
      if (x.op() == ExprOp::symbol) {
        auto& symbol = *main_.symbols[static_cast<size_t>(x.imm())];
        if (symbol.input < 0 && (symbol.task < 0 || symbol.task >= open)) return true;
        continue;
      }
      stack.push_back(x.a()), stack.push_back(x.b());
      if (x.op() == ExprOp::select) stack.push_back(x.c());
    }
    return false;
  }

  void remap(TaskT& t, const Maps& m) {
    for (auto& a : t.alternatives) a->kernel = m.kernel[static_cast<size_t>(a->kernel)];
    for (int& s : t.programs) s += m.program0;
  }
  void remap(ViewT& v, const Maps& m) {
    if (v.buffer >= 0) v.buffer = m.buffer[static_cast<size_t>(v.buffer)];
    if (v.offset >= 0) v.offset = m.expr[static_cast<size_t>(v.offset)];
    for (int& e : v.dims) e = m.expr[static_cast<size_t>(e)];
    for (int& e : v.strides) e = m.expr[static_cast<size_t>(e)];
  }

  // The part's first segment goes on with the last one so far, unless sizes must be read in between.
  void segments(const ProgramT& p, const Maps& m, bool waits) {
    for (size_t k = 0; k < p.segments.size(); ++k) {
      if (k == 0 && !main_.segments.empty() && !waits) {
        main_.segments.back()->end = p.segments[0]->end + m.task0;
        continue;
      }
      auto s = std::make_unique<SegmentT>();
      s->first = p.segments[k]->first + m.task0, s->end = p.segments[k]->end + m.task0;
      main_.segments.push_back(std::move(s));
    }
  }

  void subprograms(LinkPart& part, const Maps& m) {
    auto& programs = part.package.model.programs;
    for (size_t k = 1; k < programs.size(); ++k) {
      for (auto& b : programs[k]->buffers)
        if (b->kind == BufferKind::weight) b->weight_offset = weights_.place(m.part, *b);
      for (auto& t : programs[k]->tasks) remap(*t, m);
      programs_.push_back(std::move(programs[k]));
    }
  }

  // First and last task of every buffer, over all parts.
  void lifetimes() {
    for (size_t t = 0; t < main_.tasks.size(); ++t)
      for (auto& a : main_.tasks[t]->alternatives)
        for (auto* views : {&a->ins, &a->outs})
          for (auto& v : *views) {
            if (v->buffer < 0) continue;
            auto& b = *main_.buffers[static_cast<size_t>(v->buffer)];
            if (b.kind != BufferKind::arena && b.kind != BufferKind::pool) continue;
            int at = static_cast<int>(t);
            b.first = b.first < 0 ? at : std::min(b.first, at);
            b.last = std::max(b.last, at);
          }
    // What decides a size is read when its segment has run.
    for (auto& s : main_.symbols) {
      if (s->buffer < 0) continue;
      auto& b = *main_.buffers[static_cast<size_t>(s->buffer)];
      for (auto& segment : main_.segments)
        if (s->task >= segment->first && s->task < segment->end) b.last = std::max(b.last, segment->end - 1);
    }
  }

  LinkJob job_;
  ProgramT main_;
  Expressions exprs_;
  LinkWeights weights_;
  std::vector<std::unique_ptr<ProgramT>> programs_;
  std::map<int, Crossing> values_;
  std::map<int, size_t> output_at_;
  std::map<std::string, int, std::less<>> symbols_;
  std::vector<std::string> kernels_;
  std::map<std::string, int> kernel_at_;
};

}  // namespace

Result<Linked> link(LinkJob job) { return Linker(std::move(job)).run(); }

}  // namespace ge::om
