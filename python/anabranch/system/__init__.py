"""What a run needs of the machine: files, programs, and where this build comes from."""
