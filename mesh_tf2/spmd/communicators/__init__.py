"""How the processors of one SPMD program send things to each other."""
