"""Convolution, and its two adjoints: each is a gradient of the other two.

With y = conv(x, w), the gradient for x is made of w and dy, and the one for w
of x and dy. What each of these three does to its own inputs in turn is done by
the other two, so gradients of any order are convolutions again. A transposed
convolution is the gradient for x, used by itself.

Every dimension but those of the filter's positions may be split over the mesh;
see `placed.py` for what that costs.
"""

from __future__ import annotations

import dataclasses

from ....core.errors import ShapeError
from ....core.graph import Apply, Aval, Primitive, Tensor, apply
from ....core.shape import Dimension, Shape, ShapeLike, to_shape, union
from ....spmd.laid_out import Slices
from ....spmd.mesh import MeshImpl
from .placed import Form, Placed
from .stencil import Numbers, stencils


@dataclasses.dataclass(frozen=True)
class Conv(Primitive):
  """y of x and w."""

  form: Form
  flops_per_point = 2

  @property
  def counter(self) -> str:
    """Under which name its communication is counted."""
    return f"conv{self.form.ndims}d_op"

  def infer(self, x: Aval, w: Aval) -> Aval:
    _check_dtypes(x, w)
    return Aval(_output_shape(self.form, x.shape, w.shape), x.dtype)

  def gradient(self, op: Apply, dy: Tensor) -> list[Tensor | None]:
    x, w = op.inputs
    return [
      apply(ConvBackpropInput(self.form, x.shape), w, dy),
      apply(ConvBackpropFilter(self.form, w.shape), x, dy),
    ]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices, w: Slices) -> Slices:
    shapes = [t.shape for t in [*op.inputs, *op.outputs]]
    return Placed(mesh, self.form, *shapes).correlate(x, w)

  def iteration(self, op: Apply) -> Shape:
    return union(op.outputs[0].shape, op.inputs[1].shape)

  def unsplittable(self, op: Apply) -> frozenset[str]:
    return _unsplittable(self.form, op.inputs[1].shape)


@dataclasses.dataclass(frozen=True)
class ConvBackpropInput(Primitive):
  """x of w and y."""

  form: Form
  input_shape: Shape
  flops_per_point = 2

  @property
  def counter(self) -> str:
    """Under which name its communication is counted."""
    return f"conv{self.form.ndims}d_op"

  def infer(self, w: Aval, y: Aval) -> Aval:
    _check_dtypes(w, y)
    _check_output(self.form, self.input_shape, w.shape, y.shape)
    return Aval(self.input_shape, y.dtype)

  def gradient(self, op: Apply, dx: Tensor) -> list[Tensor | None]:
    w, y = op.inputs
    return [
      apply(ConvBackpropFilter(self.form, w.shape), dx, y),
      apply(Conv(self.form), dx, w),
    ]

  def lower(self, mesh: MeshImpl, op: Apply, w: Slices, y: Slices) -> Slices:
    shapes = [t.shape for t in op.inputs]
    return Placed(mesh, self.form, self.input_shape, *shapes).input_of(w, y)

  def iteration(self, op: Apply) -> Shape:
    return union(*(t.shape for t in reversed(op.inputs)))

  def unsplittable(self, op: Apply) -> frozenset[str]:
    return _unsplittable(self.form, op.inputs[0].shape)


@dataclasses.dataclass(frozen=True)
class ConvBackpropFilter(Primitive):
  """w of x and y."""

  form: Form
  filter_shape: Shape
  flops_per_point = 2

  @property
  def counter(self) -> str:
    """Under which name its communication is counted."""
    return f"conv{self.form.ndims}d_backprop_filter"

  def infer(self, x: Aval, y: Aval) -> Aval:
    _check_dtypes(x, y)
    _check_output(self.form, x.shape, self.filter_shape, y.shape)
    return Aval(self.filter_shape, x.dtype)

  def gradient(self, op: Apply, dw: Tensor) -> list[Tensor | None]:
    x, y = op.inputs
    return [
      apply(ConvBackpropInput(self.form, x.shape), dw, y),
      apply(Conv(self.form), x, dw),
    ]

  def lower(self, mesh: MeshImpl, op: Apply, x: Slices, y: Slices) -> Slices:
    x_shape, y_shape = (t.shape for t in op.inputs)
    placed = Placed(mesh, self.form, x_shape, self.filter_shape, y_shape)
    return placed.filter_of(x, y)

  def iteration(self, op: Apply) -> Shape:
    return union(op.inputs[1].shape, self.filter_shape)

  def unsplittable(self, op: Apply) -> frozenset[str]:
    return _unsplittable(self.form, self.filter_shape)


def _unsplittable(form: Form, w: Shape) -> frozenset[str]:
  """The filter's positions; of several groups, the channels of one, too."""
  whole = w[:-2] if form.groups == 1 else w[:-1]
  return frozenset(d.name for d in whole)


def _output_shape(form: Form, x: Shape, w: Shape) -> Shape:
  """The shape of y. Raises ShapeError where x and w do not fit."""
  n = form.ndims
  if len(w) != n + 2 or len(x) < n + 1:
    raise ShapeError(
      f"a convolution over {n} spatial dimensions takes an input of batch "
      f"dimensions, {n} spatial ones and channels, got [{x}], and a filter of "
      f"{n} spatial dimensions, input and output channels, got [{w}]"
    )
  _check_channels(form, x, w)
  batch, spatial = x[: -n - 1], x[-n - 1 : -1]
  sizes = []
  for d, s in zip(spatial, form.stencils, strict=True):
    if s.outputs(d.size) < 1:
      raise ShapeError(
        f"a filter that spans {s.span} positions does not fit into {d}; use a "
        'smaller one, or padding="SAME"'
      )
    sizes.append(Dimension(d.name, s.outputs(d.size)))
  return Shape([*batch, *sizes, w[-1]])


def _check_channels(form: Form, x: Shape, w: Shape) -> None:
  groups = form.groups
  if groups == 1 and x[-1] != w[-2]:
    raise ShapeError(
      f"the input's last dimension is {x[-1]}, the filter is for {w[-2]}; both "
      "must be the same"
    )
  if x[-1].size != w[-2].size * groups or w[-1].size % groups:
    raise ShapeError(
      f"a convolution in {groups} groups takes {w[-2].size} * {groups} input "
      f"channels, got {x[-1]}, and output channels that divide by {groups}, "
      f"got {w[-1]}"
    )
  names = x.dimension_names
  if twice := [d for d in w[:-2] if d.name in names]:
    raise ShapeError(
      f"the filter's dimension {twice[0]} has the name of one of the input's; "
      "rename it"
    )


def _check_output(form: Form, x: Shape, w: Shape, y: Shape) -> None:
  if (wanted := _output_shape(form, x, w)) != y:
    raise ShapeError(
      f"a convolution of [{x}] and [{w}] gives [{wanted}], got [{y}]"
    )


def _check_dtypes(*given: Aval) -> None:
  if len({a.dtype for a in given}) > 1:
    raise ValueError(
      "a convolution needs tensors of one dtype, got "
      f"{[a.dtype.name for a in given]}; cast them first"
    )


def conv(
  x: Tensor,
  conv_filter: Tensor,
  strides: Numbers = 1,
  padding: str = "SAME",
  dilations: Numbers = 1,
  groups: int = 1,
  name: str | None = None,
) -> Tensor:
  """Convolution over one to three spatial dimensions.

      y[b, i, o] = sum over k, c of
        x[b, stride * i + dilation * k - before, c] * conv_filter[k, c, o]

  i and k stand for a position along each spatial dimension. Like TensorFlow's,
  it is a correlation: the filter is not turned round.

  Args:
    x: batch dimensions (any number), spatial ones, input channels.
    conv_filter: as many spatial dimensions, input channels, output channels.
      The dimensions of input channels must be the same in both.
    strides: one number, or one for each spatial dimension.
    padding: "SAME" gives ceil(n / stride) outputs for n inputs; "VALID" those
      ceil((n - (size - 1) * dilation) / stride) that see no padding.
    dilations: one number, or one for each spatial dimension.
    groups: input and output channels are cut into so many groups, and an
      output sees the inputs of its own group. The filter has the input
      channels of one group: their dimension is smaller, and has another name.
    name: a name for the operation.

  Returns:
    Batch dimensions, spatial ones of the same names, output channels.

  Raises:
    ShapeError: the shapes do not fit, or an argument has another form.

  Example:
    >>> import mesh_tf2 as mtf
    >>> mesh = mtf.Mesh(mtf.Graph(), "mesh")
    >>> image = mtf.ones(mesh, "batch:8 rows:28 cols:28 rgb:3")
    >>> w = mtf.ones(mesh, "fh:5 fw:5 rgb:3 filters:16")
    >>> mtf.conv(image, w, strides=2).shape
    batch:8 rows:14 cols:14 filters:16
  """
  form = _form("conv", conv_filter.shape, (strides, dilations), padding, groups)
  return apply(Conv(form), x, conv_filter, name=name)


def conv_transpose(
  x: Tensor,
  conv_filter: Tensor,
  strides: Numbers = 1,
  padding: str = "SAME",
  dilations: Numbers = 1,
  groups: int = 1,
  name: str | None = None,
) -> Tensor:
  """The transpose of `conv`, which makes spatial dimensions larger.

  Args:
    x: batch dimensions, spatial ones, input channels.
    conv_filter: as many spatial dimensions, output channels, input channels:
      that of a convolution the other way.
    strides: one number, or one for each spatial dimension.
    padding: of n inputs, "SAME" makes n * stride outputs, and "VALID" makes
      n * stride + max((size - 1) * dilation + 1 - stride, 0). For other sizes
      see `conv_backprop_input`.
    dilations: one number, or one for each spatial dimension.
    groups: see `conv`.
    name: a name for the operation.

  Returns:
    Batch dimensions, spatial ones of the same names, output channels.

  Raises:
    ShapeError: the shapes do not fit, or an argument has another form.
  """
  w = conv_filter.shape
  form = _form("conv_transpose", w, (strides, dilations), padding, groups)
  n = form.ndims
  if len(x.shape) < n + 1:
    raise ShapeError(
      f"conv_transpose: the input [{x.shape}] lacks some of {n} spatial "
      "dimensions and channels"
    )
  spatial = [
    Dimension(d.name, s.natural_inputs(d.size))
    for d, s in zip(x.shape[-n - 1 : -1], form.stencils, strict=True)
  ]
  channels = Dimension(w[-2].name, w[-2].size * groups)
  shape = Shape([*x.shape[: -n - 1], *spatial, channels])
  return apply(
    ConvBackpropInput(form, shape),
    conv_filter,
    x,
    name=name or "conv_transpose",
  )


def conv_backprop_input(
  input_shape: ShapeLike,
  conv_filter: Tensor,
  dy: Tensor,
  strides: Numbers = 1,
  padding: str = "SAME",
  dilations: Numbers = 1,
  groups: int = 1,
  name: str | None = None,
) -> Tensor:
  """The gradient of `conv` for its input.

  Args:
    input_shape: the shape of the input.
    conv_filter: the filter.
    dy: the gradient of the output.
    strides: those of `conv`.
    padding: likewise.
    dilations: likewise.
    groups: likewise.
    name: a name for the operation.

  Raises:
    ShapeError: `dy` has not the shape of the output.
  """
  form = _form(
    "conv_backprop_input",
    conv_filter.shape,
    (strides, dilations),
    padding,
    groups,
  )
  shape = to_shape(input_shape)
  return apply(ConvBackpropInput(form, shape), conv_filter, dy, name=name)


def conv_backprop_filter(
  conv_input: Tensor,
  filter_shape: ShapeLike,
  dy: Tensor,
  strides: Numbers = 1,
  padding: str = "SAME",
  dilations: Numbers = 1,
  groups: int = 1,
  name: str | None = None,
) -> Tensor:
  """The gradient of `conv` for its filter.

  Args:
    conv_input: the input.
    filter_shape: the shape of the filter.
    dy: the gradient of the output.
    strides: those of `conv`.
    padding: likewise.
    dilations: likewise.
    groups: likewise.
    name: a name for the operation.

  Raises:
    ShapeError: `dy` has not the shape of the output.
  """
  shape = to_shape(filter_shape)
  form = _form(
    "conv_backprop_filter", shape, (strides, dilations), padding, groups
  )
  return apply(ConvBackpropFilter(form, shape), conv_input, dy, name=name)


def _form(
  name: str,
  filter_shape: Shape,
  steps: tuple[Numbers, Numbers],
  padding: str,
  groups: int,
) -> Form:
  if not 3 <= len(filter_shape) <= 5:
    raise ShapeError(
      f"{name}: a filter has one to three spatial dimensions, input channels "
      f"and output channels, got [{filter_shape}]"
    )
  if groups < 1:
    raise ShapeError(f"{name}: groups must be 1 or more, got {groups}")
  strides, dilations = steps
  sizes = filter_shape.to_integer_list[:-2]
  return Form(stencils(name, sizes, strides, padding, dilations), groups)
