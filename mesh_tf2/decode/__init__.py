"""Search for likely sequences, one token at a time."""

from .beam_search import EOS_ID as EOS_ID
from .beam_search import beam_search as beam_search
from .greedy import greedy_decode as greedy_decode
from .top_sequences import (
  compute_topk_scores_and_seq as compute_topk_scores_and_seq,
)
