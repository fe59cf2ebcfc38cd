"""Tests of reading TREC files of unusual content."""

import math
import re

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import given, settings

import tfrankmetrics as trm
from tfrankmetrics.evaluation import trec_files

QRELS = b"q1 0 a 1\nq1 0 b 0\n"
RUN = b"q1 Q0 a 1 2.0 tag\nq1 Q0 b 2 3.0 tag\n"


@pytest.fixture(params=["pyarrow", "line by line"])
def files(tmp_path, monkeypatch, request):
    """Writes two files, which are read by pyarrow if it can."""
    monkeypatch.setattr(trec_files, "LARGE", 0 if request.param == "pyarrow" else 1e9)

    def write(qrels=QRELS, run=RUN):
        (tmp_path / "qrels").write_bytes(qrels)
        (tmp_path / "run").write_bytes(run)
        return tmp_path / "qrels", tmp_path / "run"

    return write


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"qrels": BOM + QRELS},
        {"run": BOM + RUN},
        {"qrels": BOM + QRELS.replace(b"\n", b"\r\n")},
        # Two files with a mark each, joined.
        {"run": BOM + RUN.replace(b"q1 Q0 b", BOM + b"q1 Q0 b")},
    ],
)
def test_byte_order_marks_are_no_part_of_an_id(files, content):
    rows = trm.read_trec(*files(**content))
    assert rows.query_ids.tolist() == ["q1", "q1"]
    assert trm.evaluate_rows(*rows, metrics=["AP"]) == {"AP": 0.5}


LOWEST = -3.4028234663852886e38  # of float32, the precision of trec_eval
BOTH = b"q1 Q0 c 3 4.0 tag\nq1 Q0 d 4 5.0 tag\n"


@pytest.mark.parametrize(
    ("qrels", "run", "labels", "scores", "average_precision"),
    [
        # Blank lines are skipped.
        (QRELS + b"\n \n", b"\r\n" + RUN.replace(b"\n", b"\n\n"), [1, 0], [2, 3], 1 / 2),
        # Low scores are retrieved. float32 would turn them into -inf.
        (QRELS, RUN.replace(b"2.0", b"-1e39"), [1, 0], [LOWEST, 3], 1 / 2),
        # The score -inf means that it was not retrieved.
        (QRELS, RUN.replace(b"2.0", b"-inf"), [1, 0], [-math.inf, 3], 0.0),
        (QRELS, RUN.replace(b"2.0", b"9" * 5000), [1, 0], [math.inf, 3], 1.0),
        (QRELS, b"q1 Q0 b 1 3.0 tag\n", [0, 1], [3, -math.inf], 0.0),
        # A negative judgment marks a document that was not judged.
        (QRELS + b"q1 0 c -1\n", RUN + BOTH, [1, 0, 0, 0], [2, 3, 4, 5], 1 / 4),
    ],
)  # fmt: skip
def test_unusual_files_that_are_read(
    files, qrels, run, labels, scores, average_precision
):
    rows = trm.read_trec(*files(qrels, run))
    assert rows.labels.tolist() == labels
    assert rows.scores.tolist() == scores
    assert trm.evaluate_rows(*rows, metrics=["AP"]) == {"AP": average_precision}


def test_queries_without_results_count_if_complete(files):
    paths = files(qrels=QRELS + b"q2 0 a 1\n", run=RUN + b"q3 Q0 a 1 2.0 tag\n")
    assert trm.read_trec(*paths).query_ids.tolist() == ["q1", "q1"]
    rows = trm.read_trec(*paths, complete=True)
    assert rows.query_ids.tolist() == ["q1", "q1", "q2"]
    assert trm.evaluate_rows(*rows, metrics=["AP"]) == {"AP": (1 / 2 + 0) / 2}


def test_results_that_were_not_judged_can_be_left_out(files):
    paths = files(QRELS + b"q1 0 c -1\n", RUN + BOTH)
    judged = trm.read_trec(*paths, judged_only=True)
    assert judged.labels.tolist() == [1, 0]
    assert judged.scores.tolist() == [2, 3]
    # A query with such judgments only is still counted.
    both = files(QRELS + b"q2 0 c -1\n", RUN + b"q2 Q0 c 1 4.0 tag\n")
    judged = trm.read_trec(*both, judged_only=True)
    assert judged.query_ids.tolist() == ["q1", "q1", "q2"]
    assert trm.evaluate_rows(*judged, ["bpref"])["bpref"] == 0.0  # as b ranks above a
    found = trm.evaluate_rows(*judged, ["bpref"], per_query=True)
    assert found["bpref"].tolist() == [0.0, 0.0]


def with_line(line):
    return QRELS + line + b"\n"


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        (QRELS, RUN + b"q1 Q0 \xff 3 1.0 tag\n", r"must be UTF-8.*run', line 3: .*xff"),
        (QRELS, RUN + b"q1 Q0 c 3 1.0\n", r"must have 6 fields.*run', line 3: 'q1 Q0 c 3 1.0'"),
        (QRELS, RUN + b"q1 Q0 c 3 high tag\n", r"Field 5 .* must be a number.*line 3"),
        (QRELS, RUN + RUN, "in `run` only once.*'q1'.*'a' twice.* line 3 of .*run'"),
        (b"# judged twice\n" + QRELS + QRELS, RUN, "in `qrels` only once.* line 4 of"),
        (QRELS, b"\x00" * 10**6, "must have 6 fields"),
        (QRELS, b"z" * 10**6, "must have 6 fields"),
        (with_line(b"q1 0 c nan"), RUN, "finite.*qrels', line 3"),
        (with_line(b"q1 0 c inf"), RUN, "finite.*qrels', line 3"),
        (with_line(b"q1 0 c 1e400"), RUN, "finite.*qrels', line 3"),
        (with_line(b"q1 0 c " + b"9" * 5000), RUN, "finite.*qrels', line 3"),
        (with_line(b"q1 0 c x"), RUN, "number.*qrels', line 3"),
        (with_line(b"q1 0 c 9007199254740992"), RUN, r"below 2\^53.*qrels', line 3"),
        (b"", RUN, "in common. Received: none in `qrels`"),
        (QRELS, b"\n", "in common. Received: 'q1' in `qrels`, and none in `run`"),
        (QRELS + b" x" * 10**5, RUN, "line 3"),
        (QRELS + b" " * 10**6 + b"x", RUN, "line 3"),
        (QRELS + b"\x85x", RUN, "line 3"),
    ],
)  # fmt: skip
def test_malformed_files_raise(files, qrels, run, message):
    with pytest.raises(ValueError, match=message) as error:
        trm.read_trec(*files(qrels, run))
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    "space", ["\xa0", "\u3000", "\u2009", "\x85", "\u2028", "\x1c"]
)
def test_only_ascii_space_separates_fields(files, space):
    """As in C. The rank of a shifted line would be read as the score."""
    name = f"a{space}b"
    qrels = f"q1 0 {name} 1\nq1 0 c 0\n".encode()
    run = f"q1 Q0 {name} 9 1.0 tag\nq1\tQ0\vc\f1 2.0 tag\r\n".encode()
    rows = trm.read_trec(*files(qrels, run))
    assert rows.scores.tolist() == [1, 2]
    assert rows.labels.tolist() == [1, 0]


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_end_in_any_way(files, end):
    qrels = f"q1 0 a 1{end}q1 0 c 0{end}".encode()
    run = f"q1 Q0 a 9 1.0 tag{end}q1 Q0 c 1 2.0 tag".encode()
    rows = trm.read_trec(*files(qrels, run))
    assert [rows.scores.tolist(), rows.labels.tolist()] == [[1, 2], [1, 0]]
    with pytest.raises(ValueError, match="line 2"):
        trm.read_trec(*files(qrels, run.replace(b"2.0", b"x")))


@pytest.mark.parametrize("name", ["complete", "judged_only"])
def test_arguments_are_booleans(files, name):
    with pytest.raises(ValueError, match=f"{name}='no'"):
        trm.read_trec(*files(), **{name: "no"})


def test_ids_of_any_length(files):
    long = "q" * 10**6
    paths = files(with_line(f"{long} 0 a 1".encode()))
    rows = trm.read_trec(*paths, complete=True)
    assert rows.query_ids.tolist() == ["q1", "q1", long]


def test_a_folder_of_other_files_raises(files, tmp_path):
    with pytest.raises(ValueError, match=f"complete.*{tmp_path.name}"):
        trm.read_trec(tmp_path, files()[1])


FIELDS = st.sampled_from([b"q1", b"0", b"1", b"nan", b"-inf"]) | st.binary(max_size=3)
LINES = st.lists(FIELDS, min_size=4, max_size=6).map(b" ".join)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("trec") / "file"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(LINES, max_size=3).map(b"\n".join))
def test_random_bytes_are_read_or_raise(path, content):
    path.write_bytes(content)
    for layout in (trec_files.QRELS, trec_files.RUN):
        error = ""
        try:
            found = trec_files.read_file(path, layout, {})
            assert len(found.queries) == len(found.items) == len(found.numbers)
        except ValueError as raised:
            error = str(raised)
        assert not error or re.search(r"file', line \d+", error)


def test_comments_and_trailing_words_are_read_as_trec_eval_reads_them(tmp_path):
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("# judged in 2026\n1 0 a#1 1\n#1 0 b 1\n1 0 c 0\n")
    run.write_text("1 Q0 a#1 1 3 tag of many words\n  # indented\n1 Q0 c 2 5 tag\n")
    rows = trm.read_trec(qrels, run)
    assert [*zip(rows.labels.tolist(), rows.scores.tolist())] == [(1, 3), (0, 5)]
    qrels.write_text("1 0 a 1 more\n")  # trec_eval refuses a fifth word here
    with pytest.raises(ValueError, match="must have 4 fields"):
        trm.read_trec(qrels, run)


def test_a_repeated_key_of_json_is_an_error(tmp_path):
    path = tmp_path / "qrels.json"
    for text in ('{"q": {"a": 1}, "q": {"b": 1}}', '{"q": {"a": 0, "b": 1, "a": 1}}'):
        path.write_text(text)
        with pytest.raises(
            ValueError, match=r"qrels\.json': the key '[qa]' occurs twice"
        ):
            trm.evaluate_run(path, {"q": {"a": 1.0}}, ["mrr"])


def test_a_run_of_lists_as_scores_is_an_error():
    for scores in ({"a": [1]}, {"a": [1], "b": [1, 2]}):
        with pytest.raises(ValueError, match=r"must hold numbers.*\[1\]"):
            trm.evaluate_run({"q": ["a"]}, {"q": scores}, ["mrr"])


def test_ranked_lists_and_files_of_ranks_are_the_best_first(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("q a 1\nq b 2\n")
    for run in (path, {"q": ["a", "b"]}):
        assert trm.evaluate_run({"q": ["a"]}, run, ["mrr"]) == {"mrr": 1.0}
        with pytest.raises(ValueError, match="`lower_is_better` is for scores"):
            trm.evaluate_run({"q": ["a"]}, run, ["mrr"], lower_is_better=True)


def test_integers_that_pandas_wrote_as_floats_are_integers(tmp_path):
    qrels, run = tmp_path / "qrels.csv", tmp_path / "run.csv"
    qrels.write_text("query_id,item_id,label\n1,10.0,1\n1,11.0,0\n")
    run.write_text("query_id,item_id,score\n1,10,1\n1,11,2\n")
    assert trm.evaluate_run(qrels, run, ["mrr"]) == {"mrr": 1 / 2}


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ([b"\xff", b"a"], "decode"),
        (pd.array([2**64 - 1, None], "UInt64"), "must not be missing"),
        ([1e20, 2.0], "queries in common"),
    ],
)
def test_ids_of_parquet_that_are_not_as_in_text(tmp_path, ids, error):
    path = tmp_path / "qrels.parquet"
    pd.DataFrame({"query_id": ids, "item_id": ["a", "b"], "label": 1}).to_parquet(path)
    with pytest.raises(ValueError, match=error):
        trm.evaluate_run(path, {"2": ["a"]}, ["mrr"])
