def add_train_command(s):
    pass


def add_infer_command(s):
    pass
