"""Tests what the examples show in a terminal."""

import os
from types import SimpleNamespace

from terminal import one_line, quiet


def test_lines_of_c_code_are_hidden_while_tensorflow_is_imported(capfd):
    with quiet():
        os.write(2, b"hidden\n")
    os.write(2, b"shown\n")
    assert capfd.readouterr().err == "shown\n"


def test_each_epoch_is_a_line_and_early_stopping_is_explained(capsys):
    stop = SimpleNamespace(
        monitor="val_ndcg@10", patience=3, best_epoch=7, stopped_epoch=0
    )
    callback = one_line(["loss", "val_ndcg@10"], stop)
    callback.on_epoch_end(9, {"loss": 0.5, "other": 1.0, "val_ndcg@10": 0.25})
    callback.on_train_end({})
    assert capsys.readouterr().out == "epoch 10  loss 0.5000  val_ndcg@10 0.2500\n"
    stop.stopped_epoch = 10
    callback.on_train_end({})
    assert capsys.readouterr().out == (
        "Stopped: val_ndcg@10 got no better for 3 epochs. "
        "The weights of epoch 8 are kept.\n"
    )
