"""One module or package per command of `afterimage`."""
