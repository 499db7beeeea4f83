import base64
import unittest

from pondage_bench.scram import Exchange, ScramError, secret

# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
BOTH = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={BOTH},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()


class Example(unittest.TestCase):
    def setUp(self) -> None:
        self.exchange = Exchange("pencil", "user", NONCE)

    def test_of_the_specification(self) -> None:
        self.assertEqual(self.exchange.first(), f"n,,n=user,r={NONCE}".encode())
        proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        self.assertEqual(self.exchange.final(SERVER_FIRST), f"c=biws,r={BOTH},p={proof}".encode())
        self.exchange.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")

    def test_a_server_that_does_not_know_the_password_is_found_out(self) -> None:
        self.exchange.final(SERVER_FIRST)
        with self.assertRaises(ScramError):
            self.exchange.check(b"v=AAAA")

    def test_a_nonce_that_is_not_ours_and_what_is_no_message_are_errors(self) -> None:
        strange = SERVER_FIRST.replace(b"r=r", b"r=x")
        for wrong in (strange, b"r=" + BOTH.encode(), b"e=other-error"):
            with self.subTest(wrong), self.assertRaises(ScramError):
                self.exchange.final(wrong)

    def test_a_secret_is_what_postgresql_keeps(self) -> None:
        salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
        self.assertEqual(
            secret("pencil", salt),
            "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ=="
            "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
            ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
        )
