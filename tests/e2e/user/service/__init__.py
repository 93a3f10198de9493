NAME = "the user's own service"
