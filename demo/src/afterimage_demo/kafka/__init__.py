"""The demo of Qlik messages: a web shop whose changes go through a Kafka broker."""
