"""Mutation run: put one-line faults into the logic, one at a time, and see which of them no test notices.

``make mutants`` draws a sample with a seed, runs for each mutant the tests that reach the mutated function, and prints
what was killed, what survived and what timed out in each room. The steps, and where they live:

* ``sites``      find every place where an operator of cosmic-ray (or one of ``operators``) can change the logic
* ``sampling``   draw the sample: shares by room, the same choice for the same seed
* ``reach``      record once which test calls which function (a plugin of pytest)
* ``selecting``  choose the tests of a mutant within a budget of time
* ``warm``       a process with all libraries imported that forks one child for each mutant
* ``running``    trees with one mutant each, the children, their verdicts
* ``survivors``  the list of survivors that are equivalent or accepted, each with a reason (``survivors.toml``)

The table ``[tool.mutants]`` of ``pyproject.toml`` holds rooms, size, seed, limits and operators.
"""
