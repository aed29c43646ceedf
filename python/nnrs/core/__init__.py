"""NNabla's `nnabla.core`: networks as objects."""
