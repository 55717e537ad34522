"""How fast, and why: wall-clock comparisons, simulated devices, recorded answers."""
