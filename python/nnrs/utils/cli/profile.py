def add_profile_command(s):
    pass


def add_infer_command(s):
    pass
