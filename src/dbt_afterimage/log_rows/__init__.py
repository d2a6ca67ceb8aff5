"""What is true of rows of a change log, whoever writes or reads them: conditions, profiles."""
