"""`anabranch serve`: the command, the processes of a server, and what connects it to the machine."""
