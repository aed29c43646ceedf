"""Networks that NNabla's authors have trained: for classes of images, for objects in them, for their parts."""
