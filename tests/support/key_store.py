"""The key and the certificate of a server."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.machine.jars import java

_PASSWORD = "of-the-key-store"


@dataclass(frozen=True)
class KeyStore:
    """A key in ``folder``, and its certificate as PEM, for clients to trust."""

    folder: Path

    @property
    def trusted(self) -> Path:
        return self.folder / "trusted.pem"

    @property
    def _store(self) -> Path:
        return self.folder / "key.p12"

    def properties(self, listener: str) -> Mapping[str, str]:
        """The broker's properties for the key of a listener."""
        store = f"listener.name.{listener}.ssl.keystore"
        return {
            f"{store}.type": "PKCS12",
            f"{store}.location": str(self._store),
            f"{store}.password": _PASSWORD,
        }


def make_key(folder: Path) -> KeyStore:
    """Create a key of this machine, in a folder that has none."""
    key = KeyStore(folder)
    store = ("-keystore", str(key._store), "-storepass", _PASSWORD, "-alias", "server")
    name = ("-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1,dns:localhost")
    kind = ("-storetype", "PKCS12", "-keyalg", "RSA", "-validity", "2")
    _keytool("-genkeypair", *store, *kind, *name)
    _keytool("-exportcert", *store, "-rfc", "-file", str(key.trusted))
    return key


def _keytool(*arguments: str) -> None:
    tool = (java.executable() or Path("java")).resolve().with_name("keytool")
    subprocess.run([str(tool), *arguments], check=True, capture_output=True)
