"""Cloud TPU without a TPU: the real compiler, on a host that has only a CPU."""
