"""`min`: smallest element over axes, and where it is."""

import numpy as np

from function import max

reference, CASES = max.extreme(np.argmin)
ERRORS = max.ERRORS
