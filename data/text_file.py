r"""A text file as its lines, which end at \n and at nothing else.

Other readers take \r, form feeds, U+2028 and more for ends of lines, and then
two aligned files drift apart. Here a file is cut at \n only; a \r before it is
dropped (CRLF), any other stays. A byte order mark at the start goes, bytes that
are no UTF-8 become U+FFFD.

The file is looked through once when it is opened, for the number of lines and
for places to cut. After that a block of lines is a function of its number, so
that an input pipeline can be resumed in the middle of a file.
"""

import codecs
import gzip
import threading
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
import tensorflow as tf

from .files import open_binary

_BLOCK_BYTES = 1 << 18


class TextFile:
  r"""The lines of one file, plain or gzip.

  Attributes:
    path: where the file is.
    num_lines: how many lines it has; what follows the last \n is a line
      unless it is empty.
    num_blocks: how many blocks of whole lines it is read in.
  """

  def __init__(self, path: str) -> None:
    """Looks through the file.

    Args:
      path: an existing file; `*.gz` is decompressed.

    Raises:
      ValueError: if a `*.gz` cannot be decompressed.
    """
    self.path = path
    self._lock = threading.Lock()
    self._stream: BinaryIO | None = None
    try:
      with open_binary(path) as stream:
        self.num_lines, self._cuts = _look_through(stream)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
      raise ValueError(
        f"{path} is named .gz, and cannot be decompressed: {error}"
      ) from error
    self.num_blocks = len(self._cuts) - 1

  def lines(self) -> Iterator[str]:
    """The lines, without their ends."""
    for block in range(self.num_blocks):
      for line in self.read_block(block):
        yield line.decode()

  def read_block(self, block: int) -> list[bytes]:
    """The lines of a block, without their ends, as valid UTF-8."""
    text = self._bytes(block)
    if block == 0:
      text = text.removeprefix(codecs.BOM_UTF8)
    lines = text.removesuffix(b"\n").split(b"\n")
    return [_clean(line) for line in lines]

  def _bytes(self, block: int) -> bytes:
    start, end = self._cuts[block], self._cuts[block + 1]
    with self._lock:  # two iterators may read the same file
      if self._stream is None:
        self._stream = open_binary(self.path)
        self._close = weakref.finalize(self, self._stream.close)
      self._stream.seek(start)  # free where the block before ended
      text = self._stream.read(end - start)
      if block == self.num_blocks - 1:
        self._close()
        self._stream = None
    if len(text) != end - start:
      raise OSError(f"{self.path} became shorter while it was being read")
    return text


def lines_dataset(files: Sequence[TextFile]) -> tf.data.Dataset:
  """The lines of several files, one file after the other, as scalar strings.

  A saved iterator notes the number of a block and the line within it.
  """
  places = [
    (f, b) for f, file in enumerate(files) for b in range(file.num_blocks)
  ]

  def read(place: np.ndarray) -> np.ndarray:
    file, block = places[int(place)]
    return np.array(files[file].read_block(block), object)

  def lines(place: tf.Tensor) -> tf.Tensor:
    text = tf.numpy_function(read, [place], tf.string, stateful=False)
    return tf.ensure_shape(text, [None])

  return tf.data.Dataset.range(len(places)).map(lines).unbatch()


def _look_through(stream: BinaryIO) -> tuple[int, list[int]]:
  """The number of lines, and the offsets at which to cut between lines."""
  lines, offset, cuts, last = 0, 0, [0], b"\n"
  while block := stream.read(_BLOCK_BYTES):
    lines += block.count(b"\n")
    if b"\n" in block:
      cuts.append(offset + block.rindex(b"\n") + 1)
    offset += len(block)
    last = block[-1:]
  if last != b"\n":
    lines += 1
    cuts.append(offset)
  return lines, cuts


def _clean(line: bytes) -> bytes:
  return line.removesuffix(b"\r").decode("utf-8", "replace").encode()
