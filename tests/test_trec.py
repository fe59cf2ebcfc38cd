"""Tests of reading TREC files of unusual content."""

import math

import pytest

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


@pytest.mark.parametrize("score", [b"-1e39", b"-1e400", b"-inf"])
def test_low_scores_are_retrieved(files, score):
    """float32, the precision of trec_eval, would turn them into -inf."""
    rows = tfr.read_trec(*files(run=RUN.replace(b"2.0", score)))
    assert tfr.evaluate_rows(*rows, metrics=["AP"]) == {"map": 0.5}


def test_only_documents_outside_the_run_are_not_retrieved(files):
    rows = tfr.read_trec(*files(run=b"q1 Q0 b 1 3.0 tag\n"))
    assert rows.scores.tolist() == [3.0, -math.inf]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (RUN + b"q1 Q0 \xff 3 1.0 tag\n", r"must be UTF-8.*run', line 3: .*0xff"),
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
