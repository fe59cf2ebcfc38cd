"""Runs the steps of `action.yml` as GitHub does, with packages of this environment."""

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig

import pytest
from ruamel.yaml import YAML

ROOT = pathlib.Path(__file__).parent.parent
ACTION = YAML(typ="safe").load(ROOT / "action.yml")
INSTALL, COMPARE = ACTION["runs"]["steps"]
# Of pip: all that the package needs is in `site-packages`, from where it is imported.
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
FILES = ["pyproject.toml", "setup.py", "README.md"]
JUDGMENTS = "".join(f"q{query} 0 good 1\n" for query in range(20))
GOOD = "".join(f"q{query} Q0 good 1 2.0 x\n" for query in range(20))
POOR = "".join(
    f"q{query} Q0 bad 1 2.0 x\nq{query} Q0 good 2 1.0 x\n" for query in range(20)
)


def run_step(step, folder, **variables):
    assert step["shell"] == "bash"
    variables |= OFFLINE | {
        "RUNNER_TEMP": str(folder),
        "GITHUB_ACTION_PATH": str(folder / "action"),
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder where the first step installed the package."""
    folder = tmp_path_factory.mktemp("runner")
    shutil.copytree(ROOT / "tfrankmetrics", folder / "action" / "tfrankmetrics")
    for name in FILES:
        shutil.copy(ROOT / name, folder / "action")
    process = run_step(INSTALL, folder)
    assert process.returncode == 0, process.stderr
    return folder


@pytest.fixture
def compare(installed, tmp_path):
    """Runs the second step with inputs, and returns it with the job's summary."""
    for name, text in {"judgments": JUDGMENTS, "good": GOOD, "poor": POOR}.items():
        (tmp_path / name).write_text(text)
    summary = tmp_path / "summary"

    def compared(baseline, run, **inputs):
        paths = dict(judgments="judgments", baseline=baseline, run=run)
        inputs |= {name: str(tmp_path / file) for name, file in paths.items()}
        defaults = {
            name: each["default"]
            for name, each in ACTION["inputs"].items()
            if not each.get("required")
        }
        given = defaults | inputs
        variables = {
            name: re.sub(
                r"\$\{\{ inputs\.(\w+) \}\}", lambda each: given[each[1]], value
            )
            for name, value in COMPARE["env"].items()
        }
        summary.unlink(missing_ok=True)
        process = run_step(
            COMPARE, installed, GITHUB_STEP_SUMMARY=str(summary), **variables
        )
        return process, summary.read_text()

    return compared


def test_a_better_run_passes_and_a_poorer_one_fails(compare):
    process, summary = compare("poor", "good")
    assert process.returncode == 0, process.stderr
    assert "| ndcg@10 | 20 | 0.6309" in summary
    assert "Passed: ndcg@10 of 'good' is not worse than that of 'poor'" in summary
    process, summary = compare("good", "poor")
    assert process.returncode == 1, process.stderr
    assert "Failed: ndcg@10 of 'poor'" in summary
    assert process.stdout == summary


def test_inputs_choose_metrics_margin_and_flags(compare):
    inputs = {
        "metrics": "mrr\nmap@2(denominator=min(k, relevant))\n",
        "margin": "0.6",
        "flags": "--test t --correction bh",
    }
    process, summary = compare("good", "poor", **inputs)
    assert process.returncode == 0, process.stderr
    assert "Passed: mrr of 'poor' is not worse" in summary
    assert "| map@2(denominator=min(k, relevant)) | 20 |" in summary
    assert "Paired t-test; p-values adjusted for 2 comparisons (bh)" in summary


def test_a_mistake_is_an_error_and_an_input_is_no_code(compare, tmp_path):
    mark = tmp_path / "mark"
    process, summary = compare("good", "poor", metrics=f"$(touch {mark})`touch {mark}`")
    assert (process.returncode, summary) == (2, "")
    assert "error: " in process.stderr
    assert not mark.exists()
    assert "${{" not in INSTALL["run"] + COMPARE["run"]


def test_the_guide_calls_the_action_with_its_inputs():
    text = (ROOT / "docs/guide/rag.md").read_text("utf-8")
    (step,) = YAML(typ="safe").load(
        re.search(r"```yaml\n(- uses.*?)```", text, re.S)[1]
    )
    inputs = ACTION["inputs"]
    required = {name for name, each in inputs.items() if each.get("required")}
    assert required <= {*step["with"]} <= {*inputs}
