"""What is read off a compiled program, and how it prints."""

import numpy as np
import pytest

import mesh_tf2 as mtf
from mesh_tf2.tpu.chips import CHIPS, chip_of
from mesh_tf2.tpu.hlo_collectives import IRREGULAR, collectives
from mesh_tf2.tpu.report import CompiledProgram

MESH = mtf.Shape([("batch", 2), ("model", 4)])
ROWS = "{{0,1,2,3},{4,5,6,7}}"
COLUMNS = "{{0,4},{1,5},{2,6},{3,7}}"


def found(*lines):
  text = "\n".join(["ENTRY %main (a: f32[2]) -> f32[2] {", *lines, "}"])
  return [
    (c.kind, c.mesh_dims, c.group_size, c.count, c.bytes)
    for c in collectives(text, MESH)
  ]


def test_groups_of_replicas_are_mesh_axes():
  assert found(
    f"  %a.1 = bf16[8,32]{{1,0:T(8,128)(2,1)}} all-reduce(%x), "
    f"replica_groups={ROWS}, to_apply=%add",
    f"  %a.2 = (f32[]{{:T(256)}}, f32[32,16]{{0,1}}) all-reduce(%y, %z), "
    f"replica_groups={COLUMNS}, to_apply=%add",
    "  ROOT %a.3 = pred[5]{0} all-gather(%x), "
    "replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}",
  ) == [
    ("all-gather", ("batch", "model"), 8, 1, 5),
    ("all-reduce", ("batch",), 2, 1, 4 + 4 * 32 * 16),
    ("all-reduce", ("model",), 4, 1, 2 * 8 * 32),
  ]


def test_groups_may_be_written_as_a_transposed_range():
  assert found(
    "  %a = f32[4]{0} all-reduce(%x), replica_groups=[2,4]<=[8], to_apply=%s",
    "  %b = f32[4]{0} all-to-all(%x), replica_groups=[4,2]<=[2,4]T(1,0)",
    "  %c = f32[4]{0} all-gather(%x), replica_groups={}",
  ) == [
    ("all-gather", ("batch", "model"), 8, 1, 16),
    ("all-reduce", ("model",), 4, 1, 16),
    ("all-to-all", ("batch",), 2, 1, 16),
  ]


def test_groups_of_no_mesh_axis_are_called_irregular():
  assert found(
    "  %a = f32[4]{0} all-reduce(%x), "
    "replica_groups={{0,1},{2,3},{4,5},{6,7}}, to_apply=%add",
  ) == [("all-reduce", (IRREGULAR,), 2, 1, 16)]


def test_a_permute_goes_along_the_axes_in_which_its_ends_differ():
  assert found(
    "  %p = f32[4]{0} collective-permute(%x), "
    "source_target_pairs={{0,1},{1,2},{4,5}}",
    "  %q = (f32[4]{0}, f32[4]{0}, u32[], u32[]) "
    "collective-permute-start(%x), source_target_pairs={{0,4},{4,0}}",
    "  %r = f32[4]{0} collective-permute-done(%q)",
  ) == [
    ("collective-permute", ("batch",), 2, 1, 16),
    ("collective-permute", ("model",), 4, 1, 16),
  ]


def test_a_start_counts_its_results_once():
  assert found(
    f"  %g = (f32[4]{{0}}, f32[16]{{0}}) all-gather-start(%x), "
    f"replica_groups={ROWS}",
    f"  %r = f32[4]{{0}} all-reduce-start(%x), replica_groups={ROWS}",
  ) == [
    ("all-gather", ("model",), 4, 1, 64),
    ("all-reduce", ("model",), 4, 1, 16),
  ]


def test_a_sum_in_a_fusion_that_scatters_it_is_a_reduce_scatter():
  text = "\n".join(
    [
      "%all-reduce-scatter.1 (p: f32[16]) -> f32[4] {",
      "  %p = f32[16]{0:T(256)} parameter(0)",
      f"  %a = f32[16]{{0}} all-reduce(%p), replica_groups={ROWS}, to_apply=%s",
      "}",
    ]
  )
  (only,) = collectives(text, MESH)
  assert (only.kind, only.bytes) == ("reduce-scatter", 16)
  assert only.sent_bytes == 3 / 4 * 64


def test_a_sum_may_be_taken_in_float32_and_come_in_bfloat16():
  text = "\n".join(
    [
      "ENTRY %main (p: f32[16]) -> bf16[16] {",
      "  %p = (f32[8]{0:T(256)}, f32[8]{0}) fusion(%y), kind=kLoop",
      f"  %a = bf16[16]{{0}} all-reduce(%p), replica_groups={ROWS}",
    ]
  )
  (only,) = collectives(text, MESH)
  assert (only.operand_bytes, only.bytes) == (64, 32)
  assert only.sent_bytes == 3 / 4 * 96


def test_communication_of_one_core_with_itself_is_none():
  assert (
    found("  %a = f32[4]{0} all-reduce(%x), replica_groups={{0},{1}}") == []
  )


def report(temporary_bytes=10**9):
  text = (
    "  %x = f32[1000]{0} parameter(0)\n"
    f"  %a = f32[1000]{{0}} all-reduce(%x), replica_groups={ROWS}"
  )
  sums = collectives(text, MESH)
  return CompiledProgram(
    topology="v2:2x2x1",
    chip=chip_of("v2:2x2x1"),
    mesh_shape=MESH,
    argument_bytes=2 * 10**9,
    output_bytes=2 * 10**9,
    temporary_bytes=temporary_bytes,
    code_bytes=10**6,
    flops=3e12,
    model_flops=2.25e12,
    accessed_bytes=1e10,
    optimal_seconds=0.19,
    compute_seconds=0.2,
    collectives=sums,
    compile_seconds=1.0,
    hlo="",
  )


def test_utilization_is_model_flops_against_the_peak_of_the_core():
  r = report()
  assert r.utilization == pytest.approx(2.25e12 / (0.2 * 22.5e12))
  sent = 2 * 3 / 4 * 4000
  np.testing.assert_allclose(r.communication_seconds, sent / 62e9)
  assert r.utilization_with_links < r.utilization


def test_a_report_prints_as_a_table_and_says_what_does_not_fit():
  text = str(report())
  assert "v2:2x2x1, mesh [batch:2 model:4]" in text
  assert "all-reduce over model" in text and "TOO MUCH" not in text
  assert report().fits and not report(10**10).fits
  assert "TOO MUCH" in str(report(10**10))
  widths = {len(line) for line in text.partition("\n\n")[0].splitlines()}
  assert len(widths) == 1


def test_an_unknown_generation_is_an_error_that_names_the_known_ones():
  with pytest.raises(ValueError, match="v2, v3, v4, v5e"):
    chip_of("v9:2x2")
  assert chip_of("v4:2x2x1") is CHIPS["v4"]
