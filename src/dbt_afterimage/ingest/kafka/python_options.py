"""Options of Kafka's Java client, translated for kafka-python.

Users give one set of options, by Kafka's names: Spark reads messages with them, and over Spark
Connect the Python client queries offsets with them.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any

from dbt_afterimage.ingest.kafka.request import KafkaLandingError

_SAME = {
    "client.id": str,
    "request.timeout.ms": int,
    "sasl.mechanism": str,
    "security.protocol": str,
}
_JAAS = "sasl.jaas.config"
_PEM_ONLY = "the Python client reads PEM files only"
_TLS = {
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.type",
}
_CONNECTION = ("sasl.", "security.", "ssl.")


def python_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `kafka.KafkaAdminClient` for options by Kafka's own names.

    Options that only concern the reading of messages, such as `fetch.max.bytes`, are left to Spark.

    Raises:
        KafkaLandingError: an option of the connection has no counterpart; its value is not shown.
    """
    for name in options:
        if name.startswith(_CONNECTION) and name not in {*_SAME, *_TLS, _JAAS}:
            supported = ", ".join(sorted({*_SAME, *_TLS, _JAAS}))
            raise _refused(
                name, f"the Python client has no such option. Supported: {supported}", "remove it"
            )
    result: dict[str, Any] = {
        name.replace(".", "_"): _value(name, kind, options[name])
        for name, kind in _SAME.items()
        if name in options
    }
    if _JAAS in options:
        result.update(_login(options[_JAAS]))
    if result.get("security_protocol", "").endswith("SSL"):
        result["ssl_context"] = _tls(options)
    return result


def _value(name: str, kind: type, text: str) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        raise _refused(name, f"{text!r} is not a whole number", "correct it") from error


def _login(text: str) -> dict[str, str]:
    """User and password of a JAAS entry for PLAIN or SCRAM."""
    module = text.split(None, 1)[0] if text.strip() else ""
    given = {
        name: re.sub(r"\\(.)", r"\1", value)
        for name, value in re.findall(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"', text)
    }
    is_known = module.endswith((".PlainLoginModule", ".ScramLoginModule"))
    if not is_known or not {"username", "password"} <= given.keys():
        raise _refused(
            _JAAS,
            "the Python client needs PlainLoginModule or ScramLoginModule with username and "
            "password in double quotes",
            "use the mechanism PLAIN or SCRAM",
        )
    return {"sasl_plain_username": given["username"], "sasl_plain_password": given["password"]}


def _tls(options: Mapping[str, str]) -> ssl.SSLContext:
    for store in ("truststore", "keystore"):
        location, kind = f"ssl.{store}.location", f"ssl.{store}.type"
        if location in options and options.get(kind, "JKS").upper() != "PEM":
            raise _refused(location, _PEM_ONLY, f"convert the {store} to PEM, and set {kind}=PEM")
    try:
        context = ssl.create_default_context(
            cafile=options.get("ssl.truststore.location"),
            cadata=options.get("ssl.truststore.certificates"),
        )
        if "ssl.keystore.location" in options:
            password = options.get("ssl.key.password")
            context.load_cert_chain(options["ssl.keystore.location"], password=password)
    except OSError as error:
        raise _refused(
            "ssl.truststore.* or ssl.keystore.*",
            f"its PEM cannot be read: {error}",
            "correct it; a path must exist on this machine and on the executors",
        ) from error
    if options.get("ssl.endpoint.identification.algorithm") == "":
        context.check_hostname = False
    return context


def _refused(name: str, why: str, fix: str) -> KafkaLandingError:
    return KafkaLandingError(
        f"`land kafka`: the option {name} cannot be used over Spark Connect: {why}. Nothing was "
        f"landed. Fix: {fix}, or land with a target without `spark.remote` on the same catalog."
    )
