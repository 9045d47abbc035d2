"""What the layers of a model need to know about the call they are part of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

import mesh_tf2 as mtf

if TYPE_CHECKING:
  from ..layers.transformer_layer import TransformerLayer
  from .unitransformer import Unitransformer

# The modes of a call. The first three run on whole sequences. The last two are
# the halves of decoding with a cache: once over the sequences as they are given
# ("first_part": layers record their states), then over one position at a time
# ("incremental": tensors have no length dimension, and layers read the states,
# put in what is new, and record them again).
TRAIN = "train"
EVAL = "eval"
INFER = "infer"
FIRST_PART = "first_part"
INCREMENTAL = "incremental"
MODES = (TRAIN, EVAL, INFER, FIRST_PART, INCREMENTAL)


@dataclasses.dataclass
class Context:
  """One call of a `Unitransformer`.

  Attributes:
    model: the model that is called.
    mesh: its mesh.
    batch_dims: the dimensions in front of the length.
    length_dim: the length of the sequences; in the mode "incremental" that of
      the cache, since the tensors then have none.
    variable_dtype: of the variables; its activation dtype is that of the
      tensors between layers.
    beam_dim: the beams, in a beam search.
    mode: one of `MODES`.
    position: the position of each token in its sequence, int32; in the mode
      "incremental" with some of the dimensions of a batch of ids.
    position_is_default: whether that is 0, 1, 2, ... in every row.
    sequence_id: which of the sequences packed into a row a token belongs to,
      0 for padding; a number where there is neither packing nor padding.
    subsequence_id: takes the place of `sequence_id` in self-attention.
    states: in the mode "incremental", what the layers recorded before, in the
      order of the layers.
    new_states: what the layers record in this call.
    losses: scalars to be added to the loss; None if there is no loss.
    initial_position: where the first part of decoding ends.
    layer_outputs: if a list, the output of each layer is put into it.
    encoder_output: batch, memory_length, d_model.
    encoder_sequence_id: batch, memory_length.
    constant_states: what the layers computed in the first part and need in
      every step.
    shared_params: tables that are made outside: "embedding",
      "positional_embedding".
    encoder_layer_outputs: like `layer_outputs`, of the encoder.
    write_priority: a position can be seen by those whose `read_priority` is at
      least this; int32. None for no such rule.
    read_priority: see `write_priority`.
    inputs: the ids that the model reads.
    encoder_inputs: batch, memory_length: the ids that the encoder has read.
    num_microbatches: into how many of these the batch was cut.
    cache: tensors that several layers use, by name.
    layer_index: how many layers have run.
    current_layer: the layer that runs.
    current_layer_input: its input, before any sub-layer.
  """

  model: Unitransformer
  mesh: mtf.Mesh
  batch_dims: list[mtf.Dimension]
  length_dim: mtf.Dimension
  variable_dtype: mtf.VariableDType
  beam_dim: mtf.Dimension | None = None
  mode: str = TRAIN
  position: mtf.Tensor | None = None
  position_is_default: bool = False
  sequence_id: mtf.Tensor | int | None = None
  subsequence_id: mtf.Tensor | int | None = None
  states: list[mtf.Tensor] | None = None
  new_states: list[mtf.Tensor] | None = None
  losses: list[mtf.Tensor] | None = None
  initial_position: mtf.Tensor | None = None
  layer_outputs: list[mtf.Tensor] | None = None
  encoder_output: mtf.Tensor | None = None
  encoder_sequence_id: mtf.Tensor | None = None
  constant_states: list[Any] | None = None
  shared_params: dict[str, Any] | None = None
  encoder_layer_outputs: list[mtf.Tensor] | None = None
  write_priority: mtf.Tensor | None = None
  read_priority: mtf.Tensor | None = None
  inputs: mtf.Tensor | None = None
  encoder_inputs: mtf.Tensor | None = None
  num_microbatches: int = 1
  cache: dict[str, Any] = dataclasses.field(default_factory=dict, init=False)
  layer_index: int = dataclasses.field(default=0, init=False)
  current_layer: TransformerLayer | None = dataclasses.field(
    default=None, init=False
  )
  current_layer_input: mtf.Tensor | None = dataclasses.field(
    default=None, init=False
  )
  _states_taken: int = dataclasses.field(default=0, init=False)
  _constants_taken: int = dataclasses.field(default=0, init=False)

  def __post_init__(self) -> None:
    if self.mode not in MODES:
      raise ValueError(f"mode is {self.mode!r}; it must be one of {MODES}")

  @property
  def train(self) -> bool:
    """Whether this is a training step: dropout is on."""
    return self.mode == TRAIN

  @property
  def activation_dtype(self) -> tf.DType:
    """The dtype of the tensors between layers."""
    return self.variable_dtype.activation_dtype

  @property
  def encoder_length_dim(self) -> mtf.Dimension:
    """The length of the encoder's output."""
    if self.encoder_output is None:
      raise ValueError("this model has no encoder, whose output is asked for")
    return self.encoder_output.shape.get_dim_by_name("memory_length")

  @property
  def nonpadding(self) -> mtf.Tensor | None:
    """1 where there is a token, 0 at padding; None if all are tokens."""
    if not isinstance(self.sequence_id, mtf.Tensor):
      return None
    real = mtf.not_equal(self.sequence_id, 0)
    return mtf.cast(real, self.activation_dtype)

  def get_position(self) -> mtf.Tensor:
    """The position of each token; length, or more dimensions."""
    if self.position is None or self.position_is_default:
      return mtf.range(self.mesh, self.length_dim, tf.int32)
    return self.position

  def cached(self, name: str, make: Callable[[], Any]) -> Any:
    """What `make` returned when it was first asked for under this name."""
    if name not in self.cache:
      self.cache[name] = make()
    return self.cache[name]

  # States. Layers record and read them in the order in which they run.

  def record_new_states(self, new_states: Sequence[mtf.Tensor]) -> None:
    """Records the states of a layer, to be had back in the next step."""
    if self.new_states is not None:
      self.new_states.extend(new_states)

  def get_states(self, n: int) -> list[mtf.Tensor]:
    """The next `n` states, in the order in which they were recorded."""
    begin, end = self._states_taken, self._states_taken + n
    states = self.states or []
    if end > len(states):
      raise ValueError(
        f"a layer asks for states {begin} to {end}, there are {len(states)}; "
        "give the context those that the first part of decoding recorded"
      )
    self._states_taken = end
    return list(states[begin:end])

  def record_constant_state(self, s: Any) -> None:
    """Records what the layer will need in every step of decoding."""
    if self.constant_states is not None:
      self.constant_states.append(s)

  def get_constant_state(self) -> Any:
    """The next constant state, in the order in which they were recorded."""
    states = self.constant_states or []
    if self._constants_taken >= len(states):
      raise ValueError(
        f"a layer asks for constant state {self._constants_taken}, there are "
        f"{len(states)}; run the first part of decoding first"
      )
    self._constants_taken += 1
    return states[self._constants_taken - 1]

  def at_step(
    self, position: mtf.Tensor, states: Sequence[mtf.Tensor]
  ) -> Context:
    """The context of one step of decoding, given that of the first part.

    Args:
      position: of the token that is read, int32: a scalar, or with some of the
        dimensions of the ids.
      states: those that the first part or the previous step recorded. They may
        have been given more dimensions, such as beams.
    """
    return dataclasses.replace(
      self,
      mode=INCREMENTAL,
      position=position,
      position_is_default=False,
      sequence_id=1,
      subsequence_id=None,
      read_priority=None if self.write_priority is None else position,
      states=list(states),
      new_states=[],
      losses=None,
      layer_outputs=None,
      inputs=None,
    )
