"""Options of Kafka's Java client, translated for the Python client."""

from __future__ import annotations

import ssl
from uuid import UUID

import pytest

from dbt_afterimage.ingest.kafka.python_ends import topic_id
from dbt_afterimage.ingest.kafka.python_options import python_options
from dbt_afterimage.ingest.kafka.request import KafkaLandingError

SCRAM = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    r'username="reader" password="a\"b=c;";'
)


def test_user_and_password_come_from_the_jaas_entry() -> None:
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": SCRAM,
        "request.timeout.ms": "5000",
    }
    assert python_options(given) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "reader",
        "sasl_plain_password": 'a"b=c;',
        "request_timeout_ms": 5000,
    }


def test_options_of_reading_are_left_to_spark() -> None:
    assert python_options({"fetch.max.bytes": "1", "isolation.level": "read_committed"}) == {}


def test_tls_checks_the_host_unless_kafka_is_told_not_to() -> None:
    context = python_options({"security.protocol": "SSL"})["ssl_context"]
    assert context.check_hostname and context.verify_mode == ssl.CERT_REQUIRED
    given = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    assert not python_options(given)["ssl_context"].check_hostname


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("ssl.truststore.location", "/secret.jks", "PEM files only"),
        ("ssl.truststore.certificates", "secret", "PEM cannot be read"),
        ("ssl.keystore.key", "secret", "no such option. Supported: client.id"),
        ("sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule secret;", "PLAIN"),
    ],
)
def test_an_option_without_a_counterpart_is_refused_and_not_shown(
    name: str, value: str, why: str
) -> None:
    with pytest.raises(KafkaLandingError) as refused:
        python_options({"security.protocol": "SASL_SSL", name: value})
    text = str(refused.value)
    assert why in text and "Fix:" in text
    assert "secret" not in text


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(KafkaLandingError, match=r"request\.timeout\.ms .*'30s' is not a whole"):
        python_options({"request.timeout.ms": "30s"})


def test_ids_of_topics_are_those_of_kafkas_own_client() -> None:
    """Base64 for URLs, as `org.apache.kafka.common.Uuid` writes it."""
    assert topic_id(UUID("59676574-6572-696d-6167-6520627265ff")) == "WWdldGVyaW1hZ2UgYnJl_w"
