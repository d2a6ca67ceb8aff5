"""The change log: pairs raw change records, keeps the accepted ones, rejects the others."""
