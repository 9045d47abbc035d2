"""The sequences with the best scores, as a step of a search of one's own."""

from __future__ import annotations

from ..core.errors import ShapeError
from ..core.graph import Tensor
from ..core.shape import Dimension
from ..ops.gather import gather
from ..ops.source import one_hot
from ..ops.top_k import top_k


def compute_topk_scores_and_seq(
  sequences: Tensor,
  scores: Tensor,
  scores_to_gather: Tensor,
  flags: Tensor,
  beam_dim: Dimension,
  prefix: str = "default",
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
  """Picks the sequences with the best scores, and what is known of them.

  Args:
    sequences: (batch, old beam, length).
    scores: (batch, old beam); these are compared.
    scores_to_gather: (batch, old beam); these are returned.
    flags: (batch, old beam), bool: whether a sequence has ended.
    beam_dim: how many to pick.
    prefix: without effect.

  Returns:
    Sequences (batch, beam, length), scores and flags (batch, beam), the best
    first; and one-hot rows (batch, beam, old beam) that tell which they were.

  Raises:
    ShapeError: the sequences do not have three dimensions.
  """
  del prefix
  if len(sequences.shape) != 3:
    raise ShapeError(
      "compute_topk_scores_and_seq wants sequences [batch, beam, length], got "
      f"[{sequences.shape}]"
    )
  old = sequences.shape[1]
  _, index = top_k(scores, old, beam_dim)

  def pick(x: Tensor) -> Tensor:
    dims = [beam_dim if d == old else d for d in x.shape]
    return gather(x, index, old, output_shape=dims)

  return (
    pick(sequences),
    pick(scores_to_gather),
    pick(flags),
    one_hot(index, old),
  )
