"""What the examples show in a terminal while they start and train."""

import contextlib
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # what TensorFlow writes later


@contextlib.contextmanager
def quiet():
    """Hides stderr. Importing TensorFlow writes lines there that no setting stops."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def one_line(names, stop):
    """A callback that prints these logs after each epoch, and why `stop` stopped.

    Keras's own line shows all logs: with six metrics it is longer than a terminal.
    """
    from tensorflow.keras.callbacks import LambdaCallback

    def show(epoch, logs):
        values = [f"{name} {logs[name]:.4f}" for name in names]
        print(f"epoch {epoch + 1:2d}  {'  '.join(values)}", flush=True)

    def explain(logs):
        if stop.stopped_epoch:
            print(
                f"Stopped: {stop.monitor} got no better for {stop.patience} epochs. "
                f"The weights of epoch {stop.best_epoch + 1} are kept."
            )

    return LambdaCallback(on_epoch_end=show, on_train_end=explain)
