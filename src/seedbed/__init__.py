"""Seedbed: from a written-down reinforcement-learning experiment to a paper traceable to its runs."""

import os

# Matrix products must not depend on how many seeds share a process. MKL reads this when torch is imported.
os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")
