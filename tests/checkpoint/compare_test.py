"""What does not fit is listed in one error, whatever it is."""

import pytest
import tensorflow as tf

from mesh_tf2.checkpoint.compare import CheckpointMismatchError, compare

F32, BF16, I32, I64 = tf.float32, tf.bfloat16, tf.int32, tf.int64


def mismatch(wanted, found, **kwargs):
  with pytest.raises(CheckpointMismatchError) as caught:
    compare(wanted, found, **kwargs)
  assert isinstance(caught.value, ValueError)
  return str(caught.value).splitlines()[1:]


def test_the_same_tensors_fit():
  tensors = {"w": ((2, 3), F32), "step": ((), I64)}
  compare(tensors, dict(tensors))


def test_floats_and_integers_may_have_another_size():
  compare(
    {"w": ((2, 3), F32), "step": ((), I64)},
    {"w": ((2, 3), BF16), "step": ((), I32)},
  )


def test_all_that_does_not_fit_is_in_one_error_sorted():
  wanted = {
    "z": ((4,), F32),
    "encoder/kernel": ((4, 8), F32),
    "same": ((1,), F32),
    "turned": ((4, 8), F32),
    "grown": ((4,), F32),
    "step": ((), I64),
  }
  found = {
    "turned": ((8, 4), BF16),
    "grown": ((5,), F32),
    "step": ((), F32),
    "same": ((1,), F32),
    "enc/kernel": ((4, 8), F32),
    "a": ((), F32),
  }
  assert mismatch(wanted, found) == [
    "  2 missing from it:",
    '    encoder/kernel: float32[4, 8] (did you mean "enc/kernel"?)',
    "    z: float32[4]",
    "  2 in it, but not in the program:",
    "    a: float32[]",
    "    enc/kernel: float32[4, 8]",
    "  3 of another shape or kind:",
    "    grown: float32[5], but the program has float32[4]",
    "    step: float32[], but the program has int64[]",
    "    turned: bfloat16[8, 4], but the program has float32[4, 8]",
  ]


def test_the_error_names_the_checkpoint_and_a_way_out():
  with pytest.raises(
    CheckpointMismatchError,
    match=r"^dir/model.ckpt-1 is not of this program; use the configuration",
  ):
    compare({"w": ((), F32)}, {}, checkpoint="dir/model.ckpt-1")


def test_a_name_of_another_shape_or_one_in_use_is_not_suggested():
  wanted = {"w1": ((4,), F32), "w2": ((4,), F32), "w3": ((4,), F32)}
  found = {"w2": ((4,), F32), "w3": ((4,), F32), "w0": ((5,), F32)}
  assert mismatch(wanted, found, optional=["w0"]) == [
    "  1 missing from it:",
    "    w1: float32[4]",
  ]


def test_every_name_is_listed_however_many_there_are():
  wanted = {f"w{i:03d}": ((1,), F32) for i in range(60)}
  found = {f"v{i:03d}": ((2,), F32) for i in range(51)}
  lines = mismatch(wanted, found)
  assert lines[0] == "  60 missing from it:"
  assert lines[60] == "    w059: float32[1]"
  assert lines[61] == "  51 in it, but not in the program:"
  assert lines[112] == "    v050: float32[2]"


@pytest.mark.parametrize(
  "optional",
  [
    lambda name: "slot" in name,
    [r".*_slot_\w+", "global_step"],
    r".*_slot_\w+|global_step",
  ],
)
def test_optional_tensors_of_the_checkpoint_need_not_be_wanted(optional):
  found = {"w": ((4,), F32), "w_slot_vr": ((4,), F32)}
  compare({"w": ((4,), F32)}, found, optional)
  lines = mismatch({"w": ((4,), F32), "w_slot_m": ((4,), F32)}, found)
  assert '    w_slot_m: float32[4] (did you mean "w_slot_vr"?)' in lines
  lines = mismatch({"w_slot_vr": ((3,), F32)}, found, optional=optional)
  assert "    w: float32[4]" in lines
  assert "  1 of another shape or kind:" in lines
