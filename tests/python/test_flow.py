"""Control flow, sizes that data decide, sequences and optionals: against ONNX Runtime or by hand, with memory reuse
and fusion on and off, one thread and two, the same model run again with other data and other sizes.
"""

import concurrent.futures
import re
import subprocess
import sys

import ge
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

RNG = np.random.default_rng(7)
HEAD = '<ir_version: 8, opset_import: ["" : 19]>\n'
WAYS = ({}, {"disable_reuse_memory": "1"}, {"disable_fusion": "all"}, {"threads": 1})


def model_of(text):
    m = onnx.parser.parse_model(HEAD + text)
    onnx.checker.check_model(m)
    return m


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def compare(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if isinstance(w, list):
            assert isinstance(g, list)
            compare(g, w)
        elif w is None:
            assert g is None
        else:
            assert g.dtype == w.dtype and g.shape == w.shape, (g.dtype, g.shape, w.dtype, w.shape)
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


def check(text, *feeds, want=None):
    """Every set of feeds, in every way, from one compiled model; twice, so that what a run leaves behind shows."""
    m = model_of(text)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if want is None:
        session = onnxruntime.InferenceSession(m.SerializeToString(), options)
        want = [session.run(None, f) for f in feeds]
    for way in WAYS:
        compiled = ge.compile(m, **way)
        for _ in range(2):
            for f, w in zip(feeds, want):
                compare(compiled.run(f), w)
    return ge.compile(m)


def tasks(model, tmp_path):
    """The operators that the program runs."""
    om = str(tmp_path / "m.om")
    model.save(om)
    out = subprocess.run([sys.executable, "-c", "from ge._cli import ge; ge()", "inspect", om, "--tasks"], capture_output=True, text=True, check=True)
    return out.stdout


# ---- If

def test_if_takes_the_branch_that_the_data_say():
    check("""g (bool c, float[3] x) => (float[3] y) {
        y = If (c) <then_branch = t () => (float[3] a) { a = Neg(x) }, else_branch = e () => (float[3] b) { b = Exp(x) }>
    }""", {"c": np.array(True), "x": f32(3)}, {"c": np.array(False), "x": f32(3)})


def test_if_nested_with_captures_of_all_levels():
    text = """g (float[n] x, float[n] k, bool c, bool d) => (float[n] y, float z) {
        s = ReduceSum <keepdims = 0> (x)
        y, z = If (c) <
          then_branch = t () => (float[n] a, float az) {
            u = Mul(x, k)
            a, az = If (d) <
              then_branch = tt () => (float[n] aa, float ab) { v = Add(u, s)  aa = Add(v, x)  ab = Identity(s) },
              else_branch = te () => (float[n] ba, float bb) { ba = Sub(u, k)  bb = ReduceMax <keepdims = 0> (u) }>
          },
          else_branch = e () => (float[n] b, float bz) { b = Identity(x)  bz = Neg(s) }>
    }"""
    check(text, *[{"x": f32(n), "k": f32(n), "c": np.array(c), "d": np.array(d)} for n, c, d in ((4, 1, 1), (4, 1, 0), (7, 0, 1), (1, 1, 1)) for c, d in [(bool(c), bool(d))]])


def test_if_with_branches_of_different_sizes():
    text = """g (bool c, float[n, 3] x) => (float[m, 3] y, float[2, m] z) {
        w = If (c) <then_branch = t () => (float[p, 3] a) { a = Concat <axis = 0> (x, x) },
                    else_branch = e () => (float[q, 3] b) { i = Constant <value_ints = [0]> ()  b = Gather <axis = 0> (x, i) }>
        y = Relu(w)
        k = Constant <value = float[3, 2] {1, 2, 3, 4, 5, 6}> ()
        h = MatMul(y, k)
        z = Transpose <perm = [1, 0]> (h)
    }"""
    check(text, *[{"c": np.array(c), "x": f32(n, 3)} for c in (True, False) for n in (1, 2, 5)])


def test_if_with_branches_of_different_ranks():
    text = """g (bool c, float[2, 3] x) => (y) {
        y = If (c) <then_branch = t () => (float[2, 3] a) { a = Abs(x) }, else_branch = e () => (float[6] b) { k = Constant <value_ints = [-1]> ()  b = Reshape(x, k) }>
    }"""
    x = f32(2, 3)
    m = onnx.parser.parse_model(HEAD + text.replace("(y)", "(float y)"))
    m.graph.output[0].type.tensor_type.ClearField("shape")
    for way in WAYS:
        compiled = ge.compile(m, **way)
        assert compiled.outputs[0].shape is None
        compare(compiled.run({"c": np.array(True), "x": x}), [np.abs(x)])
        compare(compiled.run({"c": np.array(False), "x": x}), [x.reshape(-1)])


def check_unranked(text, *feeds, want):
    """Where ONNX's checker asks for ranks that only the run tells."""
    m = onnx.parser.parse_model(HEAD + text)
    for way in WAYS:
        compiled = ge.compile(m, **way)
        for f, w in zip(feeds, want):
            compare(compiled.run(f), w)


BRANCHES_OF_TWO_RANKS = """w = If (c) <then_branch = t () => (float[2, 3] a) { a = Abs(x) },
    else_branch = e () => (float[6] b) { k = Constant <value_ints = [-1]> ()  b = Reshape(x, k) }>"""


def test_what_follows_branches_of_different_ranks_sees_each_rank():
    text = f"""g (bool c, float[2, 3] x, float[3] z) => (float[3, 2] y, float[6] r, float[4] v) {{
        {BRANCHES_OF_TWO_RANKS}
        two = Constant <value = float {{2}}> ()
        shape = Constant <value_ints = [3, 2]> ()
        flat = Constant <value_ints = [-1]> ()
        u = Add(w, two)
        q = Exp(u)
        y = Reshape(q, shape)
        r = Reshape(w, flat)
        s = Shape(w)
        sf = Cast <to = 1> (s)
        top = ReduceMax <keepdims = 1> (sf)
        v = Concat <axis = 0> (top, z)
    }}"""
    x, z = f32(2, 3), f32(3)
    feeds = [{"c": np.array(c), "x": x, "z": z} for c in (True, False)]
    want = []
    for w in (np.abs(x), x.reshape(-1)):
        want.append([np.exp(w + 2).reshape(3, 2), w.reshape(-1), np.concatenate([[max(w.shape)], z]).astype(np.float32)])
    check_unranked(text, *feeds, want=want)


def test_branches_of_different_ranks_of_two_ifs_meet():
    text = f"""g (bool c, bool d, float[2, 3] x) => (float[n] y) {{
        {BRANCHES_OF_TWO_RANKS}
        h = If (d) <then_branch = t2 () => (float[2, 3] a2) {{ a2 = Neg(x) }}, else_branch = e2 () => (float b2) {{ b2 = ReduceSum <keepdims = 0> (x) }}>
        hw = Exp(h)
        flat = Constant <value_ints = [-1]> ()
        u = Reshape(w, flat)
        v = Reshape(hw, flat)
        y = Concat <axis = 0> (u, v)
    }}"""
    x = f32(2, 3)
    feeds, want = [], []
    for c in (True, False):
        for d in (True, False):
            feeds.append({"c": np.array(c), "d": np.array(d), "x": x})
            want.append([np.concatenate([(np.abs(x) if c else x).reshape(-1), np.exp(-x if d else x.sum(keepdims=False)).reshape(-1)])])
    check_unranked(text, *feeds, want=want)


def test_a_branch_that_cannot_go_on_fails_when_it_is_taken():
    text = f"""g (bool c, float[2, 3] x, float[3, 2] k) => (float[2, 2] y) {{
        {BRANCHES_OF_TWO_RANKS}
        t2 = Transpose <perm = [1, 0]> (w)
        t3 = Transpose <perm = [1, 0]> (t2)
        y = MatMul(t3, k)
    }}"""
    x, k = f32(2, 3), f32(3, 2)
    m = onnx.parser.parse_model(HEAD + text)
    for way in WAYS:
        compiled = ge.compile(m, **way)
        compare(compiled.run([np.array(True), x, k]), [np.abs(x) @ k])
        with pytest.raises(ge.Error, match="Transpose"):
            compiled.run([np.array(False), x, k])
        compare(compiled.run([np.array(True), x, k]), [np.abs(x) @ k])


def test_a_branch_that_the_sizes_do_not_allow_fails_when_it_is_taken():
    """In an If that data decide, in one inside it, and in a Loop whose value has another size later on."""
    wrong = "w = Constant <value = float[2, 2] {1, 2, 3, 4}> ()  z = MatMul(x, w)  b = Relu(z)"
    text = f"""g (bool c, bool d, float[2, 3] x) => (float[2, 3] y) {{
        y = If (c) <then_branch = t () => (float[2, 3] a) {{ a = Neg(x) }},
                    else_branch = e () => (float[2, 3] bb) {{
                        bb = If (d) <then_branch = t2 () => (float[2, 3] b) {{ {wrong} }}, else_branch = e2 () => (float[2, 3] q) {{ q = Exp(x) }}> }}>
    }}"""
    x, m = f32(2, 3), onnx.parser.parse_model(HEAD + text)
    for way in WAYS:
        compiled = ge.compile(m, **way)
        for _ in range(2):
            compare(compiled.run([np.array(True), np.array(True), x]), [-x])
            compare(compiled.run([np.array(False), np.array(False), x]), [np.exp(x)])
            with pytest.raises(ge.Error, match="MatMul"):
                compiled.run([np.array(False), np.array(True), x])
    (inner,) = [b for b in compiled.report()["branches"] if "fails" in b]
    assert inner["fails"].startswith("then_branch: MatMul") and f"If node {inner['node']}: data decide; cannot run: then_branch" in compiled.explain()
    # Both cannot run, what is taken is known, an operator that is not known: errors of the compiler.
    for condition, other, why in (("c", wrong, "MatMul"), ("yes", "b = Neg(x)", "MatMul"), ("c", "b = Unheard(x)", "Unheard")):
        broken = f"""g (bool c, float[2, 3] x) => (float[2, 3] y) {{
            yes = Constant <value = bool {{1}}> ()
            y = If ({condition}) <then_branch = t () => (float[2, 3] b) {{ {wrong} }}, else_branch = e () => (float[2, 3] b) {{ {other} }}>
        }}"""
        with pytest.raises(ge.Error, match=why):
            ge.compile(onnx.parser.parse_model(HEAD + broken))
    check("""g (int64 n, bool[4] c, float[1, 2] x) => (float[m, 2] y) {
        y = Loop (n, , x) <body = b (int64 it, bool ci, float[k, 2] v) => (bool co, float[k2, 2] o) {
            co = Identity(ci)
            now = Gather <axis = 0> (c, it)
            o = If (now) <then_branch = t () => (float[p, 2] a) { two = Constant <value_ints = [2, 2]> ()  r = Reshape(v, two)  a = Neg(r) },
                          else_branch = e () => (float[q, 2] b) { b = Concat <axis = 0> (v, v) }>
        }>
    }""", *[{"n": np.array(n), "c": np.array(c), "x": f32(1, 2)} for n, c in ((1, [False] * 4), (3, [False, True, True, False]), (4, [False, True, False, False]))])


def test_sizes_that_only_a_branch_that_cannot_run_takes_are_refused():
    """The other branch takes the place of the If, in a model and in a branch that data decide; gives its sizes, and says what is allowed."""
    squeezed = """zero = Constant <value_ints = [0]> ()
        two = Constant <value_ints = [2]> ()
        shape = Shape(x)
        n = Gather <axis = 0> (shape, two)
        one = Constant <value_ints = [1]> ()
        is_one = Equal(n, one)
        w = If (is_one) <then_branch = t () => (float[b, 3] a) { axis = Constant <value_ints = [2]> ()  a = Squeeze(x, axis) }, else_branch = e () => (float[b, 3, k] c) { c = Identity(x) }>
        made = Gemm(w, weights)"""
    weights, x = f32(3, 4), f32(2, 3, 1)
    model = onnx.parser.parse_model(HEAD + f"g (float[b, 3, k] x, float[3, 4] weights) => (float[m, 4] y) {{ {squeezed}  y = Relu(made) }}")
    for way in WAYS:
        compiled = ge.compile(model, **way)
        compare(compiled.run([x, weights]), [np.maximum(x[:, :, 0] @ weights, 0)])
        with pytest.raises(ge.Error, match=r"\(k\) is 2, allowed is 1"):
            compiled.run([f32(2, 3, 2), weights])
        compare(compiled.run([x, weights]), [np.maximum(x[:, :, 0] @ weights, 0)])
    assert "nested graph" not in compiled.explain()
    (branch,) = compiled.report()["branches"]
    assert branch["taken"] == "then_branch" and branch["fails"].startswith("else_branch: Gemm")
    # One condition over two sizes: no range says it.
    either = squeezed.replace("n = Gather <axis = 0> (shape, two)", "n0 = Gather <axis = 0> (shape, two)  n1 = Gather <axis = 0> (shape, zero)  n = Mul(n0, n1)")
    compiled = ge.compile(onnx.parser.parse_model(HEAD + f"g (float[b, 3, k] x, float[3, 4] weights) => (float[m, 4] y) {{ {either}  y = Relu(made) }}"))
    compare(compiled.run([x[:1], weights]), [np.maximum(x[:1, :, 0] @ weights, 0)])
    with pytest.raises(ge.Error, match="cannot run: Gemm"):
        compiled.run([x, weights])
    # Where data decide outside, the other side takes any sizes.
    outer = f"""g (bool c, float[b, 3, k] x, float[3, 4] weights) => (float[m, 4] y) {{
        y = If (c) <then_branch = t0 () => (float[m, 4] a0) {{ {squeezed}  a0 = Relu(made) }}, else_branch = e0 () => (float[m, 4] b0) {{
            flat = Constant <value_ints = [-1, 3]> ()  r = Reshape(x, flat)  b0 = MatMul(r, weights) }}>
    }}"""
    wide = f32(2, 3, 2)
    for way in WAYS:
        compiled = ge.compile(onnx.parser.parse_model(HEAD + outer), **way)
        for _ in range(2):
            compare(compiled.run([np.array(True), x, weights]), [np.maximum(x[:, :, 0] @ weights, 0)])
            compare(compiled.run([np.array(False), wide, weights]), [wide.reshape(-1, 3) @ weights])
            with pytest.raises(ge.Error):
                compiled.run([np.array(True), wide, weights])


def test_ranks_of_branches_inside_a_loop_and_a_branch():
    text = f"""g (bool c, bool d, float[2, 3] x) => (float[6] y, float[n, 6] z) {{
        n = Constant <value = int64 {{3}}> ()
        yes = Constant <value = bool {{1}}> ()
        flat = Constant <value_ints = [-1]> ()
        first = Reshape(x, flat)
        y, z = Loop (n, yes, first) <body = b (int64 i, bool go, float[6] have) => (bool on, float[6] next, float[6] each) {{
            on = Identity(go)
            k2 = Constant <value_ints = [-1]> ()
            two = Constant <value_ints = [2, 3]> ()
            s = If (d) <then_branch = t () => (float[2, 3] a) {{ a = Reshape(have, two) }}, else_branch = e () => (float[6] bb) {{
                bb = If (c) <then_branch = t5 () => (float[6] p) {{ p = Neg(have) }}, else_branch = e5 () => (float[6] q) {{ q = Abs(have) }}> }}>
            f = Exp(s)
            g2 = Reshape(f, k2)
            each = Sin(g2)
            next = Tanh(g2)
        }}>
    }}"""
    x = f32(2, 3)
    feeds, want = [], []
    for c in (True, False):
        for d in (True, False):
            have, each = x.reshape(-1), []
            for _ in range(3):
                s = np.exp(have if d else -have if c else np.abs(have))
                each.append(np.sin(s))
                have = np.tanh(s)
            feeds.append({"c": np.array(c), "d": np.array(d), "x": x})
            want.append([have, np.stack(each)])
    check_unranked(text, *feeds, want=want)


def test_equal_conditions_are_decided_inside_a_branch():
    """Two Ifs on sizes that are equal: what only a mixture of both could do is never asked for."""
    text = """g (float[n, 3] x) => (float[m] y) {
        i = Constant <value = int64 {0}> ()
        one = Constant <value = int64 {1}> ()
        zero = Constant <value_ints = [0]> ()
        s = Shape(x)
        n0 = Gather <axis = 0> (s, i)
        c = Equal(n0, one)
        a = If (c) <then_branch = t () => (float[3] a1) { a1 = Squeeze(x, zero) }, else_branch = e () => (float[n, 3] a2) { a2 = Identity(x) }>
        nx = Neg(x)
        s2 = Shape(nx)
        n2 = Gather <axis = 0> (s2, i)
        c2 = Equal(n2, one)
        b = If (c2) <then_branch = t2 () => (float[3] b1) { b1 = Squeeze(nx, zero) }, else_branch = e2 () => (float[n, 3] b2) { b2 = Identity(nx) }>
        ua = Exp(a)
        j = Concat <axis = 0> (ua, b)
        flat = Constant <value_ints = [-1]> ()
        y = Reshape(j, flat)
    }"""
    feeds = [{"x": f32(n, 3)} for n in (1, 2, 1, 4)]
    check_unranked(text, *feeds, want=[[np.concatenate([np.exp(f["x"]), -f["x"]]).reshape(-1)] for f in feeds])


def test_squeeze_without_axes_through_elementwise_nodes_to_an_output():
    text = """g (float[n, 1] x) => (float[m] y) {
        s = Squeeze(x)
        a = Sigmoid(s)
        k = Constant <value = float {4}> ()
        b = Mul(a, k)
        y = Add(k, b)
    }"""
    feeds = [{"x": f32(n, 1)} for n in (1, 3, 0)]
    check_unranked(text, *feeds, want=[[np.float32(4) + 4 / (1 + np.exp(-f["x"].squeeze()))] for f in feeds])


@pytest.mark.parametrize("names", [("a/b", "a_b"), ("a b", "a_b"), ("a:b", "a b"), ("", "")])
def test_sizes_that_nodes_of_similar_names_decide_are_not_one(names):
    text = """g (float[n] x, float[n] y) => (int64[1,p] i, int64[1,q] j, int64[2] s) {
        i = NonZero(x)
        j = NonZero(y)
        si = Size(i)
        sj = Size(j)
        axis = Constant<value = int64[1] {0}>()
        ri = Unsqueeze(si, axis)
        rj = Unsqueeze(sj, axis)
        s = Concat<axis = 0>(ri, rj)
    }"""
    m = model_of(text)
    for node, name in zip(m.graph.node, names):
        node.name = name
    x, y = np.array([1, 0, 2, 0], np.float32), np.array([0, 0, 0, 3], np.float32)
    i, j, sizes = ge.compile(m).run({"x": x, "y": y})
    assert i.tolist() == [[0, 2]] and j.tolist() == [[3]] and sizes.tolist() == [2, 1]


def test_if_decided_by_a_constant_is_not_there(tmp_path):
    text = """g (float[3] x) => (float[3] y) {
        c = Constant <value = bool {%d}> ()
        n = Not(c)
        y = If (n) <then_branch = t () => (float[3] a) { a = Neg(x) }, else_branch = e () => (float[3] b) { b = Exp(x) }>
    }"""
    for c in (0, 1):
        assert "If" not in tasks(check(text % c, {"x": f32(3)}), tmp_path)


def test_if_on_shapes_is_decided_by_their_range(tmp_path):
    text = """g (float[n, 3] x) => (float[n, 3] y) {
        s = Shape <start = 0, end = 1> (x)
        z = Squeeze(s)
        k = Constant <value = int64 {16}> ()
        c = Greater(z, k)
        y = If (c) <then_branch = t () => (float[n, 3] a) { a = Neg(x) }, else_branch = e () => (float[n, 3] b) { b = Exp(x) }>
    }"""
    m = model_of(text)
    check(text, *[{"x": f32(n, 3)} for n in (1, 16, 17)])
    for span, f in (("1~16", np.exp), ("17~40", np.negative)):
        compiled = ge.compile(m, input_shape=f"x:{span},3")
        assert "If" not in tasks(compiled, tmp_path)
        x = f32(int(span.split("~")[1]), 3)
        compare(compiled.run([x]), [f(x)])
    assert "If" in tasks(ge.compile(m, input_shape="x:1~40,3"), tmp_path)


def test_a_branch_knows_the_sizes_that_come_to_it(tmp_path):
    """The inner If is decided by what the outer one says of n."""
    text = """g (float[n, 3] x) => (float[n, 3] y) {
        s = Shape <start = 0, end = 1> (x)
        z = Squeeze(s)
        k = Constant <value = int64 {16}> ()
        few = Constant <value = int64 {4}> ()
        c = Greater(z, k)
        y = If (c) <
          then_branch = t () => (float[n, 3] a) {
            d = Greater(z, few)
            a = If (d) <then_branch = tt () => (float[n, 3] aa) { aa = Neg(x) }, else_branch = te () => (float[n, 3] ab) { ab = Sin(x) }>
          },
          else_branch = e () => (float[n, 3] b) {
            d2 = Less(z, few)
            b = If (d2) <then_branch = et () => (float[n, 3] ba) { ba = Exp(x) }, else_branch = ee () => (float[n, 3] bb) { bb = Tanh(x) }>
          }>
    }"""
    compiled = check(text, *[{"x": f32(n, 3)} for n in (1, 3, 4, 16, 17)])
    assert tasks(compiled, tmp_path).count("flow.if") == 2
    by_taken = {b["taken"]: b for b in compiled.report()["branches"]}
    assert set(by_taken) == {"then_branch", ""} and len(compiled.report()["branches"]) == 3
    assert ("n <= 3", "n >= 4") in [(b.get("then"), b.get("else")) for b in compiled.report()["branches"]]


def test_the_report_says_what_became_of_bodies():
    compiled = ge.compile(model_of("""g (bool c, float[4, 3] x) => (float[4, 2] y) {
        w = Constant <value = float[3, 2] {1, 2, 3, 4, 5, 6}> ()
        v = Constant <value = float[2, 2] {1, 2, 3, 4}> ()
        y = If (c) <then_branch = t () => (float[4, 2] a) { h = MatMul(x, w)  r = Relu(h)  q = MatMul(r, v)  a = Sigmoid(q) },
                    else_branch = e () => (float[4, 2] b) { p = MatMul(x, w)  b = Exp(p) }>
    }"""))
    (branch,) = compiled.report()["branches"]
    assert branch["by"] == "data" and branch["taken"] == "" and f"If node {branch['node']}: data decide" in compiled.explain()
    bodies = {b["graph"].split(" ")[0]: b for b in compiled.report()["bodies"]}
    assert set(bodies) == {"then_branch", "else_branch"}
    assert (bodies["then_branch"]["tasks"], bodies["then_branch"]["fused"]) == (2, 2)
    assert (bodies["else_branch"]["tasks"], bodies["else_branch"]["fused"]) == (1, 1)
    assert bodies["then_branch"]["arena"] >= 4 * 2 * 4 and bodies["then_branch"]["proved"]


# ---- Loop

UPDATES = {   # of the carried value `v` by the row `r` at index `i`, as `o`
    "ScatterND": "at = Unsqueeze(it, zero2)  u = Unsqueeze(r, zero)  o = ScatterND(v, at, u)",
    "ScatterElements": "row = Expand(it, wide)  u = Unsqueeze(r, zero)  o = ScatterElements <axis = 0> (v, row, u)",
    "Concat": "at = Unsqueeze(it, zero)  after = Add(at, one)  above = Slice(v, zero, at, zero)  u = Unsqueeze(r, zero)  below = Slice(v, after, end, zero)  o = Concat <axis = 0> (above, u, below)",
    "twice": "at = Unsqueeze(it, zero2)  u = Unsqueeze(r, zero)  m = ScatterND(v, at, u)  w = Neg(u)  first = Constant <value_ints = [0]> ()  f2 = Unsqueeze(first, zero)  o = ScatterND(m, f2, w)",
}
CONSTANTS = 'zero = Constant <value_ints = [0]> ()  zero2 = Constant <value_ints = [0, 1]> ()  one = Constant <value_ints = [1]> ()  wide = Constant <value_ints = [1, 4]> ()  end = Constant <value_ints = [9223372036854775807]> ()'


def updating(update, outputs="", last=""):
    """A Loop that writes the sum of row `it` and its number into that row of what it carries."""
    return f"""
        s = Loop (n, , x) <body = b (int64 it, bool ci, float[k, 4] v) => (bool co, float[k, 4] o{outputs}) {{
            {CONSTANTS}
            co = Identity(ci)
            have = Gather <axis = 0> (v, it)  number = Cast <to = 1> (it)  r = Add(have, number)
            {UPDATES[update]}
            {last}
        }}>"""


@pytest.mark.parametrize("update", UPDATES)
def test_a_carried_value_is_updated_where_it_lies(update):
    text = f"""g (int64 n, float[k, 4] x) => (float[k, 4] y) {{ {updating(update).replace("s = Loop", "y = Loop", 1)} }}"""
    check(text, *[{"n": np.array(n), "x": f32(k, 4)} for n, k in ((0, 3), (1, 3), (3, 3), (5, 9), (3, 3))])
    # One block for the value, which the first iteration fills, instead of one to read from and one to write to.
    rows = 1 << 16
    x, pools = f32(rows, 4), {}
    for way in ("0", "1"):
        model = ge.compile(model_of(text), disable_reuse_memory=way)
        got = model.run({"n": np.array(4), "x": x})[0]
        pools[way] = model.memory()["pool"]
        assert (got[5:] == x[5:]).all() and not (got[1:4] == x[1:4]).any()
    assert pools["0"] < 1.5 * x.nbytes < pools["1"], pools


def test_a_carried_value_that_others_read_is_not_overwritten():
    """It is stacked before and after the update, read after it inside the body, read after the loop; what the loop
    begins with is read later; two carried values change places."""
    after = "p = Identity(v)  q = Identity(o)  d = Sub(o, v)"
    stacked = ", float[k, 4] p, float[k, 4] q, float[k, 4] d"
    for update in UPDATES:
        check(f"""g (int64 n, float[k, 4] x) => (float[k, 4] y, float[m, k, 4] a, float[m, k, 4] b, float[m, k, 4] c, float[k, 4] z) {{
            {updating(update, stacked, after).replace("s = Loop", "s, a, b, c = Loop", 1)}
            y = Neg(s)
            z = Add(x, s)
        }}""", *[{"n": np.array(n), "x": f32(k, 4)} for n, k in ((1, 2), (4, 5), (2, 3))])
    check(f"""g (int64 n, float[k, 4] x) => (float[k, 4] y, float[k, 4] z, float[m, k, 4] c) {{
        e = Exp(x)
        y, z, c = Loop (n, , e, x) <body = b (int64 it, bool ci, float[k, 4] v, float[k, 4] l) => (bool co, float[k, 4] lo, float[k, 4] o, float[k, 4] c) {{
            {CONSTANTS}
            co = Identity(ci)
            have = Gather <axis = 0> (v, it)  number = Cast <to = 1> (it)  r = Add(have, number)
            {UPDATES["ScatterND"]}
            lo = Identity(l)
            c = Sub(o, l)
        }}>
    }}""", *[{"n": np.array(n), "x": f32(k, 4)} for n, k in ((1, 2), (4, 5), (5, 5))])
    check("""g (int64 n, float[k, 4] x) => (float[k, 4] y, float[k, 4] z) {
        y, z = Loop (n, , x, x) <body = b (int64 it, bool ci, float[k, 4] v, float[k, 4] l) => (bool co, float[k, 4] a, float[k, 4] b) {
            co = Identity(ci)  two = Constant <value = float {2}> ()
            a = Mul(l, two)
            b = Add(v, two)
        }>
    }""", *[{"n": np.array(n), "x": f32(3, 4)} for n in (1, 2, 5)])
    # The same value carried twice.
    check(f"""g (int64 n, float[k, 4] x) => (float[k, 4] y, float[k, 4] z) {{
        y, z = Loop (n, , x, x) <body = b (int64 it, bool ci, float[k, 4] l, float[k, 4] v) => (bool co, float[k, 4] oo, float[k, 4] o) {{
            {CONSTANTS}
            co = Identity(ci)
            have = Gather <axis = 0> (v, it)  number = Cast <to = 1> (it)  r = Add(have, number)
            {UPDATES["ScatterND"]}
            oo = Identity(o)
        }}>
    }}""", *[{"n": np.array(n), "x": f32(5, 4)} for n in (1, 3, 5)])


def test_rows_put_back_where_they_do_not_fit():
    """Two rows for one, so that the value grows; none for one from the end on; indices from the end."""
    for rows, index in (("Concat <axis = 0> (u, u)", "Identity(at)"), ("Slice(u, one, one, zero)", "Neg(at)"), ("Identity(u)", "Neg(at)")):
        check(f"""g (int64 n, float[k, 4] x) => (float[m, 4] y) {{
            y = Loop (n, , x) <body = b (int64 it, bool ci, float[w, 4] v) => (bool co, float[w2, 4] o) {{
                {CONSTANTS}
                co = Identity(ci)  at = Unsqueeze(it, zero)
                from = {index}  after = Add(from, one)
                above = Slice(v, zero, from, zero)  below = Slice(v, after, end, zero)
                have = Slice(v, from, after, zero)  sum = ReduceSum <keepdims = 1> (v, zero)  u = Sin(sum)
                new = {rows}
                o = Concat <axis = 0> (above, new, below)
            }}>
        }}""", *[{"n": np.array(n), "x": f32(k, 4)} for n, k in ((1, 2), (4, 5), (3, 9))])


def test_a_state_of_scan_is_updated_where_it_lies():
    check(f"""g (float[k, 4] x, float[m, 4] rows, int64[m] places) => (float[k, 4] y, float[m, k, 4] all) {{
        y, all = Scan <num_scan_inputs = 2, body = b (float[k, 4] v, float[4] r, int64 it) => (float[k, 4] o, float[k, 4] e) {{
            {CONSTANTS}
            {UPDATES["ScatterND"]}
            e = Mul(o, o)
        }}> (x, rows, places)
    }}""", *[{"x": f32(k, 4), "rows": f32(m, 4), "places": RNG.integers(0, k, m)} for k, m in ((3, 1), (5, 7), (2, 3))])


def bodies(model, tmp_path):
    """The tasks of nested graphs."""
    return tasks(model, tmp_path).partition("nested graph")[2]


def test_carried_values_are_handed_on_not_copied(tmp_path):
    """p and q change places, k stays what it is, s is stacked: nothing in the body is a copy, and no copy stands
    where the loop ends up but of the values that come out."""
    text = """g (int64 n, float[2, 3] a, float[2, 3] b, float[2, 3] c) => (float[2, 3] x, float[2, 3] y, float[2, 3] z, float[t, 2, 3] s) {
        x, y, z, s = Loop (n, , a, b, c) <body = f (int64 it, bool ci, float[2, 3] p, float[2, 3] q, float[2, 3] k) => (bool co, float[2, 3] r, float[2, 3] u, float[2, 3] kk, float[2, 3] w) {
            co = Identity(ci)  r = Identity(q)  u = Identity(p)  kk = Identity(k)  m = Mul(p, k)  w = Sin(m) }>
    }"""
    compiled = check(text, *[{"n": np.array(n), "a": f32(2, 3), "b": f32(2, 3), "c": f32(2, 3)} for n in (0, 1, 2, 5)])
    body = bodies(compiled, tmp_path)
    assert "vector.program" in body and "copy" not in body, body


def test_the_loops_own_numbers_are_carried_by_value():
    check("""g (int64 n, int64 a, bool b) => (int64 x, bool y, int64[t] s) {
        x, y, s = Loop (n, , a, b) <body = f (int64 it, bool ci, int64 p, bool q) => (bool co, int64 r, bool u, int64 w) {
            co = Identity(ci)  r = Identity(it)  u = Identity(ci)  w = Identity(p) }>
    }""", *[{"n": np.array(n), "a": np.array(7), "b": np.array(False)} for n in (0, 1, 2, 5)])


def test_branches_that_hand_their_inputs_on(tmp_path):
    compiled = check("""g (bool c, float[2, 3] x, float[2, 3] y) => (float[2, 3] a, float[2, 3] b) {
        a, b = If (c) <then_branch = t () => (float[2, 3] p, float[2, 3] q) { p = Identity(x)  q = Identity(y) },
                       else_branch = e () => (float[2, 3] r, float[2, 3] s) { r = Identity(y)  s = Add(x, y) }>
    }""", *[{"c": np.array(c), "x": f32(2, 3), "y": f32(2, 3)} for c in (True, False)])
    assert "copy" not in bodies(compiled, tmp_path)


def test_what_scans_stack_is_written_where_it_ends_up(tmp_path):
    """One task in the body writes the entry of the scan's output itself."""
    compiled = check("""g (float[2] s, float[6, 2] x) => (float[2] e, float[6, 2] y) {
        e, y = Scan <num_scan_inputs = 1, body = b (float[2] v, float[2] a) => (float[2] o, float[2] p) { o = Add(v, a)  p = Sin(o) }> (s, x)
    }""", {"s": f32(2), "x": f32(6, 2)})
    lines = tasks(compiled, tmp_path).split("\n")
    (scan,) = [line for line in lines if "flow.scan" in line]
    assert re.search(r"-> o\d+ f32\[2\], o\d+ f32\[6,2\]$", scan), scan
    body = bodies(compiled, tmp_path)
    assert "copy" not in body and body.count(" o") >= 2, body
    assert compiled.memory()["pool"] <= 4096


LOOP = """g (int64 n, bool c, float[2, k] x) => (float[2, k] y, float[t, 2, k] s, int64[t] i) {
    w = Exp(x)
    y, s, i = Loop (n, c, x) <body = b (int64 it, bool cin, float[2, k] v) => (bool cout, float[2, k] o, float[2, k] p, int64 q) {
        h = Constant <value = float {0.5}> ()
        a = Mul(v, h)
        o = Add(a, w)
        p = Neg(o)
        q = Identity(it)
        m = ReduceMax <keepdims = 0> (o)
        big = Constant <value = float {3}> ()
        cout = Less(m, big)
    }>
}"""


def test_loop_ends_by_number_or_condition_or_never_begins():
    check(LOOP, *[{"n": np.array(n), "c": np.array(c), "x": x} for x in (f32(2, 3), f32(2, 5) * 0.1) for n, c in ((0, True), (1, True), (5, True), (5, False), (50, True))])


def test_loop_of_a_known_number_stacks_in_place():
    check("""g (float[3] x) => (float[3] y, float[4, 3] s) {
        n = Constant <value = int64 {4}> ()
        c = Constant <value = bool {1}> ()
        y, t = Loop (n, c, x) <body = b (int64 it, bool ci, float[3] v) => (bool co, float[3] o, float[3] p) {
            co = Identity(ci)  f = Cast <to = 1> (it)  o = Add(v, f)  p = Mul(o, x) }>
        s = Relu(t)
    }""", {"x": f32(3)})


def test_loop_without_number_or_condition():
    check("""g (float x) => (float y) {
        c = Constant <value = bool {1}> ()
        y = Loop (, c, x) <body = b (int64 it, bool ci, float v) => (bool co, float o) {
            two = Constant <value = float {2}> ()  o = Mul(v, two)  hundred = Constant <value = float {100}> ()  co = Less(o, hundred) }>
    }""", {"x": np.array(1.5, np.float32)}, {"x": np.array(200, np.float32)})


def test_loop_values_change_places():
    """Fibonacci: each carried value goes on as the other; one of them is given twice, and stacked as well."""
    check("""g (int64 n, int64 a, int64 b) => (int64 x, int64 y, int64[t] s) {
        x, y, s = Loop (n, , a, b) <body = f (int64 it, bool ci, int64 p, int64 q) => (bool co, int64 r, int64 t, int64 u) {
            co = Identity(ci)  r = Identity(q)  t = Add(p, q)  u = Identity(t) }>
    }""", *[{"n": np.array(n), "a": np.array(0), "b": np.array(1)} for n in (0, 1, 2, 30)])


def test_loop_grows_what_it_carries():
    check("""g (int64 n, float[k] x) => (float[m] y, float[m] z) {
        y = Loop (n, , x) <body = b (int64 it, bool ci, float[p] v) => (bool co, float[q] o) {
            co = Identity(ci)  o = Concat <axis = 0> (v, x) }>
        z = Neg(y)
    }""", *[{"n": np.array(n), "x": f32(k)} for n in (0, 1, 4) for k in (1, 3)])


def test_loops_nested():
    check("""g (int64 n, float[3] x) => (float[3] y, float[t, 3] s) {
        y, s = Loop (n, , x) <body = b (int64 it, bool ci, float[3] v) => (bool co, float[3] o, float[3] p) {
            co = Identity(ci)
            o = Loop (it, , v) <body = bb (int64 jt, bool cj, float[3] w) => (bool cp, float[3] q) {
                cp = Identity(cj)  f = Cast <to = 1> (jt)  g0 = Cast <to = 1> (it)  e = Add(f, g0)  h = Mul(x, e)  q = Add(w, h) }>
            p = Sub(o, v)
        }>
    }""", *[{"n": np.array(n), "x": f32(3)} for n in (0, 1, 4)])


def test_loop_holds_an_if_and_an_if_a_loop():
    check("""g (int64 n, bool c, float[3] x) => (float[3] y) {
        y = If (c) <
          then_branch = t () => (float[3] a) {
            one = Constant <value = int64 {1}> ()
            a = Loop (n, , x) <body = b (int64 it, bool ci, float[3] v) => (bool co, float[3] o) {
              co = Identity(ci)
              two = Constant <value = int64 {2}> ()
              r = Mod(it, two)
              odd = Equal(r, one)
              o = If (odd) <then_branch = p () => (float[3] d) { d = Add(v, x) }, else_branch = q () => (float[3] e) { e = Mul(v, x) }>
            }>
          },
          else_branch = e0 () => (float[3] f) { f = Identity(x) }>
    }""", *[{"n": np.array(n), "c": np.array(c), "x": f32(3)} for n in (0, 3) for c in (True, False)])


def test_loop_stacks_nothing_of_a_size_decided_inside():
    text = """g (int64 n, int64[k] x) => (int64[t, 1, m] s) {
        c = Constant <value = bool {1}> ()
        s = Loop (n, c) <body = b (int64 it, bool ci) => (bool co, int64[1, q] o) { co = Identity(ci)  o = NonZero(x) }>
    }"""
    check(text, {"n": np.array(3), "x": i64(1, 0, 2)}, {"n": np.array(2), "x": i64(0, 0)})
    (s,) = ge.compile(model_of(text)).run({"n": np.array(0), "x": i64(1, 0)})
    assert s.shape[:2] == (0, 1) and s.dtype == np.int64


def test_what_a_loop_stacks_must_keep_its_shape():
    model = ge.compile(model_of("""g (int64 n, float[k] x) => (float[t, m] s) {
        y, s = Loop (n, , x) <body = b (int64 it, bool ci, float[p] v) => (bool co, float[q] o, float[q] w) {
            co = Identity(ci)  o = Concat <axis = 0> (v, x)  w = Neg(o) }>
    }"""))
    with pytest.raises(ge.Error, match=r"shape \[4\] and then \[6\]"):
        model.run({"n": np.array(2), "x": f32(2)})


# ---- Scan

def test_scan_with_states_captures_and_stacks():
    check("""g (float[2] s, float[t, 2] x, float[t, 3] z, float[2] k) => (float[2] e, float[t, 2] y, float[t, 3] w) {
        e, y, w = Scan <num_scan_inputs = 2, body = b (float[2] v, float[2] a, float[3] c) => (float[2] o, float[2] p, float[3] q) {
            m = Mul(v, k)  o = Add(m, a)  p = Tanh(o)  r = ReduceSum <keepdims = 1> (a)  q = Add(c, r) }> (s, x, z)
    }""", *[{"s": f32(2), "x": f32(t, 2), "z": f32(t, 3), "k": f32(2)} for t in (1, 4, 9)])


def test_scan_along_other_axes_and_backwards():
    check("""g (float[2] s, float[2, t] x) => (float[2] e, float[2, t] y) {
        e, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1], scan_input_directions = [1], scan_output_directions = [1],
            body = b (float[2] v, float[2] a) => (float[2] o, float[2] p) { o = Add(v, a)  p = Sub(o, a) }> (s, x)
    }""", {"s": f32(2), "x": f32(2, 1)}, {"s": f32(2), "x": f32(2, 5)})


def test_scan_of_no_entries():
    model = ge.compile(model_of("""g (float[2] s, float[t, 2] x) => (float[2] e, float[t, 2] y) {
        e, y = Scan <num_scan_inputs = 1, body = b (float[2] v, float[2] a) => (float[2] o, float[2] p) { o = Add(v, a)  p = Neg(o) }> (s, x)
    }"""))
    s = f32(2)
    compare(model.run({"s": s, "x": f32(0, 2)}), [s, np.zeros((0, 2), np.float32)])


# ---- sizes that data decide

def test_nonzero_of_every_rank_and_type():
    for shape in ((), (5,), (2, 3), (2, 3, 2)):
        dims = ", ".join(map(str, shape))
        for t, d in (("float", np.float32), ("bool", bool), ("int64", np.int64), ("uint8", np.uint8)):
            text = f"g ({t}[{dims}] x) => (int64[r, n] y) {{ y = NonZero(x) }}".replace("[]", "")
            check(text, *[{"x": np.asarray(x, d)} for x in (np.zeros(shape), np.ones(shape), RNG.integers(0, 2, shape))])


def test_sizes_from_data_go_on_through_kernels():
    text = """g (float[n, 4] x, float[4, 5] k) => (float[m, 5] y, float[5] z, int64[q, 1] i, int64 count) {
        s = ReduceSum <keepdims = 0> (x, axes)
        zero = Constant <value = float {0}> ()
        p = Greater(s, zero)
        w = NonZero(p)
        i = Transpose <perm = [1, 0]> (w)
        g0 = GatherND(x, i)
        h = MatMul(g0, k)
        y = Softmax <axis = 1> (h)
        z = ReduceSum <keepdims = 0> (y, first)
        d = Shape <start = 0, end = 1> (y)
        count = Squeeze(d)
    }"""
    text = text.replace("s = ReduceSum", "axes = Constant <value_ints = [1]> ()  first = Constant <value_ints = [0]> ()\n        s = ReduceSum")
    some = np.array([[1, 1, 1, 1], [-1, -1, -1, -1]], np.float32)
    check(text, {"x": some, "k": f32(4, 5)}, {"x": -np.abs(f32(3, 4)), "k": f32(4, 5)}, {"x": f32(50, 4), "k": f32(4, 5)})


def test_two_sizes_from_data_meet():
    text = """g (bool[n] a, bool[m] b, float[n] x, float[m] y) => (float[p] c, float[q, r] o) {
        u = Compress <axis = 0> (x, a)
        v = Compress <axis = 0> (y, b)
        c = Concat <axis = 0> (u, v, u)
        k = Constant <value_ints = [1]> ()
        w = Unsqueeze(u, k)
        o = Mul(w, v)
    }"""
    check(text, *[{"a": RNG.random(n) < r, "b": RNG.random(m) < r, "x": f32(n), "y": f32(m)} for n, m in ((3, 4), (8, 1)) for r in (0, 0.5, 1)])


def test_shapes_computed_from_data():
    text = """g (int64[2] s, float[n] x, int64 k) => (float[a, b] y, float[c, d] e, int64[f] r, float[h, n] t) {
        y = Reshape(x, s)
        e = ConstantOfShape <value = float[1] {2}> (s)
        zero = Constant <value = int64 {0}> ()
        one = Constant <value = int64 {1}> ()
        r = Range(zero, k, one)
        ax = Constant <value_ints = [0]> ()
        kk = Unsqueeze(k, ax)
        o1 = Constant <value_ints = [1]> ()
        p = Concat <axis = 0> (kk, o1)
        t = Tile(q, p)
    }""".replace("t = Tile(q", "q = Unsqueeze(x, ax)\n        t = Tile(q")
    check(text, {"s": i64(2, 3), "x": f32(6), "k": np.array(2)}, {"s": i64(6, 1), "x": f32(6), "k": np.array(0)}, {"s": i64(1, 1), "x": f32(1), "k": np.array(5)})


def test_a_shape_from_data_that_does_not_fit_is_an_error():
    model = ge.compile(model_of("g (int64[2] s, float[n] x) => (float[a, b] y) { y = Reshape(x, s) }"))
    x = f32(6)
    compare(model.run({"s": i64(3, 2), "x": x}), [x.reshape(3, 2)])
    compare(model.run({"s": i64(-1, 2), "x": x}), [x.reshape(3, 2)])
    for s in ((4, 2), (-2, 3), (-1, -1), (-1, 4), (2**40, 2**40)):
        with pytest.raises(ge.Error):
            model.run({"s": i64(*s), "x": x})
    compare(model.run({"s": i64(0, 1), "x": x}), [x.reshape(6, 1)])


@pytest.mark.parametrize("attributes", ["", "axis = 0", "axis = -1", "sorted = 0", "axis = 1, sorted = 0"])
def test_unique(attributes):
    a = f"<{attributes}>" if attributes else ""
    text = f"g (float[n, m] x) => (y, int64[a] i, int64[b] v, int64[c] k) {{ y, i, v, k = Unique {a} (x) }}".replace("(y,", "(float[p] y," if "axis" not in a else "(float[p, q] y,")
    check(text, *[{"x": RNG.integers(0, 3, s).astype(np.float32)} for s in ((1, 1), (4, 2), (3, 5), (30, 2))])


def test_compress_with_a_condition_of_another_length():
    for axis, shape in ((0, (4, 3)), (1, (4, 3)), (None, (4, 3))):
        text = "g (float[n, m] x, bool[k] c) => (%s y) { y = Compress %s (x, c) }" % (("float[a, b]", f"<axis = {axis}>") if axis is not None else ("float[a]", ""))
        x = f32(*shape)
        feeds = [{"x": x, "c": np.array(c, bool)} for c in ([1, 0, 1], [1], [0, 0, 0], [1, 1, 1])]
        check(text, *feeds, want=[[np.compress(f["c"], f["x"], axis)] for f in feeds])


def test_non_max_suppression():
    text = """g (float[b, n, 4] x, float[b, c, n] s, int64 k, float iou, float least) => (int64[m, 3] y) {
        y = NonMaxSuppression <center_point_box = %d> (x, s, k, iou, least)
    }"""
    for center in (0, 1):
        for b, c, n in ((1, 1, 6), (2, 3, 40)):
            low = RNG.random((b, n, 2)).astype(np.float32)
            boxes = np.concatenate([low, low + 0.3], 2) if not center else np.concatenate([low, np.full_like(low, 0.3)], 2)
            for most, least in ((3, 0.2), (100, 0.5), (0, 0.1), (5, 2.0)):
                check(text % center, {"x": boxes, "s": RNG.random((b, c, n)).astype(np.float32), "k": np.array(most), "iou": np.array(0.4, np.float32), "least": np.array(least, np.float32)})


def test_many_sizes_and_threads_at_one_time():
    model = ge.compile(model_of("""g (float[n] x) => (float[m] y, int64[1, m] i) {
        zero = Constant <value = float {0}> ()
        p = Greater(x, zero)
        i = NonZero(p)
        t = Compress(x, p)
        y = Exp(t)
    }"""))
    inputs = [f32(1 + k % 37) for k in range(400)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for x, got in zip(inputs, pool.map(lambda x: model.run([x]), inputs)):
            compare(got, [np.exp(x[x > 0]), np.array(np.nonzero(x > 0), np.int64).reshape(1, -1)])
    held = model.memory()["pool"]
    for x in inputs:
        model.run([x])
    assert model.memory()["pool"] <= held
    model.trim()
    assert model.memory()["pool"] == 0


# ---- sequences and optionals

def test_sequences_are_edited():
    text = """g (float[n] a, float[m] b, int64 at) => (seq(float[k]) s, seq(float[k]) t, float[p] e, int64 count, float[q] joined) {
        s0 = SequenceConstruct(a, b)
        two = Mul(a, a)
        s = SequenceInsert(s0, two, at)
        t = SequenceErase(s, at)
        e = SequenceAt(s, at)
        count = SequenceLength(s)
        joined = ConcatFromSequence <axis = 0> (s)
    }"""
    for a, b in ((f32(2), f32(3)), (f32(1), f32(1))):
        for at in (0, 1, -1, -2):
            s = [a, b]
            s.insert(at if at >= 0 else len(s) + at, a * a)
            t = list(s)
            t.pop(at)
            check(text, {"a": a, "b": b, "at": np.array(at)}, want=[[s, t, s[at], np.array(3), np.concatenate(s)]])
    with pytest.raises(ge.Error, match="position 5 of a sequence of"):
        ge.compile(model_of(text)).run({"a": f32(1), "b": f32(1), "at": np.array(5)})


def test_sequences_come_and_go():
    text = """g (seq(float[n]) s, float[n] x) => (seq(float[n]) t, int64 count) {
        t = SequenceInsert(s, x)
        count = SequenceLength(s)
    }"""
    for n in (0, 1, 3):
        s, x = [f32(k + 1) for k in range(n)], f32(2)
        check(text, {"s": s, "x": x}, want=[[s + [x], np.array(n)]])


@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_tensor_is_cut_into_a_sequence_and_joined(keepdims):
    text = "g (float[n, 6] x) => (seq(float) s, float[a, b%s] y) { s = SplitToSequence <axis = 1, keepdims = %d> (x)  y = ConcatFromSequence <axis = 1, new_axis = %d> (s) }"
    x = f32(3, 6)
    m = text % ("" if not keepdims else "", keepdims, 1 - keepdims)
    pieces = [x[:, k:k + 1] if keepdims else x[:, k] for k in range(6)]
    model = onnx.parser.parse_model(HEAD + m)
    model.graph.output[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    for way in WAYS:
        compare(ge.compile(model, **way).run([x]), [pieces, x])


def test_sequence_grows_in_a_loop():
    text = """g (int64 n, float[k] x) => (float[m] y, int64 count) {
        s0 = SequenceEmpty ()
        s = Loop (n, , s0) <body = b (int64 it, bool ci, seq(float[p]) v) => (bool co, seq(float[q]) o) {
            co = Identity(ci)  f = Cast <to = 1> (it)  e = Mul(x, f)  o = SequenceInsert(v, e) }>
        s1 = SequenceInsert(s, x)
        y = ConcatFromSequence <axis = 0> (s1)
        count = SequenceLength(s1)
    }"""
    x = f32(2)
    check(text, *[{"n": np.array(n), "x": x} for n in (0, 1, 5)],
          want=[[np.concatenate([x * np.float32(k) for k in range(n)] + [x]), np.array(n + 1)] for n in (0, 1, 5)])


def test_optionals():
    text = """g (optional(float[n]) o) => (bool has, float[m] y) {
        has = OptionalHasElement(o)
        y = If (has) <then_branch = t () => (float[p] a) { v = OptionalGetElement(o)  a = Neg(v) },
                      else_branch = e () => (float[q] b) { b = Constant <value = float[1] {7}> () }>
    }"""
    x = f32(4)
    for way in WAYS:
        model = ge.compile(model_of(text), **way)
        compare(model.run([x]), [np.array(True), -x])
        compare(model.run([None]), [np.array(False), np.array([7], np.float32)])
    with pytest.raises(ge.Error, match="no value"):
        ge.compile(model_of("g (optional(float[n]) o) => (float[m] y) { y = OptionalGetElement(o) }")).run([None])


def test_values_of_a_wrong_kind_are_refused():
    model = ge.compile(model_of("g (seq(float[n]) s) => (int64 count) { count = SequenceLength(s) }"))
    for wrong in (f32(2), None, 3, [f32(1), "text"]):
        with pytest.raises((ge.Error, TypeError, ValueError)):
            model.run([wrong])


# ---- parameters that data say

def test_a_squeeze_without_axes_drops_what_turns_out_to_be_1():
    text = "g (float[n, 1, m] x) => (float[k] y) { z = Abs(x)  y = Squeeze(z) }"
    m = onnx.parser.parse_model(HEAD + text)
    m.graph.output[0].type.tensor_type.ClearField("shape")
    for way in WAYS:
        compiled = ge.compile(m, **way)
        for n, k in ((2, 3), (1, 3), (2, 1), (1, 1), (0, 1)):
            x = f32(n, 1, k)
            compare(compiled.run([x]), [np.abs(x).squeeze()])


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"])
def test_reduction_over_axes_that_data_say(op, keepdims):
    out = "a, b, c" if keepdims else "a"
    text = f"g (float[n, 3, m] x, int64[2] axes) => (float[{out}] y) {{ y = {op} <keepdims = {keepdims}> (x, axes) }}"
    check(text, *[{"x": f32(n, 3, m), "axes": i64(*axes)} for n, m in ((2, 4), (1, 1), (5, 1)) for axes in ((0, 1), (2, 0), (-1, 1), (-3, -1))])
    model = ge.compile(model_of(text))
    for axes in ((0, 0), (3, 0), (-4, 1)):
        with pytest.raises(ge.Error):
            model.run([f32(2, 3, 4), i64(*axes)])


def test_axes_of_squeeze_and_unsqueeze_that_data_say():
    text = "g (float[n, 1, m, 1] x, int64[2] a, int64[2] b) => (float[p, q] y, float[r, s, t, u] z) { y = Squeeze(x, a)  z = Unsqueeze(y, b) }"
    check(text, *[{"x": f32(2, 1, 3, 1), "a": i64(*a), "b": i64(*b)} for a in ((1, 3), (3, 1), (-1, -3)) for b in ((0, 1), (3, 0), (-1, 1))])
    model = ge.compile(model_of(text))
    for a, b in (((0, 1), (0, 1)), ((1, 1), (0, 1)), ((1, 3), (4, 0)), ((1, 3), (2, 2))):
        with pytest.raises(ge.Error):
            model.run([f32(2, 1, 3, 1), i64(*a), i64(*b)])


def test_slices_that_data_say():
    text = "g (float[n, 5] x, int64[2] s, int64[2] e, int64[2] a, int64[2] t) => (float[p, q] y) { y = Slice(x, s, e, a, t) }"
    far = 2**63 - 1
    feeds = [{"x": f32(n, 5), "s": i64(*s), "e": i64(*e), "a": i64(*a), "t": i64(*t)} for n in (1, 6) for s, e, a, t in (
        ((0, 1), (far, far), (0, 1), (1, 1)), ((1, 0), (3, 9), (1, 0), (1, 2)), ((-1, -1), (-far, -far), (0, 1), (-1, -2)),
        ((5, 4), (0, 0), (-2, -1), (-3, -1)), ((2, 2), (1, 1), (0, 1), (1, 1)), ((0, 0), (2, 2), (0, 1), (far, 1)))]
    check(text, *feeds)
    model = ge.compile(model_of(text))
    for a, t in (((0, 0), (1, 1)), ((0, 2), (1, 1)), ((0, 1), (0, 1))):
        with pytest.raises(ge.Error):
            model.run([f32(4, 5), i64(0, 0), i64(2, 2), i64(*a), i64(*t)])


def test_sums_splits_pads_and_tiles_that_data_say():
    check("g (float[n, 3] x, int64 a) => (float[n, 3] y) { y = CumSum(x, a) }", *[{"x": f32(4, 3), "a": np.array(a)} for a in (0, 1, -1, -2)])
    check("g (float[n] x, int64[2] s) => (float[p] y, float[q] z) { y, z = Split <axis = 0> (x, s) }", *[{"x": f32(5), "s": i64(*s)} for s in ((2, 3), (0, 5))])
    check("g (float[n, m] x, int64[4] p) => (float[a, b] y) { y = Pad(x, p) }", *[{"x": f32(2, 3), "p": i64(*p)} for p in ((1, 0, 0, 2), (0, -1, 3, 0))])
    check("g (float[n, m] x, int64[1] k) => (float[n, a] y, int64[n, a] i) { y, i = TopK(x, k) }", *[{"x": f32(2, 6), "k": i64(k)} for k in (0, 1, 6)])
    check("g (float[1, m] x, int64[2] s) => (float[a, b] y) { y = Expand(x, s) }", *[{"x": f32(1, 3), "s": i64(*s)} for s in ((4, 1), (1, 3), (2, 3))])
    model = ge.compile(model_of("g (float[n] x, int64[2] s) => (float[p] y, float[q] z) { y, z = Split <axis = 0> (x, s) }"))
    for s in ((2, 2), (-1, 6), (3, 3)):
        with pytest.raises(ge.Error):
            model.run([f32(5), i64(*s)])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_by_what_data_say(mode):
    roi = "roi = Constant <value = float[0] {}> ()"
    check(f"g (float[1, 2, h, w] x, float[4] s) => (float[a, b, c, d] y) {{ {roi}  y = Resize <mode = \"{mode}\"> (x, roi, s) }}",
          *[{"x": f32(1, 2, 5, 4), "s": np.array([1, 1, a, b], np.float32)} for a, b in ((2, 2), (0.6, 1.5), (1, 3.3))])
    check(f"g (float[1, 2, h, w] x, int64[4] s) => (float[a, b, c, d] y) {{ y = Resize <mode = \"{mode}\"> (x, , , s) }}",
          *[{"x": f32(1, 2, 5, 4), "s": i64(1, 2, a, b)} for a, b in ((10, 8), (3, 6))])


# ---- Sizes across borders

def test_a_capture_of_which_only_the_size_is_asked():
    text = """g (float[n, 3] x, float[m, 3] y) => (float[m, 3] z) {
        trips = Constant <value_int = 10> ()
        z = Loop (trips, , y) <body = b (int64 i, bool c, float[m, 3] s) => (bool more, float[m, 3] t) {
            soft = Softmax(x)  shape = Shape(soft)  zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
            rows = Gather(shape, zero)  next = Add(i, one)  more = Less(next, rows)
            step = Constant <value_float = 1.0> ()  t = Add(s, step)
        }>
    }"""
    feeds = [{"x": f32(n, 3), "y": f32(m, 3)} for n in (0, 1, 4, 12) for m in (1, 3)]
    check(text, *feeds, want=[[f["y"] + np.float32(min(10, max(1, len(f["x"]))))] for f in feeds])


def test_a_size_keeps_its_name_when_other_inputs_go():
    """What is carried as it is becomes a capture, and the capture of the same size is not read any more."""
    text = """g (float[n, 3] x, float[m, 3] y) => (float[o, 3] u, float[t, n, 3] z) {
        five = Constant <value_int = 5> ()  from = Constant <value_ints = [1]> ()  to = Constant <value_ints = [-1]> ()  axis = Constant <value_ints = [0]> ()
        part = Slice(y, from, to, axis)
        u, z = Loop (five, , part) <body = b (int64 i, bool c, float[q, 3] a) => (bool more, float[q, 3] b, float[n, 3] s) {
            two = Constant <value_float = 2.0> ()  twice = Mul(part, two)  inner = Shape(twice)  shape = Shape(a)
            three = Constant <value_int = 3> ()  rest = Mod(shape, three)  greater = Greater(inner, rest)
            zero = Constant <value_int = 0> ()  more = Gather(greater, zero)  b = Identity(a)  s = Identity(x)
        }>
    }"""
    feeds = [{"x": f32(2, 3), "y": f32(m, 3)} for m in (1, 2, 4, 5, 7)]
    check(text, *feeds, want=[[f["y"][1:-1], np.stack([f["x"]] * (5 if len(f["y"]) >= 5 else 1))] for f in feeds])


def test_a_size_keeps_the_name_that_inputs_which_stay_have():
    """Of two values that begin alike, one changes its size in the body; what both began with is captured and not read."""
    text = """g (float[n, 3] x, float[m, 3] y) => (float[o, 3] u, float[p, 3] v) {
        three = Constant <value_int = 3> ()  from = Constant <value_ints = [1]> ()  to = Constant <value_ints = [3]> ()  axis = Constant <value_ints = [0]> ()
        part = Slice(y, from, to, axis)
        u, v = Loop (three, , part, part) <body = b (int64 i, bool c, float[q, 3] a, float[r, 3] d) => (bool more, float[q, 3] b, float[r, 3] e) {
            both = Concat <axis = 0> (part, x)  shape = Shape(both)  zero = Constant <value_int = 0> ()  two = Constant <value_int = 2> ()
            rows = Gather(shape, zero)  more = Greater(rows, two)  b = Identity(x)  e = Neg(d)
        }>
    }"""
    feeds = [{"x": f32(n, 3), "y": f32(m, 3)} for n in (0, 1, 4) for m in (1, 2, 5)]
    check(text, *feeds)


def test_nothing_of_what_a_loop_makes():
    """The size of the part is known, that of the whole is not: data decide it."""
    text = """g (float[n, 3] x, float[m, 3] y, bool go) => (float[o, 3] z) {
        three = Constant <value_int = 3> ()
        u = Loop (three, go, y) <body = b (int64 i, bool c, float[q, 3] a) => (bool more, float[q, 3] b) { more = Identity(c)  b = Identity(x) }>
        zero = Constant <value_ints = [0]> ()
        z = Slice(u, zero, zero, zero)
    }"""
    check(text, *[{"x": f32(n, 3), "y": f32(4, 3), "go": np.array(go)} for n in (0, 2) for go in (False, True)], want=[[f32(0, 3)]] * 4)


@pytest.mark.parametrize("trips", ["trips = Constant <value_int = 3> ()", "sx = Shape <start = 0, end = 1> (x)  trips = Squeeze(sx)"], ids=["number", "size"])
@pytest.mark.parametrize("more", ["more = Identity(c)", "no = Not(c)  more = Not(no)"], ids=["handed_on", "denied_twice"])
def test_a_size_that_is_known_once_a_condition_is(trips, more):
    """How often the first Loop runs is told after the second has written down the shape that it gives."""
    text = """g (float[n, 3] x, int64 k) => (float[z, 3] r) {
        TRIPS
        u, st = Loop (trips, , x) <body = f (int64 i, bool c, float[n, 3] a) => (bool more, float[n, 3] b, float[3] s) {
            MORE  b = Neg(a)  axis = Constant <value_ints = [0]> ()  s = ReduceSum <keepdims = 0> (x, axis)
        }>
        zero = Constant <value_ints = [0]> ()  one = Constant <value_ints = [1]> ()  five = Constant <value_ints = [5]> ()
        r = Loop (k, , x) <body = b (int64 j, bool d, float[q, 3] e) => (bool on, float[q, 3] v) {
            both = Concat <axis = 0> (e, st)  shape = Shape(both)  rows = Slice(shape, zero, one, zero)
            same = Equal(rows, five)  on = Not(same)  v = Concat <axis = 0> (e, x)
        }>
    }""".replace("TRIPS", trips).replace("MORE", more)
    check(text, *[{"x": f32(n, 3), "k": np.array(k)} for n in (1, 2, 5) for k in (0, 1, 4)])
