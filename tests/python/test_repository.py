"""The repository's own rules: layers, and that the checker finds what it should."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_layers  # noqa: E402


def test_layers():
    assert check_layers.check(os.path.join(ROOT, "src")) == []


def tree(root, files):
    for name, text in files.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check_layers.check(str(root / "src"))


def test_the_checker_sees_violations(tmp_path):
    assert tree(tmp_path / "a", {"base/a.h": '#include "tensor/t.h"\n', "tensor/t.h": ""}) == [
        "src/base/a.h:1: base may not include tensor (tensor/t.h)"]
    assert len(tree(tmp_path / "b", {"runtime/r.cc": '#include "ir/g.h"\n', "ir/g.h": ""})) == 1
    assert len(tree(tmp_path / "c", {"plan/p.cc": '#include "passes/q.h"\n', "passes/q.h": ""})) == 1
    assert len(tree(tmp_path / "d", {"base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/a.h"\n'})) == 1
    assert len(tree(tmp_path / "e", {"base/a.h": '#include "b.h"\n', "base/b.h": ""})) == 1
    assert len(tree(tmp_path / "f", {"helpers/a.h": ""})) == 1


def test_the_checker_lets_the_waist_see_the_kernel_table(tmp_path):
    assert tree(tmp_path, {"om/check.cc": '#include "kernels/kernel.h"\n', "kernels/kernel.h": "",
                           "lower/l.cc": '#include "plan/p.h"\n#include "om/o.h"\n', "plan/p.h": "",
                           "om/o.h": ""}) == []


def test_versions_agree():
    import importlib.metadata

    import ge
    assert importlib.metadata.version("ge") == ge.__version__


def test_no_machine_flags():
    """Instruction sets are chosen at run time; a -m flag on a whole file leaks into inline functions."""
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        text = f.read()
    assert "-march" not in text and "-mavx" not in text and "-mfma" not in text


def test_dev_refuses_unknown_commands():
    done = subprocess.run([os.path.join(ROOT, "dev"), "nonsense"], capture_output=True, text=True)
    assert done.returncode != 0 and "unknown command" in done.stderr and "usage" in done.stderr


@pytest.mark.parametrize("output,status,in_ci", [("fine", 0, 0), ("SKIPPED", 0, 1), ("wrong", 8, 8)], ids=["passed", "skipped", "failed"])
def test_skipped_cpp_tests_count_as_failed_in_ci(output, status, in_ci, tmp_path):
    """./dev's own function, on a ctest that is not GE's."""
    (tmp_path / "build" / "release").mkdir(parents=True)
    (tmp_path / "build" / "release" / "CTestTestfile.cmake").write_text(
        f'add_test(one "echo" "{output}")\n'
        'set_tests_properties(one PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED" FAIL_REGULAR_EXPRESSION "wrong")\n')
    with open(os.path.join(ROOT, "dev"), encoding="utf-8") as f:
        text = f.read()
    function = text[text.index("run_ctest() {"):]
    script = f"set -euo pipefail; say() {{ echo \"$@\"; }}; jobs=1; {function[:function.index(chr(10) + '}')]}\n}}\nrun_ctest release"
    for ci, want in ((None, status), ("1", in_ci)):
        environment = {k: v for k, v in os.environ.items() if k != "GE_CI"} | ({"GE_CI": ci} if ci else {})
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == want, (ci, done.stdout, done.stderr)
        assert ("Skipped tests count as failed" in done.stdout) == (ci == "1" and output == "SKIPPED")


def test_the_list_of_operators_is_current():
    import operators_doc
    with open(operators_doc.DOC) as f:
        assert f.read() == operators_doc.text([sys.executable, "-c", "from ge._cli import ge; ge()"]), "./dev docs writes it"
