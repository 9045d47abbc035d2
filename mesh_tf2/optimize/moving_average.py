"""Averages of weights over the last steps, for evaluation.

Polyak and Juditsky, Acceleration of stochastic approximation by averaging,
1992, with a decay; the average of the first steps is corrected as in Kingma and
Ba, Adam: a method for stochastic optimization, ICLR 2015.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import tensorflow as tf

from ..core.graph import Mesh, Operation, Tensor
from ..ops.binary import divide, equal, sub, where
from ..ops.cast import cast
from ..ops.elementwise import add, multiply
from ..ops.variables import Variable, assign, read_variable, variable_of
from .slots import slot, to_slot, to_variable
from .step_count import StepCount, one_minus_power


class ExponentialMovingAverage:
  """Averages that forget.

      d = decay * (1 - decay^(t - 1)) / (1 - decay^t)
      average = d * average + (1 - d) * w

  t counts the updates from 1, in the variable `<name>/step`: the first average
  is the weight itself, and d soon is `decay`. An average is kept in the slot
  `<variable>/ExponentialMovingAverage`, float32, and so in every checkpoint.

  Args:
    decay: in [0, 1). 0.999 averages over about a thousand steps.
    name: differs between the averages of a program.

  Raises:
    ValueError: `decay` is out of range.

  Example:
    >>> import mesh_tf2 as mtf
    >>> average = mtf.optimize.ExponentialMovingAverage(0.999)
    >>> sgd = mtf.optimize.SgdOptimizer(0.1)
    >>> def train(mesh):
    ...   w = mtf.get_variable(mesh, "w", "d_model:4")
    ...   grads = mtf.gradients([mtf.reduce_sum(mtf.square(w))], [w])
    ...   return [*sgd.apply_grads(grads, [w]), *average.update([w])]
    >>> def evaluate(mesh):
    ...   with average.in_place_of_weights(mesh):
    ...     return mtf.get_variable(mesh, "w", "d_model:4")
    >>> updates = train(mtf.Mesh(mtf.Graph(), "mesh"))
    >>> w = evaluate(mtf.Mesh(mtf.Graph(), "mesh"))
  """

  def __init__(self, decay: float, name: str = "moving_average") -> None:
    if not 0 <= decay < 1:
      raise ValueError(
        f"ExponentialMovingAverage: decay is {decay}; it has to be at least 0 "
        "and less than 1"
      )
    self._decay = decay
    self._count = StepCount(f"{name}/step")

  def update(self, variables: Sequence[Variable | Tensor]) -> list[Operation]:
    """Takes the variables, as they are after what was assigned, for one step.

    To be called when the assignments of the step have been made, also those
    that `LossScaling` makes.

    Args:
      variables: variables, or the tensors of their values.
    """
    updates: list[Operation] = []
    for var in map(variable_of, variables):
      t, counted = self._count.next(var.mesh)
      d = multiply(
        divide(
          one_minus_power(self._decay, sub(t, 1)),
          one_minus_power(self._decay, t),
        ),
        self._decay,
      )
      old = slot(var, _SUFFIX)
      w = to_slot(read_variable(var), var)
      new = add(multiply(old, d), multiply(w, sub(1.0, d)))
      updates += [assign(old, new), *counted]
    return updates

  def value(self, variable: Variable | Tensor) -> Tensor:
    """The average as it was when the program began, float32.

    Before the first update it is the variable.
    """
    var = variable_of(variable)
    average = to_variable(slot(var, _SUFFIX), var)
    w = cast(var.value, tf.float32)
    return where(equal(self._count.last(var.mesh), 0), w, average)

  @contextlib.contextmanager
  def in_place_of_weights(self, mesh: Mesh) -> Iterator[None]:
    """Within it, `get_variable` returns averages of trainable variables.

    Args:
      mesh: of the graph that is built there.
    """
    graph = mesh.graph
    before = graph.stand_in

    def stand_in(var: Variable) -> Tensor:
      return self.value(var) if var.trainable else var.value

    graph.stand_in = stand_in
    try:
      yield
    finally:
      graph.stand_in = before


_SUFFIX = "/ExponentialMovingAverage"
