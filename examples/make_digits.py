"""Writes digits.bin, the data of the Rust example, from the copy in scikit-learn.

    python examples/make_digits.py

1,797 records of 65 bytes: the 64 pixels of an 8x8 image (0 to 16), then the digit. The first 1,437 are for training,
the other 360 are held out; the split is the one of digits.py.

The images are a part of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (1998), UCI Machine
Learning Repository, https://doi.org/10.24432/C50P49, licensed CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/).
Changes: the images are in another order and another file format.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

digits = load_digits()
records = np.concatenate([digits.data, digits.target[:, None]], axis=1).astype(np.uint8)
parts = train_test_split(records, test_size=360, random_state=0, stratify=digits.target)
Path(__file__).with_name("digits.bin").write_bytes(np.concatenate(parts).tobytes())
