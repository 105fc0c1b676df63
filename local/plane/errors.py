"""What a user of the plane can run into."""


class PlaneError(Exception):
    """The plane cannot be started or used; the message is for the user and says what to do."""
