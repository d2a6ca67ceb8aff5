"""One package per source system: what lies left of the change-event contract and needs Python."""
