"""What is below packaging/, held against the program that it packs."""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

import jsonschema
import promql_parser
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import sbom  # noqa: E402  # from scripts/

PACKAGING = ROOT / "packaging"
PROGRAM = pathlib.Path(os.environ["PROGRAM"]).resolve()
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def check(environment=None, file=None, flags=()):
    """The program's own check of a configuration."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PONDAGE_", "PG")) and name != "DATABASE_URL"}
    where = ["-c", file] if file else []
    return run(PROGRAM, "check", *where, *flags, env=clean | (environment or {}))


class DebianPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.directory.name)
        cls.deb = run(PACKAGING / "deb/build.sh", PROGRAM, cls.out).strip()
        run("dpkg-deb", "-x", cls.deb, cls.out / "files")
        run("dpkg-deb", "-e", cls.deb, cls.out / "control")

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_what_it_says_of_itself(self):
        fields = run("dpkg-deb", "-f", self.deb)
        self.assertIn("Package: pondage\n", fields)
        self.assertIn(f"Version: {VERSION}\n", fields)
        self.assertRegex(fields, r"Depends: .*libc6 \(>= [\d.]+\).*adduser")
        listed = run("dpkg-deb", "-c", self.deb)
        self.assertRegex(listed, r"-rw-r----- root/root .* \./etc/pondage/pondage\.toml")
        self.assertNotRegex(listed, r"[-d]......w")
        self.assertEqual((self.out / "control/conffiles").read_text(), "/etc/pondage/pondage.toml\n")

    def test_the_program_runs_and_takes_its_configuration(self):
        packed = self.out / "files/usr/bin/pondage"
        self.assertEqual(run(packed, "--version"), f"pondage {VERSION}\n")
        check(file=self.out / "files/etc/pondage/pondage.toml")
        unit = (self.out / "files/usr/lib/systemd/system/pondage.service").read_text()
        self.assertIn("ExecStart=/usr/bin/pondage serve -c /etc/pondage/pondage.toml", unit)

    def test_manual_and_completions(self):
        page = gzip.decompress((self.out / "files/usr/share/man/man1/pondage.1.gz").read_bytes())
        self.assertIn(b".TH pondage 1", page)
        page = gzip.decompress((self.out / "files/usr/share/man/man5/pondage.toml.5.gz").read_bytes())
        self.assertIn(b"\n.TP\n\\fBpool_size\\fR (", page)
        script = self.out / "files/usr/share/bash-completion/completions/pondage"
        offered = run("bash", "-c", f". {script}; COMP_WORDS=(pondage do); COMP_CWORD=1; "
                      "_pondage pondage do pondage; echo ${COMPREPLY[@]}")
        self.assertEqual(offered.strip(), "doctor")

    @unittest.skipUnless(shutil.which("lintian"), "needs lintian")
    def test_lintian_has_nothing_to_say(self):
        self.assertEqual(run("lintian", "--allow-root", self.deb), "")

    def test_scripts_are_of_plain_shell(self):
        for name in ["postinst", "prerm", "postrm"]:
            run("sh", "-n", self.out / "control" / name)

    @unittest.skipUnless(os.geteuid() == 0, "installing needs root")
    def test_it_is_installed_and_purged(self):
        """In a copy of this machine that is thrown away: an overlay over its root."""
        with tempfile.TemporaryDirectory() as layers:
            script = f"""
                set -eu
                mount -t tmpfs none {layers}
                mkdir {layers}/upper {layers}/work {layers}/root
                mount -t overlay overlay -o lowerdir=/,upperdir={layers}/upper,workdir={layers}/work {layers}/root
                mount --bind /dev {layers}/root/dev
                mount -t proc proc {layers}/root/proc
                mkdir -p {layers}/root/tmp && cp {self.deb} {layers}/root/tmp/pondage.deb
                echo mounted
                chroot {layers}/root sh -euc '
                    export PATH=/usr/sbin:/usr/bin:/sbin:/bin
                    dpkg -i /tmp/pondage.deb
                    getent passwd pondage
                    stat -c "%U:%G %a" /etc/pondage/pondage.toml
                    /usr/bin/pondage check -c /etc/pondage/pondage.toml
                    dpkg -i /tmp/pondage.deb
                    dpkg --purge pondage
                    test ! -e /etc/pondage && test ! -e /usr/bin/pondage && echo gone'
            """
            done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if "mounted" not in done.stdout:
                self.skipTest(f"no overlay can be mounted here: {done.stderr.strip()}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("root:pondage 640\n", done.stdout)
            self.assertTrue(done.stdout.endswith("gone\n"), done.stdout)


class Metrics(unittest.TestCase):
    """Dashboards and alerts speak of metrics that there are."""

    @classmethod
    def setUpClass(cls):
        sources = (ROOT / "crates/pondage/src/http/families").glob("*.rs")
        text = "\n".join(path.read_text() for path in sources)
        cls.families = set(re.findall(r'"((?:pondage|process)_[a-z0-9_]+)"', text))
        cls.labels = {}
        for line in (ROOT / "docs/metrics.md").read_text().splitlines():
            family, *cells = line.split(" | ")
            if family.startswith("| `") and len(cells) >= 4:
                cls.labels[family.strip("|` ")] = set(re.findall(r"`([a-z_]+)`", cells[1]))

    def names(self, expression):
        """Metrics of an expression, with the labels that it asks for; not if it can't be read."""
        promql_parser.parse(expression)
        found = re.findall(r"\b((?:pondage|process)_[a-z0-9_]+)(?:\{([^}]*)\})?", expression)
        return [(name, re.findall(r"([a-z_]+)\s*[=!]", labels)) for name, labels in found]

    def exists(self, expression):
        expression = re.sub(r"\$__rate_interval", "5m", expression)
        expression = re.sub(r'=~"\$\w+"', '=~".*"', expression)
        names = self.names(expression)
        self.assertTrue(names, expression)
        for name, labels in names:
            part = re.sub(r"_(bucket|sum|count)$", "", name)
            family = part if part in self.labels else name
            self.assertIn(family, self.families, expression)
            known = {"instance", "job", "le"} | self.labels[family]
            for label in labels:
                self.assertIn(label, known, f"{family} in {expression}")

    def test_alerts(self):
        rules = yaml.safe_load((PACKAGING / "prometheus/alerts.yaml").read_text())["groups"][0]["rules"]
        self.assertGreater(len(rules), 10)
        pages = {}
        for rule in rules:
            self.exists(rule["expr"])
            page, _, anchor = rule["annotations"]["runbook"].partition("#")
            text = pages.setdefault(page, (ROOT / page).read_text())
            heads = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-")
                     for head in re.findall(r"^#+ (.+)$", text, re.M)}
            self.assertIn(anchor, heads, rule["alert"])

    def test_grafana(self):
        dashboard = json.loads((PACKAGING / "grafana/pondage.json").read_text())
        targets = [target for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(targets), 30)
        for target in targets:
            self.exists(target["expr"])
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                self.exists(re.match(r"label_values\((\w+),", variable["query"])[1])


class Dependencies(unittest.TestCase):
    """deny.toml's licences, bans and sources, also where cargo-deny is not installed."""

    @classmethod
    def setUpClass(cls):
        cls.rules = tomllib.loads((ROOT / "deny.toml").read_text())
        data = sbom.metadata()
        packages = {package["id"]: package for package in data["packages"]}
        cls.all = list(packages.values())
        cls.shipped = [packages[each] for each in sbom.shipped(data)[1]]

    def allowed(self, expression):
        """Whether an SPDX expression can be fulfilled."""
        words = re.findall(r"[()]|[\w.+-]+", expression.replace("/", " OR "))
        terms = []
        for word in words:
            if word in ("(", ")"):
                terms.append(word)
            elif word in ("AND", "OR"):
                terms.append(word.lower())
            elif word == "WITH" or terms[-1:] == ["WITH"]:
                # An exception only allows more.
                terms = terms[:-1] if word != "WITH" else terms + ["WITH"]
            else:
                terms.append(str(word in self.rules["licenses"]["allow"]))
        return eval(" ".join(terms), {"__builtins__": {}})  # made of these words only

    def test_licences(self):
        self.assertTrue(self.allowed("(MIT OR GPL-3.0) AND Apache-2.0 WITH LLVM-exception"))
        self.assertFalse(self.allowed("MIT AND GPL-3.0-only"))
        own = {package["name"] for package in self.all if package["source"] is None}
        bad = {package["name"]: package["license"] for package in self.shipped
               if package["name"] not in own and not self.allowed(package["license"] or "none")}
        self.assertEqual(bad, {})
        self.assertGreater(len(self.shipped), 100)

    def test_bans(self):
        banned = {ban["crate"] for ban in self.rules["bans"]["deny"]}
        self.assertEqual(banned & {package["name"] for package in self.shipped}, set())

    def test_sources(self):
        elsewhere = [package["name"] for package in self.all
                     if package["source"] not in (None, "registry+https://github.com/rust-lang/crates.io-index")]
        self.assertEqual(elsewhere, [])


class Containers(unittest.TestCase):
    def test_dockerfile(self):
        text = (PACKAGING / "docker/Dockerfile").read_text()
        for source in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M):
            for path in source.split():
                self.assertTrue((ROOT / path).exists(), path)
        # What the environment says is stronger than a file: the image must not say anything.
        self.assertNotRegex(text, r"PONDAGE_[A-Z]+__\w+=")
        serve, *flags = json.loads(re.search(r"^CMD (\[\"serve\".*\])$", text, re.M)[1])
        self.assertEqual(serve, "serve")
        check({"DATABASE_URL": "postgres://app:app@db/app"}, flags=flags)
        self.assertRegex(text, r"(?m)^USER 65532")
        probe = json.loads(re.search(r"CMD (\[\"bash\".+\])$", text, re.M)[1])
        run("bash", "-n", "-c", probe[2])
        wanted = re.search(r'rust-version = "(.+)"', (ROOT / "Cargo.toml").read_text())[1]
        self.assertIn(f"FROM rust:{wanted}-", text)

    def test_compose(self):
        place = PACKAGING / "docker"
        services = yaml.safe_load((place / "compose.yaml").read_text())["services"]
        check(services["pondage"]["environment"])
        for service in services.values():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue((place / source).exists(), source)
        self.assertTrue((place / services["pondage"]["build"]["context"] / "Cargo.toml").exists())
        for path in place.rglob("*.y*ml"):
            yaml.safe_load(path.read_text())


class HelmChart(unittest.TestCase):
    chart = PACKAGING / "helm/pondage"

    def setUp(self):
        self.values = yaml.safe_load((self.chart / "values.yaml").read_text())
        self.schema = json.loads((self.chart / "values.schema.json").read_text())

    def test_values_fit_their_schema_and_typos_do_not(self):
        jsonschema.validate(self.values, self.schema)
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(self.values | {"replicas": 2}, self.schema)

    def test_the_configuration_is_one(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "pondage.toml"
            path.write_text(self.values["config"])
            check(file=path)

    def test_templates_use_values_that_there_are(self):
        for template in (self.chart / "templates").glob("*.yaml"):
            for path in re.findall(r"\.Values\.([\w.]+)", template.read_text()):
                value = self.values
                for part in path.split("."):
                    self.assertIn(part, value, f"{template.name}: {path}")
                    value = value[part]

    def test_templates_are_yaml(self):
        """With each action replaced by a word; `helm template` does more where it is installed."""
        for template in (self.chart / "templates").glob("*.yaml"):
            text = template.read_text()
            text = re.sub(r"(?m)^\s*\{\{-? ?(if|end|range|else)[^}]*\}\}\s*$", "", text)
            text = re.sub(r"(?m)^\s*\{\{-[^}]*nindent[^}]*\}\}$", "", text)
            text = re.sub(r"\{\{-[^}]*nindent[^}]*\}\}", " {}", text)
            text = re.sub(r"\{\{[^}]*\}\}", "word", text)
            self.assertIsInstance(yaml.safe_load(text), dict, template.name)
        version = yaml.safe_load((self.chart / "Chart.yaml").read_text())["appVersion"]
        self.assertEqual(version, VERSION)


class Release(unittest.TestCase):
    def test_the_recipe(self):
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator

        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory) / "out"
            run(ROOT / "scripts/release.sh", VERSION, out, env=os.environ | {"PROGRAM": str(PROGRAM)})
            run("sha256sum", "-c", "SHA256SUMS", cwd=out)
            listed = (out / "SHA256SUMS").read_text()
            for name in [".tar.gz", ".deb", ".cdx.json", "NOTES.md"]:
                self.assertIn(name, listed)
            bom = (out / f"pondage-{VERSION}.cdx.json").read_text()
            self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_5).validate_str(bom))
            names = {part["name"] for part in json.loads(bom)["components"]}
            self.assertTrue({"wire", "rustls", "mio", "tokio"} <= names)
            self.assertFalse({"proptest", "vt100", "sqllogictest"} & names, "what tests need is not shipped")
            tarball = next(out.glob("*.tar.gz"))
            self.assertRegex(run("tar", "-tzf", tarball), r"pondage-[^/]+/pondage\n")

    def test_another_version_is_refused(self):
        done = subprocess.run([ROOT / "scripts/release.sh", "9.9.9", "/nonexistent/out"],
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no section [9.9.9]", done.stderr)


if __name__ == "__main__":
    unittest.main()
