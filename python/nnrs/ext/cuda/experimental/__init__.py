"""What NNabla's CUDA extension tries out: data by NVIDIA's DALI."""
