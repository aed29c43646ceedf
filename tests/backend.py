"""Which context the tests run in: NNRS_TEST_BACKEND=cudnn makes it a GPU's."""

import os

BACKEND = os.environ.get("NNRS_TEST_BACKEND", "cpu")
