"""Random programs run by nnrs and by NNabla itself, side by side: see `player`."""
