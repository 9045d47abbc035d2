"""The table of keys and values that the index file of a checkpoint is.

Blocks of entries, each with a checksum, then a block that says where those are,
then a footer. TensorFlow's own reader takes a damaged block for the end of the
table and loses the names in it without a word, so tables are read here.

Source: the table format of LevelDB, `doc/table_format.md`, with 32-bit masked
CRC-32C as in RFC 3720.
"""

from __future__ import annotations

from collections.abc import Iterator

FOOTER_BYTES = 48
TRAILER_BYTES = 5  # the kind of the block, then its checksum
MAGIC = 0xDB4775248B80FB57
CASTAGNOLI = 0x82F63B78  # the polynomial, lowest power first
MASK_DELTA = 0xA282EAD8


class TableError(ValueError):
  """Bytes that are no table; the message says what is wrong with the file."""


def entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
  """Keys and values of a table, in the order of the keys.

  Args:
    data: the whole file.

  Raises:
    TableError: the file is cut short, is no table, or a block is damaged.
  """
  footer = data[-FOOTER_BYTES:]
  if int.from_bytes(footer[-8:], "little") != MAGIC:
    raise TableError(f"is no index, or cut short ({len(data)} bytes)")
  try:
    at = 0
    for _ in range(2):  # where the block of filters is, which nobody needs
      _, at = varint(footer, at)
    for _, handle in _block(data, footer, at):
      yield from _block(data, handle, 0)
  except IndexError:
    raise TableError("points to what it does not hold") from None


def varint(data: bytes, at: int) -> tuple[int, int]:
  """The number that begins at `at`, seven bits a byte, and where it ends.

  Raises:
    IndexError: it does not end within `data`.
  """
  value = shift = 0
  while True:
    byte = data[at]
    value |= (byte & 127) << shift
    at, shift = at + 1, shift + 7
    if byte < 128:
      return value, at


def _block(
  data: bytes, handle: bytes, at: int
) -> Iterator[tuple[bytes, bytes]]:
  """The entries of the block that `handle[at:]` gives offset and size of."""
  begin, at = varint(handle, at)
  size, _ = varint(handle, at)
  end = begin + size
  trailer = data[end : end + TRAILER_BYTES]
  if len(trailer) < TRAILER_BYTES:
    raise IndexError
  if _masked_crc32c(data[begin : end + 1]) != int.from_bytes(
    trailer[1:], "little"
  ):
    raise TableError(f"is damaged between bytes {begin} and {end}")
  if trailer[0]:
    raise TableError("is compressed, which checkpoints are not")
  yield from _block_entries(data[begin:end])


def _block_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
  restarts = int.from_bytes(block[-4:], "little")
  end = len(block) - 4 * (restarts + 1)
  key, at = b"", 0
  while at < end:
    shared, at = varint(block, at)
    rest, at = varint(block, at)
    size, at = varint(block, at)
    key = key[:shared] + block[at : at + rest]
    at += rest
    yield key, block[at : at + size]
    at += size


def _masked_crc32c(data: bytes) -> int:
  crc = 0xFFFFFFFF
  for byte in data:
    crc = _CRC_OF_BYTE[(crc ^ byte) & 255] ^ (crc >> 8)
  crc ^= 0xFFFFFFFF
  return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF


def _crc_of_byte(byte: int) -> int:
  for _ in range(8):
    byte = byte >> 1 ^ (CASTAGNOLI if byte & 1 else 0)
  return byte


_CRC_OF_BYTE = [_crc_of_byte(byte) for byte in range(256)]
