"""An iterator that can be saved, and goes on in another process exactly there.

What is saved is the state of `tf.data`: the place in the files, the block of
examples that is being shuffled, the rows of a packed window that were not used
yet, the counts of the pass. So a file is about as large as a block.
"""

import json
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import tensorflow as tf


class CheckpointableIterator:
  """Iterates over a dataset; `save` and `restore` keep the position.

  Close it, or use it in a `with`, when it was not used to its end: threads of
  `tf.data` that still run Python code can hang the exit of the interpreter.
  What nobody closed is closed when the interpreter exits.

  Example:
    with CheckpointableIterator(training_batches(examples, 16)) as batches:
      batches.restore("model_dir/data-10")
      first = next(batches)
      batches.save("model_dir/data-11")
  """

  def __init__(self, dataset: tf.data.Dataset, description: str = "") -> None:
    """Starts at the beginning.

    Args:
      dataset: what to iterate over.
      description: of everything that the order depends on, such as the seed
        and the batch size. A position that was saved under another description
        is refused.
    """
    spec = {k: str(v) for k, v in _flatten(dataset.element_spec).items()}
    self._description = json.dumps([description, spec], sort_keys=True)
    self._iterators = [iter(dataset)]
    self._close = weakref.finalize(self, self._iterators.clear)

  def __iter__(self) -> Iterator[Any]:
    return self

  def __next__(self) -> Any:
    return next(self.iterator)

  def __enter__(self) -> "CheckpointableIterator":
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
  ) -> None:
    self.close()

  def close(self) -> None:
    """Stops the threads that prepare elements; no element can follow."""
    self._close()

  def save(self, path: str) -> str:
    """Writes the position.

    Args:
      path: prefix of the files, `<path>.index` and `<path>.data-...`.

    Returns:
      The prefix.
    """
    if folder := path.rpartition("/")[0]:
      tf.io.gfile.makedirs(folder)
    return str(self._checkpoint().write(path))

  def restore(self, path: str) -> None:
    """Goes to a position that was saved, in this process or in another.

    Args:
      path: prefix that `save` was called with.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: if the position belongs to another dataset.
    """
    if not tf.io.gfile.exists(f"{path}.index"):
      raise FileNotFoundError(f"{path}.index: no saved data position there")
    saved = _saved_description(path)
    if saved != self._description:
      raise ValueError(
        f"the data position {path} was saved for another input pipeline: it "
        f"is {saved}, and this is {self._description}; use the data set, batch "
        "size, lengths and seed of before, or start without the position"
      )
    self._checkpoint().read(path).assert_consumed()

  @property
  def iterator(self) -> Any:
    """The iterator of `tf.data`, for use inside a `tf.function`."""
    if not self._iterators:
      raise ValueError("the iterator was closed; make another one")
    return self._iterators[0]

  def _checkpoint(self) -> tf.train.Checkpoint:
    description = tf.Variable(self._description, trainable=False)
    return tf.train.Checkpoint(iterator=self.iterator, description=description)


def _saved_description(path: str) -> str:
  try:
    (description,) = tf.raw_ops.RestoreV2(
      prefix=path,
      tensor_names=["description/.ATTRIBUTES/VARIABLE_VALUE"],
      shape_and_slices=[""],
      dtypes=[tf.string],
    )
  except tf.errors.NotFoundError:
    raise ValueError(f"{path} holds no data position") from None
  return str(description.numpy().decode())


def _flatten(spec: Any) -> dict[str, Any]:
  if isinstance(spec, tuple):
    return {
      f"{i}/{k}": v for i, s in enumerate(spec) for k, v in _flatten(s).items()
    }
  return dict(spec) if isinstance(spec, dict) else {"": spec}
