// Text goldens: each golden/*.ir holds a graph, what the passes make of it, and what the trace says.
// GE_GOLDEN_UPDATE=1 rewrites the expectations. Every graph also runs fused against its meaning (reference
// kernels, no passes), with memory reuse on and off.
//
//   // sizes: n=3                     values of symbols for the run
//   // off: matmul_bias              rules that are switched off
//   // mode: mixed_bfloat16          --precision_mode_v2; the trace then says what keeps f32 and why
//   // keep: NAME OpType::TYPE       --keep_dtype
//   graph ... { ... }
//   // ---- expected
//   graph ... { ... }
//   // fused: RULE: ORIGIN, ORIGIN
//   // near miss: RULE at ANCHOR (2 of 3): WHY [BLOCKER] HELP
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/compare.h"
#include "driver/precision_options.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace ge {
namespace {

constexpr const char* kMarker = "// ---- expected\n";

struct Case {
  std::string path, input, expected;
  std::map<std::string, int64_t> sizes;
  Options options;
};

std::vector<std::string> golden_files() {
  std::vector<std::string> out;
  for (auto& e : std::filesystem::directory_iterator(GE_SOURCE_DIR "/tests/passes/golden"))
    if (e.path().extension() == ".ir") out.push_back(e.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

Case read_case(const std::string& path) {
  std::ifstream f(path);
  std::stringstream all;
  all << f.rdbuf();
  Case c;
  c.path = path;
  std::string text = all.str();
  size_t at = text.find(kMarker);
  c.input = text.substr(0, at);
  if (at != std::string::npos) c.expected = text.substr(at + std::string(kMarker).size());
  for (auto& line : split(c.input, '\n')) {
    if (line.starts_with("// sizes:"))
      for (auto& s : split(trim(line.substr(9)), ' ')) c.sizes[s.substr(0, s.find('='))] = std::atoll(s.c_str() + s.find('=') + 1);
    if (line.starts_with("// off:"))
      for (auto& s : split(trim(line.substr(7)), ' ')) c.options.disabled.insert(s);
    if (line.starts_with("// mode:")) {
      EXPECT_TRUE(set_option(c.options, "precision_mode_v2", std::string(trim(line.substr(8)))).ok());
    }
    if (line.starts_with("// keep:")) {
      for (auto& s : split(trim(line.substr(8)), ' ')) EXPECT_TRUE(read_keep_dtype(c.options, std::string(s)).ok());
    }
  }
  c.options.verify_ir = true;
  return c;
}

std::string outcome(const Compiled& c, bool precision) {
  std::string out = ir::print(c.graph);
  for (auto& f : c.trace.all_fused()) out += format("// fused: {}: {}\n", f.rule, join(f.origins, ", "));
  for (auto& m : c.trace.near_misses())
    out += format("// near miss: {} at {} ({} of {}): {} [{}]{}\n", m.rule, m.anchor, m.matched, m.of, m.why, m.blocker, m.help.empty() ? "" : " " + m.help);
  for (auto& n : c.trace.precision)
    if (precision && !n.bf16) out += format("// f32: {}: {}\n", n.node, n.why);
  return out;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, IsAsExpected) {
  Case c = read_case(GetParam());
  auto g = ir::parse(c.input);
  ASSERT_TRUE(g.ok()) << g.error().text();
  c.options.disabled.insert("open_strips");   // every map of an open height, dozens of times
  auto done = optimize_graph(*std::move(g), c.options);
  ASSERT_TRUE(done.ok()) << done.error().text();
  std::string got = outcome(*done, c.options.precision.bf16);
  if (std::getenv("GE_GOLDEN_UPDATE")) {
    std::ofstream(c.path) << c.input << kMarker << got;
    return;
  }
  EXPECT_EQ(got, c.expected) << c.path << ": ./dev golden --update rewrites it";
}

TEST_P(Golden, MeansTheSame) {
  Case c = read_case(GetParam());
  Options meaning;
  meaning.reference = true;
  auto graph = [&] { return *ir::parse(c.input); };
  auto want = compile_graph(graph(), meaning);
  ASSERT_TRUE(want.ok()) << want.error().text();
  for (bool reuse : {true, false}) {
    c.options.reuse_memory = reuse;
    auto got = compile_graph(graph(), c.options);
    ASSERT_TRUE(got.ok()) << got.error().text();
    const bool rounded = std::any_of(got->trace.precision.begin(), got->trace.precision.end(), [](auto& n) { return n.bf16; });
    // By its meaning a model in f16 rounds after every node; compiled it rounds once.
    const bool halves = c.input.find(": f16[") != std::string::npos;
    EXPECT_TRUE(agree(*got, *want, c.sizes, rounded ? 1e-2 : halves ? 1e-3 : 2e-5)) << "reuse " << reuse;
  }
}

std::string case_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string s = std::filesystem::path(info.param).stem().string();
  for (char& ch : s)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return s;
}

INSTANTIATE_TEST_SUITE_P(Passes, Golden, ::testing::ValuesIn(golden_files()), case_name);

}  // namespace
}  // namespace ge
