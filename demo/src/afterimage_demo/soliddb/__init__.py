"""The solidDB demo: a bank branch, and its transaction log in the binary form of SYS_LOG."""
