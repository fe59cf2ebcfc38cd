"""The command `tfrankmetrics`, which is also `python -m tfrankmetrics`."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import pathlib
import re
import subprocess
import sys

import pandas as pd
import pytest

import tfrankmetrics as trm
from tfrankmetrics.__main__ import main

QRELS = "1 0 a 1\n1 0 b 0\n2 0 a 1\n# a comment\n3 0 x 2\n"
ONE = "1 Q0 b 1 9.5 t and more words\n1 Q0 a 2 8 t\n2 Q0 a 1 3 t\n"
TWO = "1 Q0 b 1 1.5 t\n1 Q0 a 2 8 t\n2 Q0 a 1 3 t\n3 Q0 x 1 2 t\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(qrels=QRELS, one=ONE, two=TWO, by="1 de\n2 en\n3 en\n")


def run(capsys, *arguments):
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def words_of(text):
    """The words of each line."""
    return [line.split() for line in text.splitlines()]


def write(**files):
    for name, text in files.items():
        pathlib.Path(name).write_text(text)


def test_one_run_prints_the_lines_of_trec_eval(capsys):
    status, out, err = run(capsys, "qrels", "one", "-m", "map", "-m", "P@1")
    assert (status, out) == (
        0,
        "map                   \tall\t0.5000\nP@1                   \tall\t0.3333\n",
    )
    assert "1 of 3 judged queries has no predictions" in err


def test_each_query(capsys):
    _, out, _ = run(capsys, "qrels", "one", "-m", "map", "-q")
    values = {"1": "0.5000", "2": "1.0000", "3": "0.0000", "all": "0.5000"}
    assert words_of(out) == [["map", *each] for each in values.items()]


@pytest.mark.parametrize(
    "arguments", ["qrels - -q", "- one two", "qrels /dev/stdin -q", "qrels one -"]
)
def test_a_pipe_is_read_once(arguments):
    """A process of its own has a standard input that is a pipe."""
    piped = {"qrels": "one", "-": "qrels"}[arguments.split()[0]]
    command = [sys.executable, "-m", "tfrankmetrics", *arguments.split(), "-m", "map"]
    found = subprocess.run(
        command, input=pathlib.Path(piped).read_text(), capture_output=True, text=True
    )
    assert (found.returncode, found.stderr.count("error")) == (0, 0)
    assert "0.5000" in found.stdout


def test_an_unknown_column_of_slices_is_named_with_those_of_the_table(capsys):
    write(**{"one.csv": "query_id,label,score\n1,1,0.5\n"})
    _, _, err = run(capsys, "one.csv", "-m", "map", "--by", "lang")
    assert (
        "for the columns 'query_id', 'label', 'score'. The table is 'one.csv'." in err
    )


def test_trec_eval_leaves_out_queries_without_predictions(capsys):
    _, out, _ = run(capsys, "qrels", "one", "-m", "map", "--convention", "trec_eval")
    assert out.split() == ["map", "all", "0.7500"]
    arguments = "--convention", "trec_eval", "--missing-queries", "zero"
    _, out, _ = run(capsys, "qrels", "one", "-m", "map", *arguments)
    assert out.split() == ["map", "all", "0.5000"]


def test_several_runs_are_compared(capsys):
    def compared(slices=None, **arguments):
        values = {
            name: trm.evaluate_run("qrels", name, ["map"], per_query=True, by=slices)
            for name in ("one", "two")
        }
        return trm.compare(values, **arguments)

    files = "qrels", "one", "two", "-m", "map"
    _, out, err = run(capsys, *files)
    assert (out, err) == (f"{compared()!r}\n", "")
    assert "one: 1 of 3 judged queries" in out
    more = ["--by", "by", "--format", "markdown", "--test", "t"]
    _, out, _ = run(capsys, *files, *more)
    slices = {"1": "de", "2": "en", "3": "en"}
    assert out == compared(slices, by="slice", test="t").to_markdown() + "\n"


def test_slices_of_one_run(capsys):
    _, out, _ = run(capsys, "qrels", "one", "-m", "map", "--by", "by")
    assert words_of(out)[1:3] == [["de", "1", "0.5000"], ["en", "2", "0.5000"]]


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ("old new --gate better", 0, "\nPassed: mrr of 'new' is better"),
        ("new old --gate better", 1, "\nFailed: mrr of 'old' is worse than"),
        ("old new --gate not_worse --margin 0.1", 0, "\nPassed: mrr"),
        ("new old --gate not_worse --margin 0.1", 1, "is worse"),
        ("old new", 0, "Paired randomization test."),
        ("old --gate better", 2, "Received: one run"),
        ("old new --gate not_worse", 2, "needs a margin above 0"),
        ("old new --margin 0.1", 2, "need --gate"),
        ("old new --in-slices", 2, "need --gate"),
        ("old new --gate better --in-slices", 2, "--in-slices needs slices"),
    ],
)
def test_a_gate_decides_the_exit_status(capsys, arguments, status, text):
    queries = range(12)
    write(qrels="".join(f"{q} 0 a 1\n" for q in queries))
    for name, best, other in (("old", "b", "a"), ("new", "a", "b")):
        lines = [f"{q} Q0 {best} 1 3 t\n{q} Q0 {other} 2 2 t\n" for q in queries]
        write(**{name: "".join(lines)})
    found, out, err = run(capsys, "qrels", *arguments.split(), "-m", "mrr")
    assert (found, text in (err if status == 2 else out)) == (status, True)
    assert bool(out) == (status != 2)


def test_gains_by_grade(capsys):
    _, expected, _ = run(capsys, "qrels", "two", "-m", "dcg(gain=[0,1,5])")
    for gain in ("0,1,5", "[0, 1, 5]", "{0: 0, 1: 1, 2: 5}"):
        _, out, _ = run(capsys, "qrels", "two", "-m", "dcg", "--gain", gain)
        assert out.split()[-1] == expected.split()[-1] == "2.3333"


def test_metrics_of_recommended_items(capsys):
    _, out, _ = run(capsys, "qrels", "one", "-m", "coverage@2", "--num-items", "10")
    assert out.split() == ["coverage@2", "all", "0.2000"]
    status, _, err = run(
        capsys, "qrels", "one", "two", "-m", "gini", "--num-items", "9"
    )
    assert (status, "'gini' is one value over all queries" in err) == (2, True)
    write(**{"pop": "a 0.5\nb 0.25\n", "pop.csv": "item_id,share\na,0.5\nb,0.25\n"})
    for file in ("pop", "pop.csv"):
        _, out, _ = run(capsys, "qrels", "one", "-m", "novelty@2", "--popularity", file)
        assert out.split() == ["novelty@2", "all", "1.2500"]  # (1.5 + 1) / 2


def test_the_worst_queries_of_each_run(capsys):
    _, out, _ = run(capsys, "qrels", "one", "-m", "map", "--worst", "2")
    assert words_of(out)[:3] == [["query", "one"], ["3", "0.0000"], ["1", "0.5000"]]
    arguments = "qrels", "one", "two", "-m", "map", "--worst", "1"
    _, out, _ = run(capsys, *arguments, "--format", "markdown")
    assert out.startswith("one:\n\n| query | one |")
    assert "\n\ntwo:\n\n" in out
    _, out, _ = run(capsys, *arguments, "--format", "csv")
    assert rows_of(out) == [
        {"run": "one", "query": "3", "map": "0.0"},
        {"run": "two", "query": "1", "map": "1.0"},
    ]


def test_one_query_of_each_run_is_explained(capsys):
    expected = trm.explain_run("qrels", "one", "map", "1")
    _, out, _ = run(capsys, "qrels", "one", "-m", "map", "--explain", "1")
    assert out == f"{expected!r}\n"
    arguments = "qrels", "one", "two", "-m", "map", "--explain", "1"
    _, out, _ = run(capsys, *arguments)
    assert out.startswith(f"one:\n\n{expected!r}\n\ntwo:\n\nrank")
    _, out, _ = run(capsys, *arguments, "--format", "json")
    rows = json.loads(out)["queries"]
    assert [(row["run"], row["item"]) for row in rows] == [
        *[("one", "b"), ("one", "a"), ("two", "a"), ("two", "b")]
    ]


def test_runs_are_compared_with_the_first_one(capsys):
    files = "qrels", "one", "two", "same", "-m", "map"
    write(same=TWO)
    _, out, _ = run(capsys, *files, "--pairs", "first")
    assert "same - one" in out
    assert "same - two" not in out
    assert "p-values adjusted for 2 comparisons" in out


def test_a_gate_needs_two_models_in_a_table(capsys):
    """A table without the rows of the new model must not pass."""
    columns = {"query_id": [1, 1], "item_id": [*"ab"], "label": [1, 0]}
    table = pd.DataFrame({**columns, "score": [2, 1], "model": "old"})
    table.to_csv("one.csv", index=False)
    arguments = "-m", "mrr", "--model", "model", "--gate", "better"
    status, out, err = run(capsys, "one.csv", *arguments)
    assert (status, out) == (2, "")
    assert "--gate compares the first model with the others. Received: one" in err


def test_decisions_and_counts_in_other_formats(capsys):
    """Names of runs are text in documents, and programs see unmatched queries."""
    name = "a|<b>_c$"
    pathlib.Path("one").rename(name)
    arguments = ["qrels", "two", name, "-m", "map", "--gate", "better"]
    _, out, _ = run(capsys, *arguments, "--format", "markdown")
    assert r"map of 'a\|&lt;b>\_c\$' is" in out
    _, out, _ = run(capsys, *arguments, "--format", "latex")
    assert r"map of 'a$|$$<$b$>$\_c\$' is" in out
    for form in ("json", "csv"):
        _, out, err = run(capsys, *arguments, "--format", form)
        assert f"{name}: 1 of 3 judged queries" in err
        assert ("Failed: map of" in err) == (form == "csv")


def test_a_table_beside_a_trec_file(capsys):
    """Ids are text in both."""
    found = {"query_id": [1, 1, 2], "item_id": [*"baa"], "score": [9.5, 8, 3]}
    pd.DataFrame(found).to_csv("r.csv", index=False)
    slices = {"query_id": [1, 2, 3], "language": ["de", "en", "en"]}
    pd.DataFrame(slices).to_parquet("s.parquet")
    _, out, _ = run(capsys, "qrels", "r.csv", "-m", "map", "--by", "s.parquet")
    assert out.splitlines()[0].split() == ["language", "queries", "map"]
    assert out.splitlines()[1].split() == ["de", "1", "0.5000"]
    grades = {"query_id": [1, 1, 2, 3], "item_id": [*"abax"], "grade": [1, 0, 1, 2]}
    pd.DataFrame(grades).to_csv("q.csv", index=False)
    _, out, _ = run(capsys, "q.csv", "r.csv", "-m", "map", "--label", "grade")
    assert out.split() == ["map", "all", "0.5000"]


HEADER = "query_id,item_id"
FILES = {
    "ids": "1 de\n2\n",
    "few": "1 de\n2 en\n",
    "fewer": "1 de\n",
    "twice": "1 de\n1 en\n",
    "digits": "1 Q0 b 1 1_000 t\n",
    "same": TWO,
    "no_id.csv": f"{HEADER},label\n1,a,1\n,NA,1\n",
    "qrels.csv": "other,item_id,label\n1,a,1\n2,NA,x\n",
    "many.csv": f"{HEADER},score\n1,a,0.5,x\n2,a,0.4,y\n",
    "more.csv": f"{HEADER},score\n1,a,0.5\n2,a,0.4,y\n",
    "names.csv": f"{HEADER},score,score\n1,a,0.5,1\n",
    "digits.csv": f"{HEADER},score\n1,a,1_000\n",
    "query.csv": "query,item_id,score\n1,a,1\n",
    "truth.csv": f"{HEADER},label,lang\n1,a,1,de\n1,b,0,en\n2,a,1,en\n",
    "found.csv": f"{HEADER},score\n1,b,9.5\n1,a,8\n2,a,3\n",
    "text.csv": f"{HEADER},score\n1,b,high\n",
    "nan.csv": f"{HEADER},score\n1,b,1\n1,c,nan\n",
    "twice.csv": f"{HEADER},score\n1,b,9.5\n1,b,8\n",
    "user.csv": "user,item_id,score\n1,b,9.5\n",
    "label=3.csv": "user,item_id,score\n1,b,9.5\n",
    "far.csv": f"{HEADER},score\n7,b,9.5\n",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("qrels nothing", "No such file or directory: 'nothing'"),
        ("qrels none.csv", "No such file or directory: 'none.csv'"),
        ("qrels none.parquet", "No such file or directory: 'none.parquet'"),
        ("qrels none.gz", "No such file or directory: 'none.gz'"),
        ("qrels one -m mapp", "Did you mean 'map'?"),
        ("qrels one two -q", "-q prints the queries of one run"),
        ("qrels one two --model model", "--model is for one table"),
        ("qrels one --by few", "none for the query '3'"),
        ("qrels one --by twice", "in 'twice', line 2: '1' with 'en', after 'de'"),
        ("qrels one --by lang", "'lang', which is no file, and judgments in 'qrels'"),
        ("qrels one --by lang.csv", "No such file or directory: 'lang.csv'"),
        ("qrels one --by ids", "a query and a slice. Received in 'ids', line 2: '2'"),
        ("no_id.csv one", "ids of queries must not be missing. Received: a missing one in row 1 of 'no_id.csv'."),
        ("qrels.csv one --query other", "--label in 'qrels.csv' must hold numbers. Received: 'x' in"),
        ("one qrels", "A line of judgments must have 4 fields"),
        ("qrels digits", "must be a number. Received in 'digits', line 1"),
        ("qrels many.csv", "as many fields as the first one, 3"),
        ("qrels more.csv", "Expected 3 fields in line 3, saw 4"),
        ("qrels names.csv", "different names. Received: 'score' twice"),
        ("qrels digits.csv", "1_000"),
        ("qrels query.csv", "The table is 'query.csv'"),
        ("truth.csv user.csv", "--query must name one column of the table. Received: --query query_id, for the columns 'user', 'item_id', 'score'. The table is 'user.csv'."),
        ("truth.csv label=3.csv", "The table is 'label=3.csv'."),
        ("truth.csv text.csv", "--score in 'text.csv' must hold numbers. Received: 'high' in row 0 of 'text.csv'."),
        ("truth.csv nan.csv", "--score in 'nan.csv' must hold numbers. Received: 'nan' in row 1 of 'nan.csv'."),
        ("truth.csv twice.csv", "must be in 'twice.csv' only once. Received: the query '1' with the item 'b' twice, the second time in row 1. If the rows are of several models, name their column: --model."),
        ("truth.csv found.csv twice.csv", "must be in 'twice.csv' only once."),
        ("truth.csv far.csv", "'truth.csv' and 'far.csv' must have queries in common."),
        ("truth.csv found.csv --by lang", "--by must have the same value in all rows of a query. Received: 'lang' with the value 'de' in row 0, and 'en' in row 1 of the same query. If they are models, pass --model."),
        ("truth.csv found.csv --by langu", "--by must name one column of the table. Received: --by langu, for the columns"),
        ("truth.csv found.csv --by fewer", "--by must contain a slice for each query of 'truth.csv'."),
        ("qrels one two --convention trec_eval", "Pass --unpaired drop to leave them out. To evaluate queries without predictions as empty results, pass --missing-queries zero."),
        ("qrels one -m arp", "Omit this metric, or pass --missing-queries skip."),
        ("qrels one --missing-queries error", "With --missing-queries error, every query must have predictions."),
        ("qrels one two --gate not_worse --margin 2", "--margin must be below 1:"),
        ("qrels two same -m arp --test wilcoxon", "Pass --test randomization, which uses the weights."),
        ("qrels one -m coverage@3", "Pass --num-items V."),
        ("qrels one -m ndcg --gain 0,1", "--gain must have a gain for each grade. It has one for 0, 1. Received: the grade 2"),
        ("qrels one --worst 0", "--worst must be at least 1"),
        ("qrels one --worst 2 -q", "--worst and --explain replace the values"),
        ("qrels one two --worst 2 --people qrels", "Received: --people. Pass its file first instead."),
        ("qrels one --explain 1 --people qrels", "Received: --people. Pass its file first instead."),
        ("qrels one --worst 2 --explain 1", "Received: --worst and --explain."),
        ("qrels one --explain 9", "must be the id of an evaluated query"),
        ("qrels one -m novelty --popularity ids", "A line of numbers must contain an item and a number. Received in 'ids', line 2: '2'"),
        ("qrels one -m novelty --popularity by", "a number above 0 and at most 1 for each item"),
        ("qrels one --gain linear", "Set it on a metric object, or omit it. Write options without a flag in a name, as in -m 'map(ties=stable)'. Metric objects are for Python's"),
        ("qrels one -m err --convention trec_eval", "write the convention in the other names, as in 'ndcg(convention=trec_eval)'."),
        ("qrels", "One file must be a table with labels and scores"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_line_that_names_flags_and_files(capsys, arguments, message):
    write(**FILES)
    metric = [] if "-m mapp" in arguments else ["-m", "map"]
    status, out, err = run(capsys, *arguments.split(), *metric)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert "`" not in err


@pytest.mark.filterwarnings("default")
def test_warnings_name_flags_and_files(capsys):
    write(graded="1 0 a 5\n2 0 a 90\n3 0 a 7\n", other="1 Q0 z 1 3 t\n")
    _, _, err = run(capsys, "graded", "two", "-m", "ndcg")
    assert "pass --gain linear." in err
    _, _, err = run(capsys, "graded", "two", "-m", "ndcg", "--gain", "linear")
    assert "warning" not in err
    _, _, err = run(capsys, "qrels", "other", "-m", "map")
    assert "ids of 'qrels' and 'other' are probably different." in err


def rows_of(text):
    return [*csv.DictReader(io.StringIO(text))]


def test_formats_of_one_run(capsys):
    arguments = "qrels", "one", "-m", "map", "-q", "--format"
    expected = {"1": 0.5, "2": 1, "3": 0, "all": 0.5}
    _, out, err = run(capsys, *arguments, "json")
    rows = json.loads(out)["values"]
    assert {row["query"]: row["value"] for row in rows} == expected
    assert "1 of 3 judged queries" in err
    _, out, _ = run(capsys, *arguments, "csv")
    assert {row["query"]: float(row["value"]) for row in rows_of(out)} == expected
    _, out, _ = run(capsys, *arguments, "markdown")
    assert out.splitlines()[-1] == "| map | all | 0.5000 |"
    _, out, _ = run(capsys, *arguments, "latex")
    assert r"map & all & 0.5000 \\" in out
    third = "qrels", "third", "-m", "mrr", "--format", "csv"
    write(third="1 Q0 b 1 9 t\n1 Q0 c 2 8 t\n1 Q0 a 3 7 t\n")
    _, out, _ = run(capsys, *third, "--missing-queries", "skip")
    assert float(rows_of(out)[0]["value"]) == 1 / 3  # all digits


def test_formats_of_slices_and_of_a_comparison(capsys):
    arguments = "qrels", "one", "-m", "map", "--by", "by", "--format"
    expected = [("de", 1, 0.5), ("en", 2, 0.5), ("all", 3, 0.5)]
    _, out, _ = run(capsys, *arguments, "json")
    assert [(*row.values(),) for row in json.loads(out)["values"]] == expected
    _, out, _ = run(capsys, *arguments, "csv")
    assert rows_of(out)[0] == {"slice": "de", "queries": "1", "map": "0.5"}
    arguments = "qrels", "one", "two", "-m", "map", "--gate", "better", "--format"
    status, out, _ = run(capsys, *arguments, "json")
    found = json.loads(out)
    assert status == 1
    assert [row["mean"] for row in found["means"]] == [0.5, 1]
    (difference,) = found["differences"]
    assert (difference["model"], difference["than"]) == ("two", "one")
    assert (difference["difference"], difference["p"]) == (0.5, 0.5)
    assert [each["passed"] for each in found["decisions"]] == [False]
    status, out, err = run(capsys, *arguments, "csv")
    (row,) = rows_of(out)
    assert (status, float(row["difference"])) == (1, 0.5)
    assert "\nFailed: map of 'two'" in err


def test_numbers_that_json_lacks_are_null(capsys):
    """One query has no interval."""
    write(single="1 0 a 1\n")
    _, out, _ = run(capsys, "single", "one", "two", "-m", "map", "--format", "json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert found["means"][0]["low"] is None
    _, out, _ = run(capsys, "single", "one", "two", "-m", "map", "--format", "csv")
    assert rows_of(out)[0]["low"] == ""


def test_the_test_and_the_correction_are_those_of_compare(capsys):
    arguments = "--test", "wilcoxon", "--correction", "bh"
    _, out, _ = run(capsys, "qrels", "one", "two", "-m", "map", "-m", "mrr", *arguments)
    assert (
        "Wilcoxon's signed-rank test; p-values adjusted for 2 comparisons (bh)" in out
    )


MODELS = {"a": {"map": [0.0, 1.0]}, "b": {"map": [1.0, 0.5]}}
CHOICES = {
    "--test": lambda choice: trm.compare(MODELS, test=choice),
    "--correction": lambda choice: trm.compare(MODELS, correction=choice),
    "--pairs": lambda choice: trm.compare(MODELS, pairs=choice),
    "--unpaired": lambda choice: trm.compare(MODELS, unpaired=choice),
    "--gate": lambda choice: trm.compare(MODELS).gate("map", "a", policy=choice),
    "--missing-queries": lambda choice: trm.evaluate_run(
        {}, {}, ["map"], missing_queries=choice
    ),
}


def test_people_correct_a_judge(capsys, tmp_path):
    """The judge finds b relevant, too, and people graded 12 of 30 queries."""
    queries = range(30)
    judged = "".join(f"{q} 0 a 1\n{q} 0 b {q % 3 % 2}\n" for q in queries)
    lines = [
        "".join(f"{q} Q0 {'ab'[q % each]} 1 2 t\n" for q in queries) for each in (1, 2)
    ]
    people = "".join(f"{q} 0 a 1\n" for q in queries[::2])
    write(
        judged=judged,
        people=people,
        one=lines[0],
        two=lines[1],
        by="".join(f"{q} {'xy'[q > 14]}\n" for q in queries),
    )

    def values(qrels, names, **options):
        return {
            name: trm.evaluate_run(qrels, name, ["mrr"], per_query=True, **options)
            for name in names
        }

    for names in (["one", "two"], ["one"]):
        expected = trm.compare(values("judged", names), people=values("people", names))
        arguments = "judged", *names, "-m", "mrr", "--people", "people"
        _, out, err = run(capsys, *arguments)
        assert (out, err) == (f"{expected!r}\n", "")
        _, out, _ = run(capsys, *arguments, "--format", "json")
        assert [each["bias"] for each in json.loads(out)["judge"]] == [
            each.bias for each in expected.judge
        ]
    slices = dict(line.split() for line in pathlib.Path("by").read_text().splitlines())
    judge = values("judged", ["one"], by=slices)
    expected = trm.compare(judge, people=values("people", ["one"]), by="slice")
    _, out, _ = run(capsys, *arguments, "--by", "by")
    assert out == f"{expected!r}\n"
    table = pd.DataFrame(
        {
            "query_id": [*map(str, queries)] * 2,
            "item_id": ["a"] * 30 + ["b"] * 30,
            "label": [1] * 30 + [0] * 30,
            "score": [2.0] * 60,
        }
    )
    table.to_csv("table.csv", index=False)
    status, out, _ = run(capsys, "table.csv", "-m", "mrr", "--people", "people")
    assert (status, "table" in out) == (0, True)
    models = pd.concat([table.assign(model=name) for name in ("m", "n")])
    models.to_csv("models.csv", index=False)
    _, out, _ = run(
        capsys, "models.csv", "--model", "model", "-m", "mrr", "--people", "people"
    )
    assert "n - m" in out
    for wrong, message in (
        ("--test wilcoxon", "--test with --people must be 't'."),
        ("-q", "--by or --people"),
    ):
        _, _, err = run(capsys, *arguments, *wrong.split())
        assert message in err


@pytest.mark.parametrize("flag", CHOICES)
def test_a_flag_has_the_choices_of_its_argument(capsys, flag):
    with pytest.raises(SystemExit):
        main(["qrels", "one", "-m", "map", flag, "no"])
    of_flag = capsys.readouterr().err.rpartition("choose from")[2]
    with pytest.raises(ValueError, match="must be one of") as error:
        CHOICES[flag]("no")
    of_argument = str(error.value).partition("Received")[0]
    assert re.findall(r"\w+", of_flag) == re.findall(r"'(\w+)'", of_argument)


JUDGED = [("1", "a", 1, 8), ("1", "b", 0, 9.5), ("2", "a", 1, 3), ("3", "x", 2, 1)]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.csv.gz"])
def test_one_table_of_labels_and_scores(capsys, name):
    """MAP is (0.5 + 1 + 1) / 3."""
    table = pd.DataFrame(JUDGED, columns=["query_id", "item_id", "label", "score"])
    table["lang"] = ["de", "de", "en", "en"]

    def save(frame):
        if name.endswith("parquet"):
            frame.to_parquet(name)
        else:
            frame.to_csv(name, index=False, sep="\t" if "tsv" in name else ",")

    save(table)
    _, out, err = run(capsys, name, "-m", "map")
    assert (out.split(), err) == (["map", "all", "0.8333"], "")
    _, out, _ = run(capsys, name, "-m", "map", "--by", "lang")
    assert words_of(out)[1:3] == [["de", "1", "0.5000"], ["en", "2", "1.0000"]]
    save(table.drop(columns="item_id"))
    _, out, err = run(capsys, name, "-m", "map")
    assert (out.split(), err) == (["map", "all", "0.8333"], "")
    # trec_eval orders ties by the ids of items.
    status, _, err = run(capsys, name, "-m", "map", "--convention", "trec_eval")
    assert (status, "--item must name one column" in err) == (2, True)
    save(table.drop(columns="label"))
    status, _, err = run(capsys, name, "-m", "map")
    assert (status, f"The table is {name!r}." in err) == (2, True)


def test_one_table_of_several_models(capsys):
    """Each model repeats the judgments."""
    rows = [
        (query, item, label, score * sign, model)
        for model, sign in (("A", 1), ("B", -1))
        for query, item, label, score in JUDGED
    ]
    names = ["query_id", "item_id", "label", "score", "model"]
    pd.DataFrame(rows, columns=names).to_csv("t.csv", index=False)
    arguments = "t.csv", "-m", "mrr", "--model", "model", "--format", "json"
    _, out, err = run(capsys, *arguments)
    means = [row["mean"] for row in json.loads(out)["means"]]
    assert (means, err) == ([pytest.approx(2.5 / 3), 1], "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.csv", '1,"de, at"\n2,en\n3,en\n'),
        ("s.tsv", "\n1\tde, at\r\n2\ten\r\n3\ten\r\n"),
        ("s.txt", "1 de, at\n2 \ten\n\n3 en\n"),
        ("s.csv.gz", '\ufeff1,"de, at"\n2,en\n3,en\n'),
        ("with_names.csv", 'query_id,slice\n1,"de, at"\n2,en\n3,en\n'),
    ],
)
def test_slices_with_and_without_names_of_columns(capsys, name, text):
    content = text.encode()
    content = gzip.compress(content) if name.endswith("gz") else content
    pathlib.Path(name).write_bytes(content)
    _, out, _ = run(
        capsys, "qrels", "one", "-m", "map", "--by", name, "--format", "csv"
    )
    rows = rows_of(out)
    assert [row["slice"] for row in rows] == ["de, at", "en", "all"]
    assert [row["queries"] for row in rows] == ["1", "2", "3"]


def test_a_column_of_the_judgments_or_a_file_of_its_name(capsys):
    judged = {"query_id": [1, 1, 2, 3], "item_id": [*"abax"], "label": [1, 0, 1, 2]}
    judged["by"] = [*"xxyy"]
    pd.DataFrame(judged).to_csv("q.csv", index=False)
    arguments = "q.csv", "one", "-m", "map", "--by", "by"
    _, out, _ = run(capsys, *arguments)  # the file
    assert words_of(out)[1:3] == [["de", "1", "0.5000"], ["en", "2", "0.5000"]]
    pathlib.Path("by").unlink()
    _, out, _ = run(capsys, *arguments)
    assert words_of(out)[1:3] == [["x", "1", "0.5000"], ["y", "2", "0.5000"]]
    status, _, err = run(capsys, "qrels", "one", "-m", "map", "--by", "by")
    assert (status, "Received: 'by', which is no file" in err) == (2, True)


@pytest.mark.parametrize("start", ["# a comment\n", "\n", "\ufeff", "# a\n\n# b\n"])
def test_a_tsv_file_of_trec_may_start_with_other_lines(capsys, start):
    qrels, found = (start + TREC[name] for name in ("qrels.tsv", "run.tsv"))
    for name, text in {"qrels.tsv": qrels, "run.tsv": found}.items():
        pathlib.Path(name).write_text(text, encoding="utf-8")
    _, out, err = run(capsys, "qrels.tsv", "run.tsv", "-m", "mrr")
    assert (out.split(), err) == (["mrr", "all", "0.7500"], "")


@pytest.mark.parametrize(
    ("flag", "start"),
    [
        ("--version", f"tfrankmetrics {trm.__version__}\n"),
        ("--help", "usage: tfrankmetrics "),
    ],
)
def test_version_and_help_are_fast(capsys, flag, start):
    """In processor time, less than 0.15 s, in one of three runs, as others run, too."""
    command = [sys.executable, "-m", "tfrankmetrics", flag]
    for _ in range(3):
        before = os.times()
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        after = os.times()
        assert out.startswith(start)
        if sum(after[2:4]) - sum(before[2:4]) < 0.15:
            return
    pytest.fail("none took less than 0.15 s")


@pytest.mark.parametrize(
    ("suffix", "module"), [(".gz", gzip), (".bz2", bz2), (".XZ", lzma)]
)
def test_compressed_files(capsys, suffix, module):
    tables = {"t.csv": "query_id,item_id,score\n1,b,9.5\n1,a,8\n2,a,3\n"}
    for name in ("qrels", "one", "two", "by", *tables):
        text = tables.get(name) or pathlib.Path(name).read_text()
        pathlib.Path(name + suffix).write_bytes(module.compress(text.encode()))
    files = [name + suffix for name in ("qrels", "one", "t.csv", "two")]
    arguments = ["-m", "map", "--by", f"by{suffix}"]
    _, out, _ = run(capsys, *files[:2], *arguments)
    assert out == run(capsys, "qrels", "one", *arguments[:2], "--by", "by")[1]
    _, out, _ = run(capsys, *files, "-m", "map")
    pathlib.Path("t.csv").write_text(tables["t.csv"])
    assert out == run(capsys, "qrels", "one", "t.csv", "two", "-m", "map")[1]


def test_help_and_wrong_arguments_import_neither_numpy_nor_tensorflow():
    code = """if 1:
        import sys
        from tfrankmetrics.__main__ import main
        for arguments in (["--help"], ["--version"], ["qrels"], ["qrels", "one", "-m", "map", "--x"]):
            try:
                main(arguments)
            except SystemExit:
                continue
            raise AssertionError(arguments)
        assert not {"numpy", "tensorflow", "keras"} & {*sys.modules}
        main(["qrels", "one", "-m", "ndcg@10", "--by", "by"])
        assert "numpy" in sys.modules
        assert not {"tensorflow", "keras", "pandas", "scipy"} & {*sys.modules}
        """
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_missing_slices_of_a_table(capsys):
    write(**{"by.csv": "query_id,year\n1,2020\n2,\n3,2021\n"})
    _, out, _ = run(capsys, "qrels", "two", "-m", "map", "--by", "by.csv")
    names = [words[0] for words in words_of(out)]
    assert names == ["year", "2020.0", "2021.0", "None", "all"]


def test_a_byte_order_mark_is_no_part_of_a_query(capsys):
    for name, text in (
        ("qrels", "1 0 a 1\n2 0 a 1\n"),
        ("old", "1 Q0 a 1 3 t\n2 Q0 a 1 3 t\n"),
        ("by", "1 en\n2 de\n"),
    ):
        pathlib.Path(name).write_text(text, encoding="utf-8-sig")
    status, out, err = run(capsys, "qrels", "old", "-m", "mrr", "--by", "by")
    assert (status, err) == (0, "")
    assert "en" in out


def test_a_table_of_several_models_is_compared(capsys):
    rows = [(q, i, 0.1 * n, m) for m in "AB" for n, (q, i) in enumerate(["1a", "2a"])]
    table = pd.DataFrame(rows, columns=["query_id", "item_id", "score", "model"])
    table.to_csv("run.csv", index=False)
    status, out, err = run(capsys, "qrels", "run.csv", "-m", "mrr", "--model", "model")
    assert (status, err) == (0, "")
    assert "A (a)" in out
    assert "B - A" in out


def test_queries_of_some_runs_are_dropped(capsys):
    runs = "qrels", "one", "two", "-m", "map", "--convention", "trec_eval"
    status, out, _ = run(capsys, *runs, "--unpaired", "drop")
    assert status == 0
    assert "two - one" in out


def test_a_gate_reads_the_weights_of_runs(capsys):
    """OPA of each query is the same in both runs, which have 1 or 21 pairs.

    The old run has the long lists where OPA is 1, and the new one where it is 0.
    """
    numbers = range(20)
    write(q="".join(f"{query} 0 a 1\n{query} 0 b 0\n" for query in numbers))
    for run_name, odd in (("old", 0), ("new", 1)):
        lines = []
        for query in numbers:
            best = ["a", "b"] if query % 2 == 0 else ["b", "a"]
            more = [f"d{i}" for i in range(20)] if query % 2 == odd else []
            items = best + more if query % 2 == 0 else more + best
            lines += [f"{query} Q0 {item} 1 {-i} t" for i, item in enumerate(items)]
        write(**{run_name: "\n".join(lines)})
    gate = "--gate", "not_worse", "--margin", "0.01"
    status, out, _ = run(capsys, "q", "old", "new", "-m", "opa", *gate)
    assert status == 1
    assert (
        "Failed: opa of 'new' is worse than that of 'old' by 0.01 or more: its" in out
    )
    assert f"improvement is {1 / 22 - 21 / 22:.4f}" in out


GATE = ["-m", "mrr", "--gate", "not_worse", "--margin", "0.01"]


def write_runs_of_a_gate():
    """A run that is perfect, and one in which the relevant item comes last."""
    pairs = [(query, item) for query in range(30) for item in range(5)]
    write(q="".join(f"{q} 0 d{i} {int(i == 0)}\n" for q, i in pairs))
    for name, sign in (("good", -1), ("good2", -1), ("bad", 1)):
        write(**{name: "".join(f"{q} Q0 d{i} 1 {sign * i} t\n" for q, i in pairs)})


def status_with(arguments, **streams):
    command = [sys.executable, "-m", "tfrankmetrics", *arguments]
    return subprocess.run(command, **{"stderr": subprocess.PIPE, **streams})


@pytest.mark.skipif(os.name == "nt", reason="the shell of Windows closes no streams")
def test_no_closed_stream_changes_the_verdict_of_a_gate():
    write_runs_of_a_gate()
    passed = ["q", "good", "good2", *GATE]
    assert status_with(passed, stdout=subprocess.PIPE).returncode == 0
    arguments = ["q", "good", "bad", *GATE]
    assert status_with(arguments, stdout=subprocess.PIPE).returncode == 1
    for closed in ("stdout", "stderr"):
        reader, writer = os.pipe()
        os.close(reader)  # as `head` has, after its first line
        done = status_with(arguments, **{"stdout": subprocess.PIPE, closed: writer})
        os.close(writer)
        assert done.returncode == 1, closed
        assert b"Traceback" not in (done.stderr or b"")
    shell = " ".join([sys.executable, "-m", "tfrankmetrics"])
    for line, expected in (
        (f"{shell} {' '.join(arguments)} >&-", 1),
        (f"{shell} {' '.join(arguments)} 2>&-", 1),
        (f"{shell} {' '.join(arguments)} >&- 2>&-", 1),
        (f"{shell} {' '.join(passed)} >&-", 0),
    ):
        done = subprocess.run(line, shell=True, capture_output=True)
        assert done.returncode == expected, line
        assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        done = status_with(["qrels", "two", "-m", "mrr"], stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: ")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    pathlib.Path("by").write_text("1 ä\n2 b\n3 b\n", encoding="utf-8")
    arguments = ["qrels", "two", "-m", "mrr", "--by", "by"]
    done = status_with(arguments, stdout=subprocess.PIPE, env=ascii_only)
    assert (done.returncode, b"\\xe4" in done.stdout) == (0, True)


def damaged_files():
    run = "".join(
        f"{q} Q0 d{i} 1 {(7 * q + 3 * i) % 11}.5 t\n"
        for q in range(99)
        for i in range(9)
    ).encode()
    of_gzip, of_lzma = bytearray(gzip.compress(run)), bytearray(lzma.compress(run))
    of_gzip[60] ^= 255
    of_lzma[40] ^= 255
    return {
        "cut.run.gz": gzip.compress(run)[:100],
        "cut.run.bz2": bz2.compress(run)[:60],
        "cut.run.xz": lzma.compress(run)[:60],
        "text.run.gz": run,
        "text.run.xz": run,
        "bad.run.gz": bytes(of_gzip),
        "bad.run.xz": bytes(of_lzma),
        "cut.csv.gz": gzip.compress(b"query_id,item_id,score\n" + run)[:100],
        "bytes.csv": b"query_id,item_id,score\n1,\xff,0.5\n",
        "quotes.csv": b'query_id,item_id,score\n1,"a,0.5\n',
        "text.parquet": run,
        "empty.csv": b"",
        "bytes.run": b"1 Q0 \xff 1 0.5 t\n",
    }


@pytest.mark.parametrize("name", damaged_files())
def test_a_damaged_file_is_one_line_with_its_name(capsys, name, tmp_path):
    pathlib.Path(name).write_bytes(damaged_files()[name])
    status, out, err = run(capsys, "qrels", name, "-m", "map")
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert name in err
    assert err.count("\n") == 1
    with pytest.raises(ValueError, match=name):
        trm.evaluate_run(tmp_path / "qrels", tmp_path / name, ["map"])
    if name.rpartition(".")[0].endswith("run"):
        with pytest.raises(ValueError, match=name):
            trm.read_trec("qrels", name)
        status, _, err = run(capsys, "qrels", "two", "-m", "map", "--by", name)
        assert (status, name in err) == (2, True)


TREC = {"qrels.tsv": "30\t0\t706\t1\n12\t0\t707\t1\n"}
TREC["run.tsv"] = (
    "30\tQ0\t706\t1\t9.1\tx\n12\tQ0\t7\t1\t8.2\tx\n12\tQ0\t707\t2\t8.1\tx\n"
)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "csv.gz", "trec"])
def test_the_command_and_evaluate_run_read_the_same_files(capsys, kind, tmp_path):
    qrels = pd.DataFrame({"query_id": [30, 12], "item_id": [706, 707], "label": [1, 1]})
    found = pd.DataFrame(
        {"query_id": [30, 12, 12], "item_id": [706, 7, 707], "score": [9.1, 8.2, 8.1]}
    )
    files = [f"qrels.{kind}", f"run.{kind}"]
    if kind == "trec":
        files = [*TREC]
        for name, text in TREC.items():
            pathlib.Path(name).write_text(text)
    for frame, name in zip((qrels, found), files):
        if kind == "parquet":
            frame.to_parquet(name)
        elif kind != "trec":
            frame.to_csv(name, index=False, sep="\t" if kind == "tsv" else ",")
    status, out, err = run(capsys, *files, "-m", "mrr")
    assert (status, out.split(), err) == (0, ["mrr", "all", "0.7500"], "")
    paths = [tmp_path / name for name in files]
    assert trm.evaluate_run(*paths, ["mrr"]) == {"mrr": 0.75}
    by_query = trm.evaluate_run(*paths, ["mrr"], per_query=True)
    assert by_query["query"].tolist() == ["30", "12"]  # ids in files are text
    assert trm.explain_run(*paths, "mrr", "12").value == 0.5
    if kind != "trec":
        by = trm.evaluate_run(*paths, ["mrr"], by="label", sample_weight="label")
        assert by.whole == {"mrr": 0.75}


def test_an_empty_field_at_the_end_of_each_line_is_no_column(capsys):
    pathlib.Path("q.csv").write_text("query_id,item_id,label\n1,2,1\n2,1,1\n")
    pathlib.Path("r.csv").write_text(
        "query_id,item_id,score\n1,2,0.5,\n1,3,0.4,\n2,1,0.3,\n"
    )
    _, out, err = run(capsys, "q.csv", "r.csv", "-m", "map")
    assert (out.split(), err) == (["map", "all", "1.0000"], "")
