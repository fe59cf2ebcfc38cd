"""Tests of reading TREC files of unusual content."""

import math
import os
import re

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import tfrankmetrics as tfr

QRELS = b"q1 0 a 1\nq1 0 b 0\n"
RUN = b"q1 Q0 a 1 2.0 tag\nq1 Q0 b 2 3.0 tag\n"


@pytest.fixture
def files(tmp_path):
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
    rows = tfr.read_trec(*files(**content))
    assert rows.query_ids.tolist() == ["q1", "q1"]
    assert tfr.evaluate_rows(*rows, metrics=["AP"]) == {"map": 0.5}


def test_blank_lines_are_skipped(files):
    rows = tfr.read_trec(
        *files(QRELS + b"\n \n", b"\r\n" + RUN.replace(b"\n", b"\n\n"))
    )
    assert rows.scores.tolist() == [3, 2]


@pytest.mark.parametrize("score", [b"-1e39", b"-1e400", b"-inf"])
def test_low_scores_are_retrieved(files, score):
    """float32, the precision of trec_eval, would turn them into -inf."""
    rows = tfr.read_trec(*files(run=RUN.replace(b"2.0", score)))
    assert tfr.evaluate_rows(*rows, metrics=["AP"]) == {"map": 0.5}


def test_only_documents_outside_the_run_are_not_retrieved(files):
    rows = tfr.read_trec(*files(run=b"q1 Q0 b 1 3.0 tag\n"))
    assert rows.scores.tolist() == [3.0, -math.inf]


def test_queries_without_results_count_if_complete(files):
    paths = files(qrels=QRELS + b"q2 0 a 1\n", run=RUN + b"q3 Q0 a 1 2.0 tag\n")
    assert tfr.read_trec(*paths).query_ids.tolist() == ["q1", "q1"]
    rows = tfr.read_trec(*paths, complete=True)
    assert rows.query_ids.tolist() == ["q1", "q1", "q2"]
    assert tfr.evaluate_rows(*rows, metrics=["AP"]) == {"map": (1 / 2 + 0) / 2}


def test_results_that_were_not_judged(files):
    """A negative judgment marks a document that was not judged."""
    qrels = QRELS + b"q1 0 c -1\n"
    run = RUN + b"q1 Q0 c 3 4.0 tag\nq1 Q0 d 4 5.0 tag\n"
    rows = tfr.read_trec(*files(qrels, run))
    assert rows.labels.tolist() == [0, 0, 0, 1]  # d, c, b, a
    assert rows.scores.tolist() == [5, 4, 3, 2]
    judged = tfr.read_trec(*files(qrels, run), judged_only=True)
    assert judged.labels.tolist() == [0, 1]  # b, a
    assert judged.scores.tolist() == [3, 2]
    # A query with such judgments only is still counted.
    both = files(QRELS + b"q2 0 c -1\n", RUN + b"q2 Q0 c 1 4.0 tag\n")
    judged = tfr.read_trec(*both, judged_only=True)
    assert judged.query_ids.tolist() == ["q1", "q1", "q2"]
    assert tfr.evaluate_rows(*judged, ["bpref"])["bpref"] == 0.0  # as b ranks above a
    found = tfr.evaluate_rows(*judged, ["bpref"], per_query=True)
    assert found["bpref"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (RUN + b"q1 Q0 \xff 3 1.0 tag\n", r"must be UTF-8.*run', line 3: .*xff"),
        (
            RUN + b"q1 Q0 c 3 1.0\n",
            r"must have 6 fields.*run', line 3: 'q1 Q0 c 3 1.0'",
        ),
        (RUN + b"q1 Q0 c 3 high tag\n", r"Field 5 .* must be a number.*line 3"),
        (RUN + RUN, "only once in a query.*line 3"),
        (b"\x00" * 10**6, "must have 6 fields"),
        (b"z" * 10**6, "must have 6 fields"),
    ],
)
def test_malformed_files_raise(files, run, message):
    with pytest.raises(ValueError, match=message) as error:
        tfr.read_trec(*files(run=run))
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    "space", ["\xa0", "\u3000", "\u2009", "\x85", "\u2028", "\x1c"]
)
def test_only_ascii_space_separates_fields(files, space):
    """As in C. The rank of a shifted line would be read as the score."""
    name = f"a{space}b"
    qrels = f"q1 0 {name} 1\nq1 0 c 0\n".encode()
    run = f"q1 Q0 {name} 9 1.0 tag\nq1\tQ0\vc\f1 2.0 tag\r\n".encode()
    rows = tfr.read_trec(*files(qrels, run))
    assert rows.scores.tolist() == [2, 1]
    assert rows.labels.tolist() == [0, 1]


@pytest.mark.parametrize("relevance", [b"nan", b"inf", b"1e400", b"9" * 5000, b"x"])
def test_a_relevance_must_be_a_finite_number(files, relevance):
    qrels = QRELS + b"q1 0 c " + relevance + b"\n"
    with pytest.raises(ValueError, match=r"finite|number.*qrels', line 3") as error:
        tfr.read_trec(*files(qrels=qrels))
    assert len(str(error.value)) < 1000


def test_scores_of_many_digits_are_infinite(files):
    rows = tfr.read_trec(*files(run=RUN.replace(b"2.0", b"9" * 5000)))
    assert rows.scores.tolist() == [3.0, math.inf]


def test_a_long_query_id_raises(files):
    """In an array, every row would take the space of the longest id."""
    longest = QRELS + b"q" * 1000 + b" 0 a 1\n"
    rows = tfr.read_trec(*files(qrels=longest), complete=True)
    assert rows.query_ids.tolist() == ["q1", "q1", "q" * 1000]
    qrels = QRELS + b"q" * 10**6 + b" 0 a 1\n"
    with pytest.raises(ValueError, match=r"at most 1000 .*line 3") as error:
        tfr.read_trec(*files(qrels=qrels))
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("content", [b" x" * 10**5, b" " * 10**7 + b"x", b"\x85x"])
def test_a_long_line_raises(files, content):
    with pytest.raises(ValueError, match=r"line 3") as error:
        tfr.read_trec(*files(qrels=QRELS + content))
    assert len(str(error.value)) < 1000


def test_empty_files_have_no_rows(files):
    rows = tfr.read_trec(*files(qrels=b"", run=b""))
    assert [len(column) for column in rows] == [0, 0, 0]
    assert math.isnan(tfr.evaluate_rows(*rows, metrics=["mrr"])["mrr"])


def test_a_folder_raises(files, tmp_path):
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        tfr.read_trec(tmp_path, files()[1])


def test_many_queries(files):
    lines = range(10**5)
    qrels = "".join(f"q{number} 0 a 1\n" for number in lines).encode()
    run = "".join(f"q{number} Q0 a 1 2.0 tag\n" for number in lines).encode()
    assert len(tfr.read_trec(*files(qrels, run)).labels) == 10**5


FIELDS = st.sampled_from([b"q1", b"0", b"1", b"nan", b"-inf"]) | st.binary(max_size=3)
LINES = st.lists(FIELDS, min_size=4, max_size=6).map(b" ".join)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(LINES, max_size=3).map(b"\n".join))
def test_random_bytes_are_read_or_raise(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("trec") / "file"
    path.write_bytes(content)
    for files in ((path, os.devnull), (os.devnull, path)):
        error = ""
        try:
            rows = tfr.read_trec(*files, complete=True)
            assert len(rows.labels) == len(rows.scores) <= len(content.splitlines())
        except ValueError as raised:
            error = str(raised)
        assert not error or re.search(r"file', line \d+", error)


def test_comments_and_trailing_words_are_read_as_trec_eval_reads_them(tmp_path):
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("# judged in 2026\n1 0 a#1 1\n#1 0 b 1\n1 0 c 0\n")
    run.write_text("1 Q0 a#1 1 3 tag of many words\n  # indented\n1 Q0 c 2 5 tag\n")
    rows = tfr.read_trec(qrels, run)
    assert [*zip(rows.labels.tolist(), rows.scores.tolist())] == [(0, 5), (1, 3)]
    qrels.write_text("1 0 a 1 more\n")  # trec_eval refuses a fifth word here
    with pytest.raises(ValueError, match="A line must have 4 fields"):
        tfr.read_trec(qrels, run)
