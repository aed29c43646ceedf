def add_forward_command(s):
    pass


def add_infer_command(s):
    pass
