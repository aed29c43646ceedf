def add_compare_with_cpu_command(s):
    pass


def add_infer_command(s):
    pass
