"""What each step costs, beside what the disk allows and beside rivals: `make bench`."""
