NAME = "the user's own collector"
