"""The programs in examples/ do what they say, the same on every mesh."""

import pytest

from examples import toy_model, two_layers

SMALL = ["--batch_size=8", "--train_steps=4", "--steps_per_checkpoint=2"]


def test_the_two_layer_network_learns_the_same_on_every_layout(capsys):
  want = two_layers.main(["--steps=4"])
  assert want == sorted(want, reverse=True)
  assert "step 3: loss" in capsys.readouterr().out
  for layout in ("", "hidden:all_processors", "rows:all_processors"):
    got = two_layers.main(["--steps=4", f"--layout={layout}"])
    assert got == pytest.approx(want, rel=1e-5)


def test_the_two_layer_network_runs_in_a_compiled_function():
  want = two_layers.main(["--steps=3", "--processors=2"])
  got = two_layers.main(["--steps=3", "--processors=2", "--function"])
  assert got == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("optimizer", ["SGD", "Adafactor"])
def test_the_toy_model_learns_the_same_on_every_mesh(optimizer):
  small = [*SMALL, f"--optimizer={optimizer}"]
  want = toy_model.main([*small, "--mesh_shape=", "--layout="])
  for mesh, layout in (
    ("all:8", "hidden_odd:all"),
    ("rows:2;cols:4", "batch:rows;hidden_even:cols"),
  ):
    got = toy_model.main([*small, f"--mesh_shape={mesh}", f"--layout={layout}"])
    assert got == pytest.approx(want, rel=1e-4)


def test_the_toy_model_goes_on_from_its_checkpoint_on_another_mesh(
  tmp_path, capsys
):
  want = toy_model.main(SMALL)
  folder = f"--model_dir={tmp_path}"
  toy_model.main([*SMALL, folder, "--train_steps=2"])
  got = toy_model.main(
    [*SMALL, folder, "--mesh_shape=rows:2", "--layout=batch:rows"]
  )
  assert f"going on from {tmp_path / 'model.ckpt-2'}" in capsys.readouterr().out
  assert got == pytest.approx(want, rel=1e-5)


def test_the_toy_model_runs_in_bfloat16():
  loss = toy_model.main([*SMALL, "--activation_dtype=bfloat16"])
  assert loss == pytest.approx(toy_model.main(SMALL), rel=0.05)
