"""What a run needs to know, in parts, and checked."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

import mesh_tf2 as mtf
from mesh_tf2.data.dataset_fn import DatasetFn
from mesh_tf2.data.vocabulary import Vocabularies

from ..schedules import Schedule, product_learning_rate
from .variable_filter import VariableFilter


class Mode(enum.Enum):
  """What a run does; the values are what gin files call it."""

  TRAIN = "train"
  EVALUATE = "eval"
  PERPLEXITY = "perplexity_eval"
  INFER = "infer"
  TRAIN_EVALUATE = "train_eval"
  COMPILE = "compile"

  @classmethod
  def from_name(cls, name: str) -> Mode:
    """The mode of this name.

    Raises:
      ValueError: there is none.
    """
    other_names = {"evaluate": "eval", "perplexity": "perplexity_eval"}
    try:
      return cls(other_names.get(name, name))
    except ValueError:
      known = ", ".join(mode.value for mode in cls)
      raise ValueError(
        f"run.mode: there is no mode {name!r}; take one of {known}"
      ) from None


@dataclasses.dataclass(frozen=True)
class Machine:
  """Where a program runs, and from which seed.

  Attributes:
    mesh_shape: the mesh.
    layout_rules: which tensor dimensions are split over which of the mesh's.
    devices: one for each processor; None for a virtual mesh on one device.
    strategy: has a replica for each processor; None for one of the above.
    line: the same for a person; nothing to have the program say it itself.
    seed: of initial values, dropout, and the order of the data.
  """

  mesh_shape: mtf.Shape
  layout_rules: mtf.LayoutRules
  devices: Sequence[str] | None
  seed: int
  strategy: tf.distribute.Strategy | None = None
  line: str = ""

  def __post_init__(self) -> None:
    if self.devices is not None and len(self.devices) != self.mesh_shape.size:
      raise mtf.LayoutError(
        f"run.mesh_shape [{self.mesh_shape}] has {self.mesh_shape.size} "
        f"processors, run.mesh_devices has {len(self.devices)} devices"
      )

  @property
  def outer_batch(self) -> int:
    """Into how many parts a layout rule for `outer_batch` splits the batch."""
    return mtf.tensor_dim_to_mesh_dim_size(
      self.layout_rules, self.mesh_shape, mtf.Dimension("outer_batch", 1)
    )


@dataclasses.dataclass(frozen=True)
class Training:
  """How a model is trained.

  Attributes:
    dataset_fn: makes the training data.
    optimizer: a class of optimizers; it is called with `learning_rate`.
    learning_rate: from the step and `total_steps` to a rate; None for what the
      optimizer does by itself.
    steps: train up to this step.
    total_steps: the length of the run that the learning rate is planned for.
    iterations_per_loop: the most steps between two looks at the clock.
    save_steps: steps between checkpoints.
    keep_checkpoints: how many of the newest to keep; None for all.
    log_steps: steps between points of the curves, and lines of the log.
    skip_nonfinite: leaves out steps whose loss or gradient is infinite or not
      a number, instead of stopping.
    variable_filter: which variables are trained; see `freeze`.
    init_checkpoint: a checkpoint to begin with, where there is none yet.
  """

  dataset_fn: DatasetFn | None
  optimizer: Callable[..., Any] | None
  learning_rate: Schedule | None
  steps: int
  total_steps: int
  iterations_per_loop: int = 100
  save_steps: int = 5000
  keep_checkpoints: int | None = None
  log_steps: int = 100
  skip_nonfinite: bool = False
  variable_filter: VariableFilter | None = None
  init_checkpoint: str | None = None

  def __post_init__(self) -> None:
    for parameter, value in (
      ("train_steps", self.steps),
      ("total_run_steps", self.total_steps),
      ("iterations_per_loop", self.iterations_per_loop),
      ("save_checkpoints_steps", self.save_steps),
      ("log_steps", self.log_steps),
    ):
      if not isinstance(value, int) or value < 1:
        raise ValueError(
          f"run.{parameter} is {value!r}; it is a number of steps, at least 1"
        )
    keep = self.keep_checkpoints
    if keep is not None and keep < 1:
      raise ValueError(
        f"run.keep_checkpoint_max is {keep}; it is at least 1, or None to keep "
        "all"
      )


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """What a model is held against.

  Attributes:
    dataset_fn: makes the examples, or a list of `EvalDataset`s.
    split: the name of the split.
    directory: where results are written.
    checkpoint_step: which checkpoints; see `get_checkpoint_iterator`.
    max_batches: look at so many batches only; None for the whole split.
    write_examples: whether to write inputs, targets and predictions.
    predict_fn: replaces the model's own decoding.
  """

  dataset_fn: Callable[..., Any] | None
  split: str
  directory: str
  checkpoint_step: int | str | Sequence[int] | None = -1
  max_batches: int | None = None
  write_examples: bool = True
  predict_fn: Callable[..., mtf.Tensor] | None = None


@dataclasses.dataclass(frozen=True)
class Settings:
  """What a run needs to know.

  Attributes:
    model_dir: where checkpoints and results are.
    mode: what to do.
    model_type: see `build_model`.
    vocabulary: one, or a pair for inputs and targets.
    batch_size: sequences in a batch, those of all replicas together.
    sequence_length: tokens per row of each feature.
    machine: where it runs.
    training: how the model is trained.
    evaluation: what it is held against.
  """

  model_dir: str
  mode: Mode
  model_type: str
  vocabulary: Vocabularies
  batch_size: int
  sequence_length: Mapping[str, int]
  machine: Machine
  training: Training
  evaluation: Evaluation

  def __post_init__(self) -> None:
    if not self.model_dir:
      raise ValueError("run.model_dir is empty; name it with --model_dir")
    reads = self.model_type in ("bitransformer", "delimited_lm")
    features = ["inputs", "targets"] if reads else ["targets"]
    if missing := [x for x in features if x not in self.sequence_length]:
      raise ValueError(
        f"run.sequence_length is {self.sequence_length}; run.model_type "
        f"{self.model_type!r} needs the length of {' and '.join(missing)}, too"
      )


def schedule(rate: float | Schedule | Sequence[float | Schedule]) -> Schedule:
  """A schedule from a number, a schedule, or the factors of one.

  Raises:
    ValueError: it is something else, or there are no factors.
  """
  if callable(rate):
    return rate
  factors = list(rate) if isinstance(rate, (list, tuple)) else [rate]
  odd = [x for x in factors if not (callable(x) or isinstance(x, (int, float)))]
  if odd or not factors:
    raise ValueError(
      f"run.learning_rate_schedule is {rate!r}; it is a number, a schedule "
      "such as @learning_rate_schedules.learning_rate_schedule_noam, or a list "
      "of these, which are multiplied"
    )

  def product(step: Any, total_train_steps: Any) -> tf.Tensor:
    return product_learning_rate(step, total_train_steps, factors, offset=0)

  return product


def required(vocabulary: Vocabularies | None) -> Vocabularies:
  """The vocabulary that was set.

  Raises:
    ValueError: there is none, or what makes one stands in its place.
  """
  if vocabulary is None:
    raise ValueError(
      "run.vocabulary is not set; set it to a vocabulary, for example "
      "@vocabulary.ByteVocabulary()"
    )
  both = vocabulary if isinstance(vocabulary, tuple) else (vocabulary,)
  for each in both:
    if isinstance(each, type) or not hasattr(each, "vocab_size"):
      name = getattr(each, "__name__", repr(each))
      raise ValueError(
        f"run.vocabulary is {name}, which is no vocabulary; where it makes "
        f"one, write parentheses behind it: @{name}()"
      )
  return vocabulary


def lengths(sequence_length: int | Mapping[str, int] | None) -> dict[str, int]:
  """Tokens per row of each feature, from one number for all or one for each.

  Raises:
    ValueError: there are none, or one is no number of tokens.
  """
  if sequence_length is None:
    raise ValueError(
      "run.sequence_length is not set; set it to tokens per row, for example "
      '{"inputs": 128, "targets": 128}'
    )
  row = sequence_length
  if isinstance(row, int):
    row = {"inputs": row, "targets": row}
  if not isinstance(row, Mapping) or not all(map(_is_length, row.values())):
    raise ValueError(
      f"run.sequence_length is {sequence_length!r}; it is a number of tokens, "
      'at least 1, or one for each feature: {"inputs": 128, "targets": 128}'
    )
  return dict(row)


def _is_length(value: object) -> bool:
  return isinstance(value, int) and value >= 1
